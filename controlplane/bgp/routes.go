package bgp

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// ReasonNotImported is why a route that is fine is in no VRF: none imports its
// route targets. It is the usual case, so it is not counted.
const ReasonNotImported Reason = reason.RouteNotImported

// RouteInfo is one Type-5 route as received from one neighbour, or as sent.
type RouteInfo struct {
	// Sent: this node announces it. Otherwise it was received from Neighbor.
	Sent     bool
	Neighbor netip.Addr
	// RD in the usual notation: 192.0.2.1:7, 64512:7.
	RD string
	// Prefix is invalid when the one received was.
	Prefix    netip.Prefix
	Label     intent.VNI
	NextHop   netip.Addr
	RouterMAC intent.MAC
	Targets   []intent.RouteTarget
	// VRFs are those that import it, or the one that it is sent from.
	VRFs []intent.VNI
	// Importers are the VRFs that import one of its route targets, also those that have rejected it.
	Importers []intent.VNI
	// Rejected is why no VRF has it.
	Rejected Reason
	// Stale: kept although it was withdrawn (doc.go, "Lost peers"), over the
	// neighbour's graceful restart, or by someone as long-lived stale (RFC 9494).
	Stale bool
}

// Status is the route in a report.
func (r RouteInfo) Status() status.BGPRoute {
	out := status.BGPRoute{Direction: "in", RD: r.RD, Prefix: r.Prefix, Label: r.Label, NextHop: r.NextHop, RouterMAC: r.RouterMAC,
		Targets: []string{}, Neighbor: r.Neighbor, VRFs: r.VRFs, Rejected: string(r.Rejected), Stale: r.Stale}
	if r.Sent {
		out.Direction = "out"
	}
	for _, rt := range r.Targets {
		out.Targets = append(out.Targets, rt.String())
	}
	return out
}

// Routes lists every Type-5 route received, a row a neighbour, and every one
// sent, by prefix. It is for people: it costs time in the size of the tables.
func (s *GoBGP) Routes(context.Context) ([]RouteInfo, error) {
	s.outMu.Lock()
	out := make([]RouteInfo, 0, len(s.out.sent))
	for k, f := range s.out.sent {
		out = append(out, f.route(k.Prefix).info(k.VNI))
	}
	s.outMu.Unlock()

	s.in.mu.Lock()
	received, importers := s.in.rib.received(nil), s.in.rib.importersNow()
	s.in.mu.Unlock()
	for _, p := range received {
		out = append(out, p.info(importers))
	}
	slices.SortFunc(out, func(a, b RouteInfo) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()),
			boolean(b.Sent)-boolean(a.Sent), cmp.Compare(a.RD, b.RD), a.Neighbor.Compare(b.Neighbor))
	})
	return out, nil
}

func (t type5) info(vni intent.VNI) RouteInfo {
	return RouteInfo{Sent: true, RD: wireRD(t.routerID, t.index).String(), Prefix: t.prefix, Label: t.label, NextHop: t.nextHop,
		RouterMAC: t.routerMAC, Targets: t.targets.All(), VRFs: []intent.VNI{vni}, Importers: []intent.VNI{vni}}
}

// seen is a received path and whether it is a stale row's.
type seen struct {
	*path
	kept bool
}

// received lists the paths, and those of stale rows, that cover an address; all
// of them without one.
func (r *rib) received(covering *netip.Addr) []seen {
	var out []seen
	take := func(p *path, kept bool) {
		if covering == nil || p.prefix.IsValid() && p.prefix.Contains(*covering) {
			out = append(out, seen{p, kept})
		}
	}
	if covering == nil {
		out = make([]seen, 0, len(r.paths))
	}
	for _, p := range r.paths {
		take(p, false)
	}
	once := set[*path]{}
	for a := range r.ghosts.haunted {
		for g := range r.vteps[a].ghosts {
			if _, again := once[g.path]; g.phase == stale && !again {
				once[g.path] = struct{}{}
				take(g.path, true)
			}
		}
	}
	return out
}

// importers finds the VRFs that take a route target.
type importers struct {
	policies map[intent.VNI]intent.VRFPolicy
	byTarget map[intent.RouteTarget][]intent.VNI
	refused  map[intent.VNI]*refusals
	lost     set[netip.Addr]
}

// importersNow outlives the lock: the maps of policies and of lost VTEPs are never changed
// once they are in the rib, as paths are not.
func (r *rib) importersNow() importers {
	i := importers{r.policies, map[intent.RouteTarget][]intent.VNI{}, r.refusedBy(), r.lost}
	for vni, p := range r.policies {
		for _, rt := range p.Import.All() {
			i.byTarget[rt] = append(i.byTarget[rt], vni)
		}
	}
	return i
}

func (i importers) vrfs(targets []intent.RouteTarget) (out []intent.VNI) {
	for _, rt := range targets {
		out = append(out, i.byTarget[rt]...)
		if vni, ok := autoVNI(rt); ok && i.policies[vni].AutoImport {
			out = append(out, vni)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (p seen) info(i importers) RouteInfo {
	out := RouteInfo{Neighbor: p.key.neighbor, RD: p.key.rd.String(), Prefix: p.prefix, Label: p.hop.VNI, NextHop: p.hop.VTEP,
		RouterMAC: p.hop.RouterMAC, Targets: p.targets, Importers: i.vrfs(p.targets), Rejected: p.reason, Stale: p.kept || p.rank.stale || p.rank.longStale}
	if p.reason == "" {
		if len(out.Importers) == 0 {
			out.Rejected = ReasonNotImported
		} else {
			out.VRFs, out.Rejected = without(i.refused, out.Importers, p.prefix)
		}
		if _, lost := i.lost[p.hop.VTEP]; lost && out.Rejected == "" {
			out.VRFs, out.Rejected = nil, ReasonUnreachable
		}
	}
	return out
}

func (d rd) String() string {
	switch binary.BigEndian.Uint16(d[:2]) {
	case 0:
		return fmt.Sprintf("%d:%d", binary.BigEndian.Uint16(d[2:4]), binary.BigEndian.Uint32(d[4:8]))
	case rdTypeIPv4:
		return fmt.Sprintf("%s:%d", netip.AddrFrom4([4]byte(d[2:6])), binary.BigEndian.Uint16(d[6:8]))
	}
	return fmt.Sprintf("%d:%d", binary.BigEndian.Uint32(d[2:6]), binary.BigEndian.Uint16(d[6:8]))
}
