package gateway

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/link"
)

// keptVTEP is the tunnel address of a node at work whose facts or addresses have changed. An
// address stays while the node has it, on whatever device; when it is gone, the first one of
// its family on lo takes its place, and without one it is waited for. One that ovn-encap-ip
// had named is followed there.
func keptVTEP(now netip.Addr, was, next Facts, has bool, list []link.Address) (vtep netip.Addr, choose bool) {
	if now == was.EncapIP && next.EncapIP != was.EncapIP {
		return now, true
	}
	if has {
		return now, false
	}
	for _, a := range list {
		if a.Link == "lo" && a.Global && a.Prefix.Addr().Is4() == now.Is4() {
			return a.Prefix.Addr(), false
		}
	}
	return now, false
}
