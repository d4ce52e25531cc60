package main

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Take is called by the translation for each event of OVN, after the node at work.
func (d *daemon) Take(e ovn.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.synced != e.InSync {
		d.synced = e.InSync
		d.healthChanged.Send()
	}
	// Rows that are not all there say neither who the node is nor what it is for.
	if e.InSync.VSwitch && (e.InSync.SB || d.knownLocally()) {
		d.noteFacts(d.factsOf(e.Rows))
	}
}

// Begin is the node's part of translation.Gateway.
func (n *node) Begin(all wanted.Set, siblings []netip.Addr) {
	n.speaker.AddSiblings(siblings)
	n.tenants = tenants{log: n.d.log, routerID: n.id.RouterID, choice: n.d.steps.Choice}
	n.want(all)
	n.tenants.begin(all)
	n.dp.VRFs().Moved(n.tenants.elsewhere(n.tenants.standby))
	n.d.noteStandby(len(n.tenants.standby))
}

// Step has a change go through the tables by make-before-break.
func (n *node) Step(s translation.Step) {
	pending := n.pendingAfter(n.d.steps.Waits, s.InSync.NB, s.Diff)
	n.pending.widen(pending)
	n.delays.changed(wanted.Of(s.Diff, intent.Announcements), s.Arrived)
	n.speaker.AddSiblings(s.Siblings)
	gone := n.gone(s.Rows, s.Diff)
	n.dp.VRFs().Moved(n.tenants.moving(gone, s.Diff))
	n.patch(s.Diff, gone)
	n.yield(gone, wanted.Of(s.Diff, intent.Announcements))
	n.tenants.take(s.Rows, s.Diff)
	n.dp.VRFs().Moved(n.tenants.elsewhere(wanted.Of(s.Diff, intent.Standby).Set))
	n.d.noteStandby(len(n.tenants.standby))
	n.pending.become(pending)
}

// Synced has rows looked at that may be held for what has just come into sync.
func (n *node) Synced() { n.tables.Pipeline.Kick() }

// ChangePaths takes the paths that facts of the node have changed.
func (n *node) ChangePaths(d wanted.Difference) {
	n.patch(d, nil)
	n.tenants.paths(wanted.Of(d, intent.VRFs))
}

// IndicesKept has VRFs looked at that wait for their indices to be on disk.
func (n *node) IndicesKept() { n.tables.Pipeline.Update(n.tables.IndicesKept) }

// want makes what OVN asks for, and the configuration, the wanted side. It is
// called once, before anything else changes the tables.
func (n *node) want(all wanted.Set) {
	n.pending.become(pendingOf(n.d.steps.Waits, wanted.Rows(all, intent.VRFs)))
	trusted := map[netip.Addr]intent.VTEP{}
	for _, a := range n.d.cfg.Fabric.TrustedVTEPs {
		trusted[a] = intent.VTEP{Addr: a}
	}
	n.tables.Pipeline.Update(func() {
		routes := n.relays(wanted.Delta[intent.RouteKey, intent.Route]{Set: wanted.Rows(all, intent.Relays)}).Set
		local, _ := n.rib.Update(rib.OVN, wanted.Rows(all, intent.Routes), nil)
		maps.Copy(routes, local)
		learned := n.learned.Change(wanted.Delta[intent.GatewayKey, intent.Learner]{Set: wanted.Rows(all, intent.Learners)},
			wanted.Delta[intent.VNI, intent.KernelVRF]{Set: wanted.Rows(all, intent.KernelVRFs)})
		whole := wanted.Replace(all, intent.Routes, routes)
		whole = wanted.Replace(whole, intent.VTEPs, trusted)
		n.tables.Set(wanted.Replace(whole, intent.LearnedRoutes, learned.Set))
	})
	n.tellLearned()
}

// patch hands a translation step to the tables as one change. gone are those of the
// announcements that it takes back whose gateway port went to another node.
func (n *node) patch(d wanted.Difference, gone map[intent.RouteKey]intent.Announcement) {
	t := n.tables
	if d.Empty() {
		return
	}
	var resized []tables.MaglevChange
	t.Pipeline.Update(func() {
		resized = tables.MaglevChanges(wanted.Of(d, intent.VIPs).Set, tables.Of(t, intent.VIPs).LookupLocked)
		if len(gone) > 0 {
			t.Moved(gone)
		}
		relays, here := n.relays(wanted.Of(d, intent.Relays)), wanted.Of(d, intent.Routes)
		routes := relays.Then(delta(n.rib.Update(rib.OVN, here.Set, here.Delete)))
		learned := n.learned.Touch(slices.Collect(maps.Keys(here.Set)), here.Delete).
			Then(n.learned.Change(wanted.Of(d, intent.Learners), wanted.Of(d, intent.KernelVRFs)))
		t.Update(wanted.With(wanted.With(d, intent.Routes, routes), intent.LearnedRoutes, learned))
	})
	n.d.sizes.Changed(resized)
	if !wanted.Of(d, intent.Learners).Empty() || !wanted.Of(d, intent.KernelVRFs).Empty() {
		n.tellLearned()
	}
	if len(gone) > 0 {
		select {
		case n.moved <- struct{}{}:
		default:
		}
	}
}

func delta[K, V comparable](set map[K]V, gone []K) wanted.Delta[K, V] {
	return wanted.Delta[K, V]{Set: set, Delete: gone}
}
