package main

import (
	"context"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// newKernelPath makes the drivers of VRFs on the kernel path. It does no I/O.
func (n *node) newKernelPath(guard func(context.Context, kernel.GuardedDevice) error) *kernel.Path {
	c := n.d.cfg
	constants := kernel.PathNode{RouterMAC: n.id.RouterMAC, NextHopMAC: c.Fabric.NextHopMAC, UnderlayMTU: n.mtu}
	if n.id.VTEP.Is4() {
		constants.VTEP4 = n.id.VTEP
	} else {
		constants.VTEP6 = n.id.VTEP
	}
	return kernel.NewPath(kernel.PathConfig{
		Ports: n.d.ovs, Guard: guard,
		Guarding: func(g kernel.GuardedDevice) (bool, error) {
			if n.dp == nil {
				return true, nil // a dry run, which has looked at no program
			}
			return n.dp.Guarding(ebpf.Guard{IfIndex: g.IfIndex, VNI: g.VNI, FromOVN: g.FromOVN, ICMPSource6: g.ICMPSource6})
		},
		Unguard: func(ifindex int) error { return n.dp.Unguard(ifindex) },
		KeepOut: n.keepOut, Whole: settings.Whole(n.d.cfg),
		Port: c.Fabric.Port, MTU: settings.BridgeMTU(n.mtu), Dummy: c.Kernel.Dummy, ZeroChecksum: settings.ZeroChecksum(n.d.cfg, n.id.VTEP),
	}, constants)
}

// guard keeps the node out of tenants' reach, and tenants out of the node's.
func (n *node) guard(_ context.Context, g kernel.GuardedDevice) error {
	return n.dp.Guard(ebpf.Guard{IfIndex: g.IfIndex, VNI: g.VNI, FromOVN: g.FromOVN, ICMPSource6: g.ICMPSource6})
}

func (n *node) drivers() tables.Drivers {
	d := tables.Drivers{}
	tables.Drive(d, intent.Bridges, n.links)
	tables.Drive(d, intent.KernelVRFs, n.kernel.VRFs())
	tables.Drive(d, intent.KernelGateways, n.kernel.Gateways())
	tables.Drive(d, intent.KernelRoutes, n.kernel.Routes())
	tables.Drive(d, intent.VRFs, n.dp.VRFs())
	tables.Drive(d, intent.Gateways, n.dp.Gateways())
	tables.Drive(d, intent.ServedNextHops, n.dp.Served())
	tables.Drive(d, intent.VTEPs, n.dp.VTEPs())
	tables.Drive(d, intent.BackendRoutes, n.dp.BackendRoutes())
	tables.Drive(d, intent.VIPs, n.dp.VIPs())
	tables.Drive(d, intent.Routes, n.dp.Routes())
	tables.Drive(d, intent.UnderlayDevices, n.dp.UnderlayDevices())
	tables.Drive(d, intent.SteeringFlows, ovs.NewSteering(n.d.ovs))
	tables.Drive(d, intent.Policies, n.speaker.Policies())
	tables.Drive(d, intent.Announcements, n.speaker.Announcements())
	tables.Drive(d, intent.LearnedRoutes, kernel.NewLearnedRoutes(netns.Namespace{}))
	return d
}

// lookAtKernelPath has the devices of the kernel path, and what is given to OVN, read
// back after a change of any device: what is damaged is made again.
func (n *node) lookAtKernelPath() {
	if n.turns.Load() {
		return // it is looked at when that is over, and would only take its time now
	}
	n.tables.Pipeline.Update(func() {
		n.relistLearned()
		any := false
		tables.Of(n.tables, intent.KernelVRFs).EachLocked(func(intent.VNI, intent.KernelVRF) { any = true })
		if any {
			tables.Of(n.tables, intent.KernelVRFs).Relist()
			tables.Of(n.tables, intent.KernelGateways).Relist()
			tables.Of(n.tables, intent.KernelRoutes).Relist() // the kernel takes those through a device that goes
		}
	})
}
