package main

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// takeImports is called by the speaker with the import tables and their changes.
func (n *node) takeImports(u bgp.ImportUpdate) {
	n.linger.note(u)
	if len(u.VTEPs)+len(u.GoneVTEPs) > 0 {
		n.nextHops.look()
	}
	n.bgpSync.Store(u.InSync)
	n.tables.Pipeline.Update(func() {
		for _, v := range u.VTEPs {
			tables.Of(n.tables, intent.VTEPs).Update(map[netip.Addr]intent.VTEP{v.Addr: v}, nil)
		}
		for _, a := range u.GoneVTEPs {
			if !slices.Contains(n.d.cfg.Fabric.TrustedVTEPs, a) {
				tables.Of(n.tables, intent.VTEPs).Update(nil, []netip.Addr{a})
			}
		}
		set := make(map[intent.RouteKey]intent.Route, len(u.Upserts))
		for _, r := range u.Upserts {
			set[r.Key] = r
		}
		n.tables.UpdateRoutes(n.rib.Update(rib.BGP, set, u.Deletes))
		learned := n.learned.Touch(slices.Collect(maps.Keys(set)), u.Deletes)
		tables.Of(n.tables, intent.LearnedRoutes).Update(learned.Set, learned.Delete)
		if u.InSync && !n.imported.Load() {
			n.tables.TurnCame()
		}
	})
	n.imported.Store(u.InSync)
}

// watchSwitch reads flows and ports back when Open vSwitch says that they may
// have changed: an ovs-vswitchd that was restarted has none.
func (n *node) watchSwitch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.d.ovs.Changes():
			n.relistSwitch()
		}
	}
}

func (n *node) relistSwitch() {
	n.tables.Pipeline.Update(func() {
		tables.Of(n.tables, intent.Bridges).Relist()
		tables.Of(n.tables, intent.SteeringFlows).Relist()
	})
}
