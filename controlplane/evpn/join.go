package evpn

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// GatewayVRF is the VRF that a frame key belongs to: of a gateway port that is here
// or may come.
func (t *Translator) GatewayVRF(key intent.GatewayKey) (intent.VNI, bool) {
	id, at := t.owner(key)
	if at < 0 {
		return 0, false
	}
	vni := t.results[id].Gateways[at].Gateway.VNI
	s := t.vrfs[vni]
	return vni, s != nil && slices.ContainsFunc(wanted.List(s.tables, intent.Gateways), func(g intent.Gateway) bool { return g.Key == key })
}

// Match is the longest match among a VRF's own routes, as they are now. It is made
// once for many addresses: that takes as long as the VRF has routes.
func (t *Translator) Match(vni intent.VNI) func(netip.Addr) (intent.Route, bool) {
	routes, lengths := map[netip.Prefix]intent.Route{}, map[int]struct{}{}
	if s := t.vrfs[vni]; s != nil {
		for _, r := range wanted.List(s.tables, intent.Routes) {
			routes[r.Key.Prefix], lengths[r.Key.Prefix.Bits()] = r, struct{}{}
		}
	}
	longest := slices.SortedFunc(maps.Keys(lengths), func(a, b int) int { return cmp.Compare(b, a) })
	return func(a netip.Addr) (intent.Route, bool) {
		for _, bits := range longest {
			p, err := a.Prefix(bits) // longer than an address of IPv4: no match
			if r, ok := routes[p]; err == nil && ok {
				return r, true
			}
		}
		return intent.Route{}, false
	}
}

// HasBridge tells whether a gateway port needs a bridge.
func (t *Translator) HasBridge(b intent.BridgeKey) bool { return t.bridges[b] > 0 }
