package gateway

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
func (g *Gateway) takeImports(u bgp.ImportUpdate) {
	g.stale.Note(u)
	if len(u.VTEPs)+len(u.GoneVTEPs) > 0 {
		g.nextHops.Look()
	}
	g.bgpSync.Store(u.InSync)
	g.tables.Pipeline.Update(func() {
		for _, v := range u.VTEPs {
			tables.Of(g.tables, intent.VTEPs).Update(map[netip.Addr]intent.VTEP{v.Addr: v}, nil)
		}
		for _, a := range u.GoneVTEPs {
			if !slices.Contains(g.cfg.Fabric.TrustedVTEPs, a) {
				tables.Of(g.tables, intent.VTEPs).Update(nil, []netip.Addr{a})
			}
		}
		set := make(map[intent.RouteKey]intent.Route, len(u.Upserts))
		for _, r := range u.Upserts {
			set[r.Key] = r
		}
		g.tables.UpdateRoutes(g.rib.Update(rib.BGP, set, u.Deletes))
		learned := g.learned.Touch(slices.Collect(maps.Keys(set)), u.Deletes)
		tables.Of(g.tables, intent.LearnedRoutes).Update(learned.Set, learned.Delete)
		if u.InSync && !g.imported.Load() {
			g.tables.TurnCame()
		}
	})
	g.imported.Store(u.InSync)
}

// watchSwitch reads flows and ports back when Open vSwitch says that they may
// have changed: an ovs-vswitchd that was restarted has none.
func (g *Gateway) watchSwitch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.sw.Changes():
			g.tables.RelistSwitch()
		}
	}
}
