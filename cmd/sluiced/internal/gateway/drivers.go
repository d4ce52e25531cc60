package gateway

import (
	"context"
	"net/netip"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/underlay"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// newKernelPath makes the drivers of VRFs on the kernel path. It does no I/O.
func (g *Gateway) newKernelPath(guard func(context.Context, kernel.GuardedDevice) error) *kernel.Path {
	c := g.cfg
	constants := kernel.PathNode{RouterMAC: g.id.RouterMAC, NextHopMAC: c.Fabric.NextHopMAC, UnderlayMTU: g.mtu}
	if g.id.VTEP.Is4() {
		constants.VTEP4 = g.id.VTEP
	} else {
		constants.VTEP6 = g.id.VTEP
	}
	return kernel.NewPath(kernel.PathConfig{
		Ports: g.sw, Guard: guard,
		Guarding: func(d kernel.GuardedDevice) (bool, error) {
			if g.dp == nil {
				return true, nil // a dry run, which has looked at no program
			}
			return g.dp.Guarding(ebpf.Guard{IfIndex: d.IfIndex, VNI: d.VNI, FromOVN: d.FromOVN, ICMPSource6: d.ICMPSource6})
		},
		Unguard: func(ifindex int) error { return g.dp.Unguard(ifindex) },
		KeepOut: func() error { return g.tunnel.KeepOut() }, Whole: settings.PerVRF(g.cfg),
		Port: c.Fabric.Port, MTU: settings.BridgeMTU(g.mtu), Dummy: c.Kernel.Dummy, ZeroChecksum: settings.ZeroChecksum(g.cfg, g.id.VTEP),
	}, constants)
}

// guard keeps the node out of tenants' reach, and tenants out of the node's.
func (g *Gateway) guard(_ context.Context, d kernel.GuardedDevice) error {
	return g.dp.Guard(ebpf.Guard{IfIndex: d.IfIndex, VNI: d.VNI, FromOVN: d.FromOVN, ICMPSource6: d.ICMPSource6})
}

func (g *Gateway) drivers() tables.Drivers {
	d := tables.Drivers{}
	tables.Drive(d, intent.Bridges, g.links)
	tables.Drive(d, intent.KernelVRFs, g.kernel.VRFs())
	tables.Drive(d, intent.KernelGateways, g.kernel.Gateways())
	tables.Drive(d, intent.KernelRoutes, g.kernel.Routes())
	tables.Drive(d, intent.VRFs, g.dp.VRFs())
	tables.Drive(d, intent.Gateways, g.dp.Gateways())
	tables.Drive(d, intent.ServedNextHops, g.dp.Served())
	tables.Drive(d, intent.VTEPs, g.dp.VTEPs())
	tables.Drive(d, intent.BackendRoutes, g.dp.BackendRoutes())
	tables.Drive(d, intent.VIPs, g.dp.VIPs())
	tables.Drive(d, intent.Routes, g.dp.Routes())
	tables.Drive(d, intent.UnderlayDevices, g.dp.UnderlayDevices())
	tables.Drive(d, intent.SteeringFlows, ovs.NewSteering(g.sw))
	tables.Drive(d, intent.Policies, g.speaker.Policies())
	tables.Drive(d, intent.Announcements, g.speaker.Announcements())
	tables.Drive(d, intent.LearnedRoutes, kernel.NewLearnedRoutes(netns.Namespace{}))
	return d
}

// Dry makes the tables that only read, by what is pinned, and gives them what OVN asks for. BGP is
// not asked: nothing says what it has.
func (g *Gateway) Dry(pinned *ebpf.Inspection) *tables.Tables {
	g.links = g.newLinks(nil)
	d := tables.Drivers{}
	tables.Drive(d, intent.Bridges, reconcile.ReadOnly(g.links))
	tables.Drive(d, intent.KernelVRFs, reconcile.ReadOnly(g.kernel.VRFs()))
	tables.Drive(d, intent.KernelGateways, reconcile.ReadOnly(g.kernel.Gateways()))
	tables.Drive(d, intent.KernelRoutes, reconcile.ReadOnly(g.kernel.Routes()))
	tables.Drive(d, intent.VRFs, reconcile.ReadOnly(pinned.VRFs()))
	tables.Drive(d, intent.Gateways, reconcile.ReadOnly(pinned.Gateways()))
	tables.Drive(d, intent.ServedNextHops, reconcile.ReadOnly(pinned.Served()))
	tables.Drive(d, intent.VTEPs, reconcile.ReadOnly(pinned.VTEPs()))
	tables.Drive(d, intent.BackendRoutes, reconcile.ReadOnly(pinned.BackendRoutes()))
	tables.Drive(d, intent.VIPs, reconcile.ReadOnly(pinned.VIPs()))
	tables.Drive(d, intent.Routes, reconcile.ReadOnly(pinned.Routes()))
	tables.Drive(d, intent.UnderlayDevices, reconcile.ReadOnly(pinned.UnderlayDevices()))
	tables.Drive(d, intent.SteeringFlows, reconcile.ReadOnly(ovs.NewSteering(g.sw)))
	tables.Drive(d, intent.LearnedRoutes, reconcile.ReadOnly(kernel.NewLearnedRoutes(netns.Namespace{})))
	never := func(intent.NextHopSet, func(netip.Addr) bool) bool { return false }
	g.tables = tables.New(d, tables.Sources{
		OVN: g.steps.AllInSync, BGP: func() bool { return false }, Pending: g.pending.Has, Lingers: never, LearnedBy: g.learned.VRF,
	}, tables.Options{Status: g.reg, Log: g.log, Dry: true})
	g.want(g.steps.Asked())
	g.tables.Pipeline.Update(func() { tables.Of(g.tables, intent.UnderlayDevices).Set(underlay.Devices(g.cfg, g.log)) })
	return g.tables
}
