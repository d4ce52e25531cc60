package main

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// restartLinger is how long routes of a VTEP that was there before a restart,
// and of which BGP shows nothing now, are kept: it may be restarting, too.
const restartLinger = 30 * time.Second

// takeImports is called by the speaker with the import tables and their changes.
func (n *node) takeImports(u bgp.ImportUpdate) {
	if u.InSync && n.linger.Load() == nil {
		end := time.Now().Add(restartLinger)
		n.linger.Store(&end)
		close(n.lingering)
	}
	n.bgpSync.Store(u.InSync)
	n.tables.Pipeline.Update(func() {
		for _, v := range u.VTEPs {
			n.tables.VTEPs.Update(map[netip.Addr]intent.VTEP{v.Addr: v}, nil)
		}
		for _, a := range u.GoneVTEPs {
			if !slices.Contains(n.d.cfg.Fabric.TrustedVTEPs, a) {
				n.tables.VTEPs.Update(nil, []netip.Addr{a})
			}
		}
		set := make(map[intent.RouteKey]intent.Route, len(u.Upserts))
		for _, r := range u.Upserts {
			set[r.Key] = r
		}
		n.tables.UpdateRoutes(n.rib.Update(rib.BGP, set, u.Deletes))
		apply(n.tables.LearnedRoutes, n.learned.Touch(slices.Collect(maps.Keys(set)), u.Deletes))
		if u.InSync && !n.imported.Load() {
			n.tables.TurnCame()
		}
	})
	n.imported.Store(u.InSync)
}

// lingers tells whether a route that BGP does not show is kept for a while.
func (n *node) lingers(hops intent.NextHopSet, known func(netip.Addr) bool) bool {
	end := n.linger.Load()
	if end == nil || time.Now().After(*end) {
		return false
	}
	for _, h := range hops.All() {
		if known(h.VTEP) {
			return false
		}
	}
	return true
}

// endLinger has the tables looked at again when the routes of VTEPs that have not
// come back are kept no longer.
func (n *node) endLinger(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.lingering:
	}
	end := time.NewTimer(time.Until(*n.linger.Load()))
	defer end.Stop()
	select {
	case <-ctx.Done():
	case <-end.C:
		n.tables.Pipeline.Kick()
	}
	return nil
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
		n.tables.Bridges.Relist()
		n.tables.Steering.Relist()
	})
}

func (d *daemon) ovnInSync() bool {
	s := d.inSyncNow.Load()
	return s != nil && s.SB && s.VSwitch
}
