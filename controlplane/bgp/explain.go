package bgp

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Explain tells BGP's half of a path: whether the VRF is known here, a session
// is up, the source is announced so that answers come back, and a route to the
// destination is imported, and if not, which was received and why it is not.
func (s *GoBGP) Explain(ctx context.Context, q status.Query) ([]status.Step, error) {
	st, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	q.Src, q.Dst = q.Src.Unmap(), q.Dst.Unmap()
	v := view{q: q, insync: st.InSync}
	s.outMu.Lock()
	v.srcOwn, v.dstOwn = s.out.longest(q.VRF, q.Src), s.out.longest(q.VRF, q.Dst)
	s.outMu.Unlock()

	s.in.mu.Lock()
	v.policy, v.known = s.in.rib.policies[q.VRF]
	v.src, v.dst = s.in.rib.longest(q.VRF, q.Src), s.in.rib.longest(q.VRF, q.Dst)
	received, importers := s.in.rib.received(&q.Dst), s.in.rib.importersNow()
	s.in.mu.Unlock()
	for _, p := range received {
		if i := p.info(importers); !slices.Contains(i.VRFs, q.VRF) {
			i.Rejected = cmp.Or(i.Rejected, importers.refused[q.VRF].of(i.Prefix))
			v.others = append(v.others, i)
		}
	}
	return []status.Step{v.policyStep(), sessionStep(st.Neighbors), v.sourceStep(st), v.destinationStep()}, nil
}

// view is what the speaker knows of a query's ends.
type view struct {
	q              status.Query
	insync         bool
	policy         intent.VRFPolicy
	known          bool
	srcOwn, dstOwn announced
	src, dst       imported
	// others are the received routes to the destination that the VRF does not have.
	others []RouteInfo
}

// announced is the longest announcement of this node that covers an address.
type announced struct {
	prefix netip.Prefix
	route  type5
	sent   bool
}

func (o *outbox) longest(vni intent.VNI, a netip.Addr) (best announced) {
	for p := range o.wanted[vni] {
		if p.Contains(a) && (!best.prefix.IsValid() || p.Bits() > best.prefix.Bits()) {
			best.prefix = p
			best.route, best.sent = o.last(intent.RouteKey{VNI: vni, Prefix: p})
		}
	}
	return best
}

// imported is the longest row of a VRF that covers an address.
type imported struct {
	prefix netip.Prefix
	hops   intent.NextHopSet
	from   []netip.Addr
	stale  bool
	// leftOut are the next hops above intent.MaxNextHops.
	leftOut int
}

func (r *rib) longest(vni intent.VNI, a netip.Addr) imported {
	best, found := intent.LongestMatch(netip.PrefixFrom(a, a.BitLen()), func(p netip.Prefix) (imported, bool) {
		hops, ok := r.routes[vni][p]
		return imported{prefix: p, hops: hops}, ok
	})
	if !found {
		return best
	}
	usable := r.usable(vni, best.prefix)
	for _, p := range usable {
		if slices.Contains(best.hops.All(), p.hop) {
			best.from = append(best.from, p.key.neighbor)
		}
	}
	best.leftOut = leftOut(bestHops(usable))
	if g := r.ghosts.rows[vni][best.prefix]; len(best.from) == 0 && g != nil {
		best.from, best.stale = []netip.Addr{g.path.key.neighbor}, true
	}
	slices.SortFunc(best.from, netip.Addr.Compare)
	best.from = slices.Compact(best.from)
	return best
}

func (v view) policyStep() status.Step {
	s := status.Step{Layer: status.LayerBGP, Object: fmt.Sprintf("route targets of VRF %s", v.q.VRF), Found: v.known}
	if !v.known {
		s.Detail = "BGP does not have the VRF, or refused it"
		s.Hint = "the VRF has to be programmed on this node first; see 'sluicectl vrf list' and its errors in 'sluicectl status'"
		return s
	}
	s.Detail = fmt.Sprintf("imports %s; exports %s", v.accepts(), orNone(v.policy.Export.String()))
	return s
}

func (v view) accepts() string {
	list := v.policy.Import.String()
	switch {
	case !v.policy.AutoImport:
		return orNone(list)
	case list == "":
		return fmt.Sprintf("the number %d of any AS", v.q.VRF)
	}
	return fmt.Sprintf("%s and the number %d of any AS", list, v.q.VRF)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// sessionStep finds a neighbour that is up.
func sessionStep(neighbors []NeighborStatus) status.Step {
	s := status.Step{Layer: status.LayerBGP, Object: "BGP session"}
	up, words := 0, []string{}
	for _, n := range neighbors {
		word := fmt.Sprintf("%s %s", n.Name(), n.State)
		if n.Carries(FamilyEVPN) {
			up++
		} else if n.LastError != "" {
			word += " (" + n.LastError + ")"
		}
		words = append(words, word)
	}
	s.Found, s.Detail = up > 0, strings.Join(words, ", ")
	switch {
	case len(neighbors) == 0:
		s.Detail, s.Hint = "no neighbour is configured", "list the route reflectors or the leaf switches in bgp.neighbors"
	case up == 0:
		s.Hint = "check that the neighbours answer on their BGP port, that they know this node's address and AS number, and the password"
	}
	return s
}

// sourceStep: without an announcement of the source, answers do not come back.
func (v view) sourceStep(st Status) status.Step {
	s := status.Step{Layer: status.LayerBGP, Object: fmt.Sprintf("announcement of %s in VRF %s", v.q.Src, v.q.VRF)}
	own := v.srcOwn
	switch {
	case own.prefix.IsValid() && own.sent && own.route.targets == "":
		s.Detail = fmt.Sprintf("%s is announced without a route target", own.prefix)
		s.Hint = fmt.Sprintf("no VRF imports such a route: set evpn.vrfs.%d.export, or remove an empty list there", v.q.VRF)
	case own.prefix.IsValid() && own.sent && established(st.Neighbors) == 0:
		s.Detail = fmt.Sprintf("%s waits for a neighbour: none has a session with EVPN. Neighbours that keep routes over a restart may have it still", own.prefix)
		s.Hint = "see the step before on BGP sessions"
	case own.prefix.IsValid() && own.sent:
		s.Found = true
		s.Detail = fmt.Sprintf("%s is announced to %d neighbours: RD %s, label %d, next hop %s, route targets %s", own.prefix, established(st.Neighbors),
			wireRD(own.route.routerID, own.route.index), own.route.label, own.route.nextHop, own.route.targets)
	case own.prefix.IsValid():
		s.Detail = fmt.Sprintf("the announcement of %s waits for the route targets of its VRF", own.prefix)
		s.Hint = "see the step before on route targets"
	case v.src.prefix.IsValid():
		s.Found = true
		s.Detail = fmt.Sprintf("another node announces it: %s leads to %s", v.src.prefix, v.src.hops)
	default:
		s.Detail = "no announcement covers the source, so answers do not reach this node"
		s.Hint = "it is announced once its subnet or host is exposed and the VRF, the gateway, the steering and the route are programmed"
	}
	return s
}

func established(neighbors []NeighborStatus) (n int) {
	for _, b := range neighbors {
		n += boolean(b.Carries(FamilyEVPN))
	}
	return n
}

func (v view) destinationStep() status.Step {
	s := status.Step{Layer: status.LayerBGP, Object: fmt.Sprintf("route to %s in VRF %s", v.q.Dst, v.q.VRF)}
	own, in := v.dstOwn, v.dst
	switch {
	case own.prefix.IsValid() && (!in.prefix.IsValid() || own.prefix.Bits() >= in.prefix.Bits()):
		s.Found = true
		s.Detail = fmt.Sprintf("behind this node, which announces %s", own.prefix)
	case in.prefix.IsValid():
		s.Found = true
		s.Detail = fmt.Sprintf("%s leads to %s, learned from %s", in.prefix, in.hops, words(in.from))
		if in.stale {
			s.Detail += "; stale: withdrawn with all other routes of its node"
		}
		s.Detail += v.unused()
		if better := v.related(in.prefix.Bits()); len(better) > 0 {
			s.Detail += "; longer, and not imported: " + v.why(better[0])
		}
	default:
		v.missing(&s)
	}
	return s
}

// missing says why the VRF has no route to the destination.
func (v view) missing(s *status.Step) {
	related := v.related(-1)
	switch {
	case len(related) > 0:
		var list []string
		for _, r := range related[:min(len(related), 3)] {
			list = append(list, v.why(r))
		}
		s.Detail, s.Hint = strings.Join(list, "; "), v.hint(related[0])
	case len(v.others) > 0:
		s.Detail = fmt.Sprintf("no route covers it in this VRF; %d routes of other VRFs do, such as %s", len(v.others), v.why(v.others[0]))
		s.Hint = fmt.Sprintf("if one of them is meant, import its route target with evpn.vrfs.%d.import; otherwise ask on the node that has the destination", v.q.VRF)
	default:
		s.Detail = "no neighbour sent a route that covers it"
		s.Hint = "ask on the node that has the destination whether it announces it, and on the route reflector whether it passes it on"
	}
	if !v.insync {
		s.Detail += "; the imports are not complete yet"
	}
}

// related are the other routes that seem to be meant for the VRF, the likeliest
// first: tenants use the same addresses, so most others are another tenant's.
func (v view) related(longerThan int) []RouteInfo {
	var out []RouteInfo
	for _, r := range v.others {
		meant := r.Label == v.q.VRF || r.Rejected != ReasonNotImported && len(r.Targets) == 0
		for _, rt := range r.Targets {
			meant = meant || rt.MatchesAuto(v.q.VRF) || slices.Contains(v.policy.Import.All(), rt)
		}
		// Our own routes come back from a reflector in some set-ups.
		if meant && r.Prefix.Bits() > longerThan && r.Rejected != ReasonOwn {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b RouteInfo) int {
		return cmp.Or(cmp.Compare(b.Prefix.Bits(), a.Prefix.Bits()), cmp.Compare(a.RD, b.RD), a.Neighbor.Compare(b.Neighbor))
	})
	return out
}

func (v view) why(r RouteInfo) string {
	text := fmt.Sprintf("%s from %s (RD %s, next hop %s, label %d) ", r.Prefix, r.Neighbor, r.RD, r.NextHop, r.Label)
	if r.Rejected != "" && r.Rejected != ReasonNotImported {
		return text + "is rejected: " + string(r.Rejected)
	}
	return fmt.Sprintf("%scarries the route targets %s and VRF %s imports %s", text, orNone(intent.NewRouteTargets(r.Targets...).String()), v.q.VRF, v.accepts())
}

// hint says what to do about a route that was received and is not imported.
func (v view) hint(r RouteInfo) string {
	if r.Rejected == "" || r.Rejected == ReasonNotImported {
		return fmt.Sprintf("add one of its route targets to evpn.vrfs.%d.import, or let its node export one that this VRF imports", v.q.VRF)
	}
	return reason.ActOnRoute(string(r.Rejected))
}

func words[T fmt.Stringer](list []T) string {
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, e.String())
	}
	return strings.Join(out, ", ")
}
