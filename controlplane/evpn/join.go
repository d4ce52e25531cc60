package evpn

import (
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
	routes, lengths := map[netip.Prefix]intent.Route{}, [129]bool{}
	if s := t.vrfs[vni]; s != nil {
		for _, r := range wanted.List(s.tables, intent.Routes) {
			routes[r.Key.Prefix], lengths[r.Key.Prefix.Bits()] = r, true
		}
	}
	at := func(p netip.Prefix) (r intent.Route, ok bool) {
		if lengths[p.Bits()] {
			r, ok = routes[p]
		}
		return r, ok
	}
	return func(a netip.Addr) (intent.Route, bool) {
		return intent.LongestMatch(netip.PrefixFrom(a, a.BitLen()), at)
	}
}

// HasBridge tells whether a gateway port needs a bridge.
func (t *Translator) HasBridge(b intent.BridgeKey) bool { return t.bridges[b] > 0 }
