package settings

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Identity is what makes a node itself in the fabric.
type Identity struct {
	SystemID  string
	VTEP      netip.Addr
	RouterMAC intent.MAC
	RouterID  netip.Addr
}

// Same tells whether the fabric sees the same node: what is announced under the
// one is right under the other.
func (i Identity) Same(o Identity) bool {
	return i.VTEP == o.VTEP && i.RouterMAC == o.RouterMAC && i.RouterID == o.RouterID
}
