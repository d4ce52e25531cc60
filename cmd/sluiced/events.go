package main

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
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
		n.delays.changed(diff.Announcements, arrived)
		n.speaker.AddSiblings(d.siblings)
		gone := n.gone(e.Rows, diff)
		n.dp.VRFs().Moved(n.tenants.moving(gone, diff))
		n.patch(diff, gone)
		n.yield(gone, diff.Announcements)
		n.tenants.take(e.Rows, diff)
		n.dp.VRFs().Moved(n.tenants.elsewhere(diff.Standby.Set))
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
	kept := d.asked().VRFs
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
func (n *node) want() evpn.Tables {
	all := n.d.asked()
	n.pending.become(pendingOf(n.d.waits, all.VRFs))
	trusted := map[netip.Addr]intent.VTEP{}
	for _, a := range n.d.cfg.Fabric.TrustedVTEPs {
		trusted[a] = intent.VTEP{Addr: a}
	}
	n.tables.Pipeline.Update(func() {
		n.tables.Bridges.Set(all.Bridges)
		n.tables.KernelVRFs.Set(all.KernelVRFs)
		n.tables.KernelGateways.Set(all.KernelGateways)
		n.tables.SetVRFs(all.VRFs)
		n.tables.Policies.Set(all.Policies)
		n.tables.Gateways.Set(all.Gateways)
		n.tables.Served.Set(all.Served)
		n.tables.BackendRoutes.Set(all.BackendRoutes)
		n.tables.SetVIPs(all.VIPs)
		routes, _ := n.relays(wanted.Delta[intent.RouteKey, intent.Route]{Set: all.Relays})
		local, _ := n.rib.Update(rib.OVN, all.Routes, nil)
		maps.Copy(routes, local)
		n.tables.SetRoutes(routes)
		n.tables.Steering.Set(all.Steering)
		n.tables.Announcements.Set(all.Announcements)
		n.tables.VTEPs.Set(trusted)
		n.tables.LearnedRoutes.Set(n.learned.Change(wanted.Delta[intent.GatewayKey, evpn.Learner]{Set: all.Learners}, wanted.Delta[intent.VNI, intent.KernelVRF]{Set: all.KernelVRFs}).Set)
	})
	n.tellLearned()
	return all
}

// patch hands a translation step to the tables as one change. gone are those of the
// announcements that it takes back whose gateway port went to another node.
func (n *node) patch(d evpn.Difference, gone map[intent.RouteKey]intent.Announcement) {
	t := n.tables
	if d.Empty() {
		return
	}
	var steps []tableStep
	t.Pipeline.Update(func() {
		steps = stepsOf(d.VIPs.Set, t.VIPs.LookupLocked)
		if len(gone) > 0 {
			t.Moved(gone)
		}
		apply(t.Bridges, d.Bridges)
		apply(t.KernelVRFs, d.KernelVRFs)
		apply(t.KernelGateways, d.KernelGateways)
		t.UpdateVRFs(d.VRFs.Set, d.VRFs.Delete)
		apply(t.Policies, d.Policies)
		apply(t.Gateways, d.Gateways)
		apply(t.Served, d.Served)
		apply(t.BackendRoutes, d.BackendRoutes)
		t.UpdateVIPs(d.VIPs.Set, d.VIPs.Delete)
		t.UpdateRoutes(n.relays(d.Relays))
		t.UpdateRoutes(n.rib.Update(rib.OVN, d.Routes.Set, d.Routes.Delete))
		apply(t.Steering, d.Steering)
		apply(t.Announcements, d.Announcements)
		apply(t.LearnedRoutes, n.learned.Touch(slices.Collect(maps.Keys(d.Routes.Set)), d.Routes.Delete))
		apply(t.LearnedRoutes, n.learned.Change(d.Learners, d.KernelVRFs))
	})
	n.d.tableSteps.say(steps)
	if !d.Learners.Empty() || !d.KernelVRFs.Empty() {
		n.tellLearned()
	}
	if len(gone) > 0 {
		select {
		case n.moved <- struct{}{}:
		default:
		}
	}
}

func apply[K, V comparable](t *reconcile.Table[K, V], d wanted.Delta[K, V]) {
	t.Update(d.Set, d.Delete)
}
