package bgp

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Overlaps tells which of the VRFs import a route to one of their given subnets, or into one. It
// costs time in the number of the routes of these VRFs, and may be another one after Progress is.
// Updates of neighbours wait for one VRF, not for all.
func (s *GoBGP) Overlaps(subnets map[intent.VNI][]netip.Prefix) []intent.VNI {
	var out []intent.VNI
	for vni, list := range subnets {
		s.in.mu.Lock()
		if s.in.rib.enters(vni, list) {
			out = append(out, vni)
		}
		s.in.mu.Unlock()
	}
	return out
}

// enters tells whether a VRF imports a route to one of the subnets, or into one.
func (r *rib) enters(vni intent.VNI, subnets []netip.Prefix) bool {
	all, lengths := set[netip.Prefix]{}, set[int]{}
	for _, p := range subnets {
		all[p], lengths[p.Bits()] = struct{}{}, struct{}{}
	}
	for p := range r.routes[vni] {
		for bits := range lengths {
			if bits > p.Bits() {
				continue
			}
			if around, err := p.Addr().Prefix(bits); err == nil {
				if _, ok := all[around]; ok {
					return true
				}
			}
		}
	}
	return false
}
