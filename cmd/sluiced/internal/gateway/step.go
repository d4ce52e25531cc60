package gateway

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/moves"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Begin takes all that OVN asks for, once, before the first step.
func (g *Gateway) Begin(all wanted.Set, siblings []netip.Addr) {
	g.speaker.AddSiblings(siblings)
	g.ports = moves.NewPortLog(g.log, g.id.RouterID, g.steps.Choice)
	g.want(all)
	g.ports.Begin(all)
	g.dp.VRFs().Moved(g.ports.AllElsewhere())
	g.noteStandby()
}

// Step has a change go through the tables by make-before-break.
func (g *Gateway) Step(s translation.Step) {
	pending := g.pending.After(g.steps.Waits, s.InSync.NB, g.tables, s.Diff)
	g.pending.Widen(pending)
	g.delays.Changed(wanted.Of(s.Diff, intent.Announcements), moves.Asked{Event: s.Number, Arrived: s.Arrived})
	g.speaker.AddSiblings(s.Siblings)
	gone := moves.Gone(g.tables, s.Rows, s.Diff)
	g.dp.VRFs().Moved(g.ports.Moving(gone, s.Diff))
	g.patch(s.Number, s.Diff, gone)
	moves.Yield(g.speaker, gone, wanted.Of(s.Diff, intent.Announcements))
	g.ports.Take(s.Rows, s.Diff)
	g.dp.VRFs().Moved(g.ports.Elsewhere(wanted.Of(s.Diff, intent.Standby).Set))
	g.noteStandby()
	g.pending.Become(pending)
}

// noteStandby reports how many gateway ports may come.
func (g *Gateway) noteStandby() {
	n := g.ports.Standby()
	if n == 0 {
		g.reg.SetCondition("standby", true, reason.NoStandby, "")
		return
	}
	g.reg.SetCondition("standby", true, reason.Standby, fmt.Sprintf("%d gateway ports are bound to other nodes and may move to this one", n))
}

// Synced has rows looked at that may be held for what has just come into sync.
func (g *Gateway) Synced() { g.tables.Pipeline.Kick() }

// ChangePaths takes the paths that facts of the node have changed.
func (g *Gateway) ChangePaths(d wanted.Difference) {
	g.patch(0, d, nil)
	g.ports.Paths(wanted.Of(d, intent.VRFs))
}

// IndicesKept has VRFs looked at that wait for their indices to be on disk.
func (g *Gateway) IndicesKept() { g.tables.Pipeline.Update(g.tables.IndicesKept) }

// want makes what OVN asks for, and the configuration, the wanted side. It is
// called once, before anything else changes the tables.
func (g *Gateway) want(all wanted.Set) {
	g.pending.Become(moves.PendingOf(g.steps.Waits, wanted.Rows(all, intent.VRFs)))
	trusted := map[netip.Addr]intent.VTEP{}
	for _, a := range g.cfg.Fabric.TrustedVTEPs {
		trusted[a] = intent.VTEP{Addr: a}
	}
	g.tables.Pipeline.Update(func() {
		routes := g.relays(wanted.Delta[intent.RouteKey, intent.Route]{Set: wanted.Rows(all, intent.Relays)}).Set
		local, _ := g.rib.Update(rib.OVN, wanted.Rows(all, intent.Routes), nil)
		maps.Copy(routes, local)
		learned := g.learned.Change(wanted.Delta[intent.GatewayKey, intent.Learner]{Set: wanted.Rows(all, intent.Learners)},
			wanted.Delta[intent.VNI, intent.KernelVRF]{Set: wanted.Rows(all, intent.KernelVRFs)})
		whole := wanted.Replace(all, intent.Routes, routes)
		whole = wanted.Replace(whole, intent.VTEPs, trusted)
		g.tables.Set(wanted.Replace(whole, intent.LearnedRoutes, learned.Set))
	})
	g.tellLearned()
}

// patch hands a translation step to the tables as one change; 0 is no event of OVN. gone are those of the
// announcements that it takes back whose gateway port went to another node.
func (g *Gateway) patch(event uint64, d wanted.Difference, gone map[intent.RouteKey]intent.Announcement) {
	t := g.tables
	if d.Empty() {
		return
	}
	g.log.Debug("the tables are told of a change", "event", event)
	var resized []tables.MaglevChange
	t.Pipeline.Update(func() {
		resized = tables.MaglevChanges(wanted.Of(d, intent.VIPs).Set, tables.Of(t, intent.VIPs).LookupLocked)
		if len(gone) > 0 {
			t.Moved(gone)
		}
		relays, here := g.relays(wanted.Of(d, intent.Relays)), wanted.Of(d, intent.Routes)
		routes := relays.Then(delta(g.rib.Update(rib.OVN, here.Set, here.Delete)))
		learned := g.learned.Touch(slices.Collect(maps.Keys(here.Set)), here.Delete).
			Then(g.learned.Change(wanted.Of(d, intent.Learners), wanted.Of(d, intent.KernelVRFs)))
		t.Update(wanted.With(wanted.With(d, intent.Routes, routes), intent.LearnedRoutes, learned))
	})
	g.sizes.Changed(resized)
	if !wanted.Of(d, intent.Learners).Empty() || !wanted.Of(d, intent.KernelVRFs).Empty() {
		g.tellLearned()
	}
	if len(gone) > 0 {
		g.moved.Send()
	}
}

// relays hands on the routes to what is behind gateway ports elsewhere, as far as
// they are known. It is called inside an update of the pipeline.
func (g *Gateway) relays(d wanted.Delta[intent.RouteKey, intent.Route]) wanted.Delta[intent.RouteKey, intent.Route] {
	gone, set := d.Delete, map[intent.RouteKey]intent.Route{}
	for k, r := range d.Set {
		if r.NextHops.Len() == 0 {
			gone = append(gone, k)
		} else {
			set[k] = r
		}
	}
	return delta(g.rib.Update(rib.Relay, set, gone))
}

// better tells whether BGP shows a route to a destination by another node. It is
// called with the pipeline's lock held.
func (g *Gateway) better(k intent.RouteKey) bool { return g.rib.Has(rib.BGP, k) }

func delta[K, V comparable](set map[K]V, gone []K) wanted.Delta[K, V] {
	return wanted.Delta[K, V]{Set: set, Delete: gone}
}
