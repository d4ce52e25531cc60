package bgp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// ReasonUnreachable is why a route that is fine is in no VRF: the node has no route to its
// VTEP. It is the state of the next hop, so it is counted each time that the next hop is lost.
const ReasonUnreachable Reason = reason.RouteUnreachable

// NextHops lists the VTEPs that Watch has told of: those of valid paths, and for a while those
// that had some.
func (s *GoBGP) NextHops() []netip.Addr {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return slices.Collect(maps.Keys(s.in.rib.vteps))
}

// Imported leaves, of some VTEPs, those that a route of a VRF names, or would if the node had a
// route to them. It costs a look at all paths.
func (s *GoBGP) Imported(vteps map[netip.Addr]string) map[netip.Addr]string {
	if len(vteps) == 0 {
		return nil
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return s.in.rib.imported(vteps)
}

func (r *rib) imported(vteps map[netip.Addr]string) map[netip.Addr]string {
	out, importers := map[netip.Addr]string{}, r.importersNow()
	for _, p := range r.received(nil) {
		why, asked := vteps[p.hop.VTEP]
		if _, known := out[p.hop.VTEP]; asked && !known && p.reason == "" && len(importers.vrfs(p.targets)) > 0 {
			out[p.hop.VTEP] = why
		}
	}
	return out
}

// SetUnreachable takes the VTEPs that the node has no route to. A path to one of them is not
// used, as if it had not been received, until its VTEP is not among them any more (RFC 4271
// section 9.1.2.1). A change costs a look at all paths, however many VTEPs change.
func (s *GoBGP) SetUnreachable(vteps map[netip.Addr]struct{}) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if s.in.ended || maps.Equal(s.in.rib.lost, vteps) {
		return
	}
	s.in.rib.setLost(maps.Clone(vteps))
	s.publishLocked()
}

// setLost replaces the set of VTEPs without a route, and marks what the difference touches.
func (r *rib) setLost(lost set[netip.Addr]) {
	old := r.lost
	r.lost = lost
	flipped := set[netip.Addr]{}
	for a := range old {
		if _, still := lost[a]; !still {
			flipped[a] = struct{}{}
		}
	}
	for a := range lost {
		if _, before := old[a]; !before {
			flipped[a] = struct{}{}
		}
	}
	for _, p := range r.paths {
		if _, ok := flipped[p.hop.VTEP]; !ok || p.reason != "" {
			continue
		}
		if r.isLost(p) {
			r.counts(p.key.neighbor).total[ReasonUnreachable]++
		}
		r.touch(p)
	}
	for a := range flipped {
		if v := r.vteps[a]; v != nil {
			for g := range v.ghosts {
				r.dirty[g.key] = struct{}{}
			}
		}
	}
}

func (r *rib) isLost(p *path) bool { _, lost := r.lost[p.hop.VTEP]; return lost }

// resolved leaves the paths whose next hop the node has a route to.
func (r *rib) resolved(paths []*path) []*path {
	return slices.DeleteFunc(paths, r.isLost)
}

// usable are the paths that a row may use: those that the VRF imports and that lead to a
// VTEP with a route.
func (r *rib) usable(vni intent.VNI, prefix netip.Prefix) (out []*path) {
	for p := range r.byPrefix[prefix] {
		if r.imports(r.policies[vni], p) && !r.isLost(p) {
			out = append(out, p)
		}
	}
	return out
}

// leftOut is the number of different next hops above the most that one route has.
func leftOut(hops []intent.NextHop) int {
	different := map[intent.NextHop]struct{}{}
	for _, h := range hops {
		different[h] = struct{}{}
	}
	return max(0, len(different)-intent.MaxNextHops)
}

// unused tells which next hops of the destination's prefix are not used: those above the
// most that a route has, and those without a route.
func (v view) unused() (text string) {
	if n := v.dst.leftOut; n > 0 {
		text = fmt.Sprintf("; %d more next hops are left out: a route uses at most %d, those with the lowest VTEP addresses", n, intent.MaxNextHops)
	}
	var lost []netip.Addr
	for _, r := range v.related(v.dst.prefix.Bits() - 1) {
		if r.Prefix == v.dst.prefix && r.Rejected == ReasonUnreachable {
			lost = append(lost, r.NextHop)
		}
	}
	slices.SortFunc(lost, netip.Addr.Compare)
	if lost = slices.Compact(lost); len(lost) > 0 {
		text += fmt.Sprintf("; not used, since this node has no route to the VTEP: %s", words(lost))
	}
	return text
}
