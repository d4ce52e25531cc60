package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Established tells whether routes go in and out (RFC 4271 section 8.2.2).
func Established(n bgp.NeighborStatus) bool {
	return n.State == "established" && !n.Missing.Has(bgp.FamilyEVPN) && (n.Missing == 0 || n.Missing != n.Families)
}

const (
	speakerInterval = time.Second
	// speakerCalm is how old the state of sessions that are all up may be. The BGP
	// server counts all of its routes to tell it.
	speakerCalm = 10 * time.Second
)

// watchSpeaker keeps the condition of BGP up to date.
func (g *Gateway) watchSpeaker(ctx context.Context) error {
	var s bgp.Status
	var err error
	var seen bgp.Progress
	var read time.Time
	return loop.Every(ctx, speakerInterval, nil, func() {
		if now := g.speaker.Progress(); now != seen || err != nil || !calm(s) || time.Since(read) >= speakerCalm {
			seen, read = now, time.Now()
			s, err = g.speaker.Status(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		ready, why, detail := speakerCondition(s, err)
		g.reg.SetCondition("bgp", ready, why, detail)
		if alone := err == nil && alone(s); g.alone.Swap(alone) != alone {
			g.announced.Send()
		}
		g.reg.Reporter(bgpReports).Replace(slices.Concat(doubles(s), overLimit(s), suspects(s), fullVRFs(s), lostPaths(g.bfd.Status())))
	})
}

// alone tells whether the node has neighbours, and a session with none: nobody hears of its routes.
func alone(s bgp.Status) bool {
	return len(s.Neighbors) > 0 && !slices.ContainsFunc(s.Neighbors, Established)
}

// calm tells whether nothing but an event changes the state.
func calm(s bgp.Status) bool {
	down := func(n bgp.NeighborStatus) bool { return n.State != "established" }
	return s.Problem == "" && s.InSync && !slices.ContainsFunc(s.Neighbors, down)
}

// bgpReports is the source of what BGP reports beside its tables.
const bgpReports = "bgp"

// doubles are the nodes that a reflector, or the fabric, takes for this one.
func doubles(s bgp.Status) []status.Object {
	byKey := map[string]status.Object{}
	self := fmt.Sprintf("; this node is VTEP %s, router ID %s, router MAC %s; ", s.VTEP, s.RouterID, s.RouterMAC)
	report := func(others []bgp.Identity, why, what, todo string) {
		for _, o := range others {
			key := o.VTEP.String()
			also := fmt.Sprintf("%s is also used by %s", what, o)
			if old, had := byKey[key]; had && old.Reason == why {
				also = fmt.Sprintf("%s and %s", strings.TrimSuffix(old.Error, todo), o)
			}
			byKey[key] = status.Object{Kind: "vtep", Key: key, State: status.Error, Reason: why, Error: also + todo}
		}
	}
	report(s.SameRouterID, reason.SameRouterID, fmt.Sprintf("router ID %s", s.RouterID), self+"a route reflector cannot tell the nodes apart, and their routes hide each other: set bgp.routerID on one of them")
	report(s.SameVTEP, reason.SameVTEP, fmt.Sprintf("VTEP %s", s.VTEP), self+"packets for one node reach the other: give one of them another fabric.vtep")
	return slices.Collect(maps.Values(byKey))
}

// overLimit are the neighbours whose prefix limit ended their session.
func overLimit(s bgp.Status) []status.Object {
	var out []status.Object
	for _, n := range s.Neighbors {
		if n.State != bgp.StatePrefixLimit {
			continue
		}
		text := "the session has ended: the neighbour sent more routes than its maxPrefixes; raise bgp.neighbors[].maxPrefixes, or have it send fewer"
		if !n.Retry.IsZero() {
			text += "; the next attempt is at " + n.Retry.Format(time.TimeOnly)
		}
		out = append(out, status.Object{Kind: "neighbor", Key: n.Name(), State: status.Error, Reason: reason.PrefixLimit, Error: text})
	}
	return out
}

// suspects are the neighbours that have sent what this daemon cannot read, those that
// do not take a family, and those whose announcements are refused.
func suspects(s bgp.Status) []status.Object {
	var out []status.Object
	for _, n := range s.Neighbors {
		switch {
		case n.Ignored > 0:
			out = append(out, status.Object{Kind: "neighbor", Key: n.Name(), State: status.Warning, Reason: reason.Unreadable, Error: n.LastError})
		case n.Missing != 0:
			out = append(out, status.Object{Kind: "neighbor", Key: n.Name(), State: status.Warning, Reason: reason.NotOffered, Error: n.LastError})
		default:
			out = append(out, refusing(n)...)
		}
	}
	return out
}

// refusing is what a neighbour announces that is refused, of the first reason of reason.Refusing.
func refusing(n bgp.NeighborStatus) []status.Object {
	for _, e := range reason.Refusing() {
		if count := n.Rejected[bgp.Reason(e.Word)] + n.UnicastRejected[bgp.Reason(e.Word)]; count > 0 {
			return []status.Object{{Kind: "neighbor", Key: n.Name(), State: status.Warning, Reason: e.Word,
				Error: fmt.Sprintf("%d routes are refused, see 'sluicectl bgp routes' and 'sluicectl underlay'. %s", count, e.Act)}}
		}
	}
	return nil
}

// speakerCondition: BGP does its work while routes go in and out, by one neighbour
// at least.
func speakerCondition(s bgp.Status, err error) (ready bool, why, detail string) {
	var down []string
	for _, n := range s.Neighbors {
		if !Established(n) {
			down = append(down, n.Name())
		}
	}
	detail = fmt.Sprintf("%d of %d neighbours, %d EVPN routes in, %d to announce", len(s.Neighbors)-len(down), len(s.Neighbors), s.Imported, s.Announced)
	if s.Exposed > 0 {
		detail += fmt.Sprintf(", %d exposed addresses to announce", s.Exposed)
	}
	if s.Dials {
		detail += "; the BGP server takes no connections and dials, so that sessions start one to two seconds later"
	}
	if len(down) > 0 {
		detail += "; no session with " + strings.Join(down, ", ")
	}
	switch {
	case err != nil:
		return false, reason.Unknown, err.Error()
	case s.Problem != "":
		return false, reason.NotStarted, s.Problem
	case !s.InSync:
		return false, reason.Receiving, detail
	case len(s.Neighbors) == 0:
		return true, reason.NoNeighbors, ""
	case len(down) == len(s.Neighbors):
		return false, reason.NoSession, detail
	}
	return true, reason.InSync, detail
}

// fullVRFs are the VRFs that leave prefixes out.
func fullVRFs(s bgp.Status) []status.Object {
	var out []status.Object
	for _, vni := range slices.Sorted(maps.Keys(s.VRFs)) {
		if v := s.VRFs[vni]; v.Waiting > 0 {
			out = append(out, status.Object{Kind: "vrf", Key: vni.String(), State: status.Error, Reason: reason.RouteMaxPrefixes,
				Error: fmt.Sprintf("the VRF has imported as many prefixes as evpn.vrfs.%d.maxPrefixes allows, %d; later ones are left out: see 'sluicectl vrf show %d', or raise it", vni, v.MaxPrefixes, vni)})
		}
	}
	return out
}
