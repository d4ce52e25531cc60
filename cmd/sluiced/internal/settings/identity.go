package settings

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/config"
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

// NewIdentity is who a node with that system-id and VTEP is.
func NewIdentity(c *config.Config, systemID string, vtep netip.Addr) Identity {
	id := Identity{SystemID: systemID, VTEP: vtep, RouterMAC: c.Fabric.RouterMAC}
	if id.RouterMAC.IsZero() {
		id.RouterMAC = bgp.RouterMAC(systemID)
	}
	vtep4 := netip.Addr{}
	if vtep.Is4() {
		vtep4 = vtep
	}
	id.RouterID = bgp.RouterID(c.BGP.RouterID, vtep4, systemID)
	return id
}
