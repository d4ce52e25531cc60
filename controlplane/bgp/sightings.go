package bgp

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Sightings are what the received routes show of other nodes' tenants.
type Sightings struct {
	// Uses are the combinations of a label and route targets, each with one of the
	// VTEPs that announce it.
	Uses []Sighting
	// RDs are the route distinguishers that routes of more than one VTEP have. This node has
	// those with its router ID, so any other VTEP suffices.
	RDs map[string][]netip.Addr
	// VTEPs are those that routes with one VNI and more than one router MAC name: no node
	// takes the packets of both.
	VTEPs map[netip.Addr][]Identity
}

// Sighting is a use of a VNI.
type Sighting struct {
	Label   intent.VNI
	Targets intent.RouteTargets
	VTEP    netip.Addr
}

// RouteChanges is another number whenever Sightings may have changed.
func (s *GoBGP) RouteChanges() uint64 {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return s.in.rib.applied
}

// Sightings looks through all routes received that are valid. It costs time in their
// number.
func (s *GoBGP) Sightings() Sightings {
	s.in.mu.Lock()
	paths := make([]*path, 0, len(s.in.rib.paths))
	for _, p := range s.in.rib.paths {
		paths = append(paths, p)
	}
	s.in.mu.Unlock()
	return sightings(paths, s.cfg.RouterID, s.cfg.vtep()) // paths never change once they are in the rib
}

func sightings(paths []*path, ownID, ownVTEP netip.Addr) Sightings {
	type end struct { // edges have a router MAC of their own for each VNI
		vtep netip.Addr
		vni  intent.VNI
	}
	type use struct {
		label   intent.VNI
		targets intent.RouteTargets
	}
	uses, byRD, byMAC := map[use]netip.Addr{}, map[rd]set[netip.Addr]{}, map[end]map[intent.MAC]Identity{}
	for _, p := range paths {
		if p.reason != "" {
			continue
		}
		u := use{p.hop.VNI, intent.NewRouteTargets(p.targets...)}
		if old, seen := uses[u]; !seen || p.hop.VTEP.Less(old) {
			uses[u] = p.hop.VTEP
		}
		add(byRD, p.key.rd, p.hop.VTEP)
		if p.key.rd.of(ownID) {
			add(byRD, p.key.rd, ownVTEP)
		}
		if !p.hasMAC {
			continue
		}
		e := end{p.hop.VTEP, p.hop.VNI}
		if byMAC[e] == nil {
			byMAC[e] = map[intent.MAC]Identity{}
		}
		if who, seen := byMAC[e][p.hop.RouterMAC]; !seen || !who.RouterID.IsValid() {
			byMAC[e][p.hop.RouterMAC] = p.node()
		}
	}
	out := Sightings{RDs: map[string][]netip.Addr{}, VTEPs: map[netip.Addr][]Identity{}}
	for e, nodes := range byMAC {
		if len(nodes) > 1 {
			all := slices.AppendSeq(out.VTEPs[e.vtep], maps.Values(nodes))
			slices.SortFunc(all, Identity.compare)
			out.VTEPs[e.vtep] = slices.Compact(all)
		}
	}
	for u, vtep := range uses {
		out.Uses = append(out.Uses, Sighting{u.label, u.targets, vtep})
	}
	for d, vteps := range byRD {
		if len(vteps) > 1 {
			list := make([]netip.Addr, 0, len(vteps))
			for a := range vteps {
				list = append(list, a)
			}
			slices.SortFunc(list, netip.Addr.Compare)
			out.RDs[d.String()] = list
		}
	}
	return out
}
