package evpn

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Another translation may ask for rows of the same tables, those of the default VRF
// among them. Where both have a row, the tenants' counts.

// Merge adds the rows of other tables that these do not have.
func (t Tables) Merge(o Tables) {
	merge(t.Bridges, o.Bridges)
	merge(t.KernelVRFs, o.KernelVRFs)
	merge(t.KernelGateways, o.KernelGateways)
	merge(t.VRFs, o.VRFs)
	merge(t.Policies, o.Policies)
	merge(t.Gateways, o.Gateways)
	merge(t.Served, o.Served)
	merge(t.BackendRoutes, o.BackendRoutes)
	merge(t.VIPs, o.VIPs)
	merge(t.Routes, o.Routes)
	merge(t.Steering, o.Steering)
	merge(t.Announcements, o.Announcements)
	merge(t.Relays, o.Relays)
	merge(t.Standby, o.Standby)
	merge(t.Learners, o.Learners)
}

func merge[K, V comparable](into, from map[K]V) {
	for k, v := range from {
		if _, there := into[k]; !there {
			into[k] = v
		}
	}
}

// Merge is the difference of both translations' steps as one: d is the tenants', o
// that of a translation that leaves the rows alone that the tenants have, and was made
// after d. A row that goes from the one to the other changes, and never goes.
func (d Difference) Merge(o Difference) Difference {
	return Difference{
		Bridges: d.Bridges.Merge(o.Bridges), KernelVRFs: d.KernelVRFs.Merge(o.KernelVRFs),
		KernelGateways: d.KernelGateways.Merge(o.KernelGateways), VRFs: d.VRFs.Merge(o.VRFs),
		Policies: d.Policies.Merge(o.Policies), Gateways: d.Gateways.Merge(o.Gateways),
		Served: d.Served.Merge(o.Served), BackendRoutes: d.BackendRoutes.Merge(o.BackendRoutes), VIPs: d.VIPs.Merge(o.VIPs), Routes: d.Routes.Merge(o.Routes),
		Steering: d.Steering.Merge(o.Steering), Announcements: d.Announcements.Merge(o.Announcements),
		Relays: d.Relays.Merge(o.Relays), Standby: d.Standby.Merge(o.Standby), Learners: d.Learners.Merge(o.Learners),
	}
}

// GatewayVRF is the VRF that a frame key belongs to: of a gateway port that is here
// or may come.
func (t *Translator) GatewayVRF(key intent.GatewayKey) (intent.VNI, bool) {
	id, at := t.owner(key)
	if at < 0 {
		return 0, false
	}
	vni := t.results[id].Gateways[at].Gateway.VNI
	s := t.vrfs[vni]
	return vni, s != nil && slices.ContainsFunc(s.tables.gateways, func(g intent.Gateway) bool { return g.Key == key })
}

// Match is the longest match among a VRF's own routes, as they are now. It is made
// once for many addresses: that takes as long as the VRF has routes.
func (t *Translator) Match(vni intent.VNI) func(netip.Addr) (intent.Route, bool) {
	routes, lengths := map[netip.Prefix]intent.Route{}, map[int]struct{}{}
	if s := t.vrfs[vni]; s != nil {
		for _, r := range s.tables.routes {
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
