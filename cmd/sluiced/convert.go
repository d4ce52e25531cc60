package main

import (
	"math"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// noFlows is the size of the map of flows where there are none: its memory is used at once.
const noFlows = 1024

// ebpfConfig is the data plane's part of the configuration.
func (n *node) ebpfConfig(vxlan int) ebpf.Config {
	c := n.d.cfg
	out := ebpf.Config{
		Dir: c.Dataplane.BPFFS, Bridges: ports{n}, Networks: networkMTU, Devices: n.kernel, Log: n.d.log,
		Node: ebpf.Node{
			RouterMAC: n.id.RouterMAC, NextHopMAC: c.Fabric.NextHopMAC, VXLANIndex: uint32(vxlan), UnderlayMTU: uint16(n.mtu),
			ZeroChecksum: settings.ZeroChecksum(n.d.cfg, n.id.VTEP), FlowRate: c.LoadBalancing.NewFlowRate,
		},
		Limits: settings.Limits(c.Dataplane.Sizes),
	}
	if !c.LoadBalancing.Enabled {
		out.Limits.Flows = noFlows
	}
	switch c.Fabric.DF {
	case config.DFSet:
		out.Node.DF = ebpf.DFSet
	case config.DFClear:
		out.Node.DF = ebpf.DFClear
	default:
		out.Node.DF = ebpf.DFAuto
	}
	if n.id.VTEP.Is4() {
		out.Node.VTEP4 = n.id.VTEP
	} else {
		out.Node.VTEP6 = n.id.VTEP
	}
	return out
}

// networkMTU is that of a provider bridge's own device, which Open vSwitch keeps at the
// least of the bridge's ports.
func networkMTU(bridge intent.BridgeKey) uint16 {
	mtu, err := link.New(netns.Namespace{}).MTU(string(bridge))
	if err != nil {
		return 0
	}
	return uint16(min(mtu, math.MaxUint16))
}
