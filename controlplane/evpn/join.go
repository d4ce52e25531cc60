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
		Bridges: mergeDelta(d.Bridges, o.Bridges), KernelVRFs: mergeDelta(d.KernelVRFs, o.KernelVRFs),
		KernelGateways: mergeDelta(d.KernelGateways, o.KernelGateways), VRFs: mergeDelta(d.VRFs, o.VRFs),
		Policies: mergeDelta(d.Policies, o.Policies), Gateways: mergeDelta(d.Gateways, o.Gateways),
		Served: mergeDelta(d.Served, o.Served), BackendRoutes: mergeDelta(d.BackendRoutes, o.BackendRoutes), VIPs: mergeDelta(d.VIPs, o.VIPs), Routes: mergeDelta(d.Routes, o.Routes),
		Steering: mergeDelta(d.Steering, o.Steering), Announcements: mergeDelta(d.Announcements, o.Announcements),
		Relays: mergeDelta(d.Relays, o.Relays), Standby: mergeDelta(d.Standby, o.Standby), Learners: mergeDelta(d.Learners, o.Learners),
	}
}

func mergeDelta[K, V comparable](d, o Delta[K, V]) Delta[K, V] {
	if o.Empty() {
		return d
	}
	var out Delta[K, V]
	out.Set = maps.Clone(o.Set)
	if out.Set == nil {
		out.Set = map[K]V{}
	}
	maps.Copy(out.Set, d.Set)
	for _, k := range slices.Concat(d.Delete, o.Delete) {
		if _, set := out.Set[k]; !set {
			out.Delete = append(out.Delete, k)
		}
	}
	return out
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
