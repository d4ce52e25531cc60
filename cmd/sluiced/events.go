package main

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// takeOVN is called by the follower for every step of what OVN shows.
func (d *daemon) takeOVN(e ovn.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	diff := d.translator.Step(e.Rows, e.Dirty, e.InSync.SB)
	d.inSyncNow.Store(e.InSync)
	if d.node != nil {
		d.node.patch(diff)
	}
	d.reg.Reporter("evpn").Replace(d.translator.Objects())
	d.noteFacts(d.factsOf(e.Rows))
}

// want makes what OVN asks for, and the configuration, the wanted side.
func (n *node) want(all evpn.Tables) {
	n.tables.Pipeline.Update(func() {
		n.tables.Bridges.Set(all.Bridges)
		n.tables.VRFs.Set(all.VRFs)
		n.tables.Policies.Set(all.Policies)
		n.tables.Gateways.Set(all.Gateways)
		n.tables.Served.Set(all.Served)
		n.tables.Routes.Update(n.rib.Update(rib.OVN, all.Routes, nil))
		n.tables.Steering.Set(all.Steering)
		n.tables.Announcements.Set(all.Announcements)
		for _, a := range n.d.cfg.Fabric.TrustedVTEPs {
			n.tables.VTEPs.Update(map[netip.Addr]intent.VTEP{a: {Addr: a}}, nil)
		}
	})
}

// patch hands a translation step to the tables as one change.
func (n *node) patch(d evpn.Difference) {
	t := n.tables
	if d.Empty() {
		t.Pipeline.Kick() // rows may be held for an in-sync that has just come
		return
	}
	t.Pipeline.Update(func() {
		apply(t.Bridges, d.Bridges)
		apply(t.VRFs, d.VRFs)
		apply(t.Policies, d.Policies)
		apply(t.Gateways, d.Gateways)
		apply(t.Served, d.Served)
		t.Routes.Update(n.rib.Update(rib.OVN, d.Routes.Set, d.Routes.Delete))
		apply(t.Steering, d.Steering)
		apply(t.Announcements, d.Announcements)
	})
}

func apply[K, V comparable](t *reconcile.Table[K, V], d evpn.Delta[K, V]) { t.Update(d.Set, d.Delete) }
