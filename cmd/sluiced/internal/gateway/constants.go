package gateway

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

// EBPF is the data plane's part of the configuration.
func (g *Gateway) EBPF(vxlan int) ebpf.Config {
	c := g.cfg
	out := ebpf.Config{
		Dir: c.Dataplane.BPFFS, Bridges: ports{g}, Networks: networkMTU, Devices: g.kernel, Log: g.log,
		Node: ebpf.Node{
			RouterMAC: g.id.RouterMAC, NextHopMAC: c.Fabric.NextHopMAC, VXLANIndex: uint32(vxlan), UnderlayMTU: uint16(g.mtu),
			ZeroChecksum: settings.ZeroChecksum(g.cfg, g.id.VTEP), FlowRate: c.LoadBalancing.NewSessionRate,
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
	if g.id.VTEP.Is4() {
		out.Node.VTEP4 = g.id.VTEP
	} else {
		out.Node.VTEP6 = g.id.VTEP
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

// Open opens the programs.
func (g *Gateway) Open(vxlan int) (*ebpf.Dataplane, error) { return ebpf.Open(g.EBPF(vxlan)) }

// Constants are those of the programs.
func (g *Gateway) Constants(vxlan int) ebpf.Node { return g.EBPF(vxlan).Node }
