package main

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// restartLinger is how long routes of a VTEP that was there before a restart,
// and of which BGP shows nothing now, are kept: it may be restarting, too.
const restartLinger = 30 * time.Second

// takeImports is called by the speaker with the import tables and their changes.
func (n *node) takeImports(u bgp.ImportUpdate) {
	if u.InSync && !n.bgpSync.Load() {
		end := time.Now().Add(restartLinger)
		n.linger.Store(&end)
		time.AfterFunc(restartLinger, n.tables.pipeline.Kick)
	}
	n.bgpSync.Store(u.InSync)
	word := "receiving"
	if u.InSync {
		word = "in-sync"
	}
	n.d.reg.SetCondition("bgp", u.InSync, word, "")
	n.tables.pipeline.Update(func() {
		for _, v := range u.VTEPs {
			n.tables.vteps.Update(map[netip.Addr]intent.VTEP{v.Addr: v}, nil)
		}
		for _, a := range u.GoneVTEPs {
			if !slices.Contains(n.d.cfg.Fabric.TrustedVTEPs, a) {
				n.tables.vteps.Update(nil, []netip.Addr{a})
			}
		}
		set := make(map[intent.RouteKey]intent.Route, len(u.Upserts))
		for _, r := range u.Upserts {
			set[r.Key] = r
		}
		n.tables.routes.Update(n.rib.Update(rib.BGP, set, u.Deletes))
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
	if err := n.tables.pipeline.WaitPass(ctx); err != nil {
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
			n.tables.pipeline.Update(func() {
				n.tables.bridges.Relist()
				n.tables.steering.Relist()
			})
		}
	}
}

func (d *daemon) ovnInSync() bool {
	s, ok := d.inSyncNow.Load().(ovn.InSync)
	return ok && s.SB && s.VSwitch
}

func (d *daemon) underlayMTU(ns netns.Namespace, vtep netip.Addr) (int, error) {
	if d.cfg.Fabric.MTU != 0 {
		return int(d.cfg.Fabric.MTU), nil
	}
	to := vtep
	if len(d.cfg.BGP.Neighbors) > 0 {
		to = d.cfg.BGP.Neighbors[0].Address
	}
	u, err := link.New(ns).Towards(to)
	return u.MTU, err
}

// ports resolves provider bridges for the map rows.
type ports struct {
	n   *node
	mtu int
}

func (p ports) Port(bridge intent.BridgeKey) (ebpf.Port, bool) {
	i, ok := p.n.links.IfIndex(bridge)
	return ebpf.Port{IfIndex: uint32(i), MTU: uint16(p.mtu)}, ok
}

func (n *node) ebpfConfig(vxlan, mtu int) ebpf.Config {
	c := n.d.cfg
	out := ebpf.Config{
		Dir: c.Dataplane.BPFFS, Bridges: ports{n, max(mtu, leastBridgeMTU)}, Log: n.d.log,
		Node: ebpf.Node{
			RouterMAC: n.id.routerMAC, NextHopMAC: c.Fabric.NextHopMAC, VXLANIndex: uint32(vxlan), UnderlayMTU: uint16(mtu),
			ZeroChecksum: c.Fabric.UDPChecksum == config.ChecksumOff || c.Fabric.UDPChecksum == config.ChecksumAuto && n.id.vtep.Is4(),
		},
		Limits: ebpf.Limits{
			VRFs: c.Dataplane.Sizes.VRFs, Gateways: c.Dataplane.Sizes.Gateways, VTEPs: c.Dataplane.Sizes.VTEPs,
			Served: c.Dataplane.Sizes.Served, Hosts: c.Dataplane.Sizes.Hosts, Prefixes: c.Dataplane.Sizes.Prefixes, NextHops: c.Dataplane.Sizes.NextHops,
		},
	}
	switch c.Fabric.DF {
	case config.DFSet:
		out.Node.DF = ebpf.DFSet
	case config.DFClear:
		out.Node.DF = ebpf.DFClear
	default:
		out.Node.DF = ebpf.DFAuto
	}
	if n.id.vtep.Is4() {
		out.Node.VTEP4 = n.id.vtep
	} else {
		out.Node.VTEP6 = n.id.vtep
	}
	return out
}
