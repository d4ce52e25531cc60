package main

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// restartLinger is how long routes of a VTEP that was there before a restart,
// and of which BGP shows nothing now, are kept: it may be restarting, too.
const restartLinger = 30 * time.Second

// takeImports is called by the speaker with the import tables and their changes.
func (n *node) takeImports(u bgp.ImportUpdate) {
	if u.InSync && !n.bgpSync.Load() {
		end := time.Now().Add(restartLinger)
		n.linger.Store(&end)
		time.AfterFunc(restartLinger, n.tables.Pipeline.Kick)
	}
	n.bgpSync.Store(u.InSync)
	word := "receiving"
	if u.InSync {
		word = "in-sync"
	}
	n.d.reg.SetCondition("bgp", u.InSync, word, "")
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
		n.tables.Routes.Update(n.rib.Update(rib.BGP, set, u.Deletes))
	})
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

// releaseSpeaker lets the sessions start once what was programmed before a
// restart has been compared and the announcements are handed over.
func (n *node) releaseSpeaker(ctx context.Context) error {
	for !n.d.ovnInSync() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := n.tables.Pipeline.WaitPass(ctx); err != nil {
		return nil
	}
	n.speaker.Ready()
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
			n.tables.Pipeline.Update(func() {
				n.tables.Bridges.Relist()
				n.tables.Steering.Relist()
			})
		}
	}
}

func (d *daemon) ovnInSync() bool {
	s, ok := d.inSyncNow.Load().(ovn.InSync)
	return ok && s.SB && s.VSwitch
}
