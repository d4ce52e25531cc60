package main

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// takeOVN is called by the follower for every step of what OVN shows.
func (d *daemon) takeOVN(e ovn.Event) {
	arrived := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	diff, before := d.step(e), d.inSyncNow.Load()
	// A pass may run at any moment: what is not in sync any more is told before the
	// change, and what is now in sync after it.
	d.inSyncNow.Store(d.lessInSync(e.InSync))
	d.siblings = e.Rows.Siblings()
	if n := d.node; n != nil {
		pending := n.pendingAfter(d.waits, e.InSync.NB, diff)
		n.pending.widen(pending)
		n.delays.changed(wanted.Of(diff, intent.Announcements), arrived)
		n.speaker.AddSiblings(d.siblings)
		gone := n.gone(e.Rows, diff)
		n.dp.VRFs().Moved(n.tenants.moving(gone, diff))
		n.patch(diff, gone)
		n.yield(gone, wanted.Of(diff, intent.Announcements))
		n.tenants.take(e.Rows, diff)
		n.dp.VRFs().Moved(n.tenants.elsewhere(wanted.Of(diff, intent.Standby).Set))
		d.noteStandby(len(n.tenants.standby))
		n.pending.become(pending)
	}
	d.inSyncNow.Store(&e.InSync)
	if before == nil || *before != e.InSync {
		d.lookAtHealth()
	}
	d.taps.lookFor(e.Rows)
	d.metadata.take(e)
	d.clients.take(e)
	// Rows may be held for an in-sync that has just come.
	if d.node != nil {
		d.node.tables.Pipeline.Kick()
	}
	if d.clients != nil && d.clients.at != nil {
		d.clients.at.tables.Pipeline.Kick()
	}
	d.report()
	if e.InSync.All() {
		d.retainIndices()
	}
	// Rows that are not all there say neither who the node is nor what it is for.
	if e.InSync.VSwitch && (e.InSync.SB || d.knownLocally()) {
		d.noteFacts(d.factsOf(e.Rows))
	}
}

// lessInSync is what was in sync and still is.
func (d *daemon) lessInSync(next ovn.InSync) *ovn.InSync {
	old := d.inSyncNow.Load()
	if old == nil {
		return &ovn.InSync{}
	}
	return &ovn.InSync{SB: old.SB && next.SB, VSwitch: old.VSwitch && next.VSwitch, NB: old.NB && next.NB}
}

// retainIndices frees, once, the indices of VRFs that went while no sluiced ran.
func (d *daemon) retainIndices() {
	if !d.retain {
		return
	}
	d.retain = false
	kept := wanted.Rows(d.asked(), intent.VRFs)
	d.indices.Retain(func(vni intent.VNI) bool { _, ok := kept[vni]; return ok }, d.translator.Names)
}

// indicesKept is told after each write of the VRFs' indices: VRFs wait for theirs.
func (d *daemon) indicesKept(err error) {
	rep := d.reg.Reporter("indices")
	if err != nil {
		rep.Set(status.Object{Kind: "node", Key: "vrf-indices", State: status.Error, Reason: reason.NotKept, Error: err.Error()})
	} else {
		rep.Delete("node", "vrf-indices")
	}
	d.mu.Lock()
	n := d.node
	d.mu.Unlock()
	if n != nil {
		n.tables.Pipeline.Update(n.tables.IndicesKept)
	}
}

// want makes what OVN asks for, and the configuration, the wanted side. It is
// called once, before anything else changes the tables, and returns what OVN asks for.
func (n *node) want() wanted.Set {
	all := n.d.asked()
	n.pending.become(pendingOf(n.d.waits, wanted.Rows(all, intent.VRFs)))
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
	return all
}

// patch hands a translation step to the tables as one change. gone are those of the
// announcements that it takes back whose gateway port went to another node.
func (n *node) patch(d wanted.Difference, gone map[intent.RouteKey]intent.Announcement) {
	t := n.tables
	if d.Empty() {
		return
	}
	var steps []tableStep
	t.Pipeline.Update(func() {
		steps = stepsOf(wanted.Of(d, intent.VIPs).Set, tables.Of(t, intent.VIPs).LookupLocked)
		if len(gone) > 0 {
			t.Moved(gone)
		}
		relays, here := n.relays(wanted.Of(d, intent.Relays)), wanted.Of(d, intent.Routes)
		routes := relays.Then(delta(n.rib.Update(rib.OVN, here.Set, here.Delete)))
		learned := n.learned.Touch(slices.Collect(maps.Keys(here.Set)), here.Delete).
			Then(n.learned.Change(wanted.Of(d, intent.Learners), wanted.Of(d, intent.KernelVRFs)))
		t.Update(wanted.With(wanted.With(d, intent.Routes, routes), intent.LearnedRoutes, learned))
	})
	n.d.tableSteps.say(steps)
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
