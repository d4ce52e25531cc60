package forwarding

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// bareBridge stands for Open vSwitch: the far end of the pair is left alone.
type bareBridge struct{ datapath string }

func (b bareBridge) Datapath(intent.BridgeKey) (string, error)                { return b.datapath, nil }
func (bareBridge) OurPorts() (map[intent.BridgeKey]string, error)             { return nil, nil }
func (bareBridge) HasPort(string) (intent.BridgeKey, bool)                    { return "", false }
func (bareBridge) EnsurePort(context.Context, intent.BridgeKey, string) error { return nil }
func (bareBridge) CheckPort(context.Context, intent.BridgeKey, string) error  { return nil }
func (bareBridge) RemovePort(context.Context, intent.BridgeKey) error         { return nil }

type portFinder struct{ links *kernel.BridgeLinks }

func (p portFinder) Port(b intent.BridgeKey) (ebpf.Port, bool) {
	i, ok := p.links.IfIndex(b)
	return ebpf.Port{IfIndex: uint32(i), MTU: 9216}, ok
}

// sluice makes the node with the drivers of the product; its pins are in a
// directory of its own below bpffs.
func sluice(bpffs string) forwarder {
	return func(ctx context.Context, s *site, offloads bool) error {
		ns := netns.Named(s.node.name)
		ports := bareBridge{"system"}
		if !offloads {
			ports.datapath = "netdev"
		}
		var dp *ebpf.Dataplane
		links := kernel.NewBridgeLinks(kernel.BridgeLinksConfig{Namespace: ns, Ports: ports, MTU: 9216,
			Attach: func(_ context.Context, _ string, ifindex int) error { return dp.Attach(ebpf.OverlayIn, ifindex) }})
		fabric := kernel.NewFabric(kernel.FabricConfig{Namespace: ns, RouterMAC: routerMAC, Attach: func(_ context.Context, _ string, ifindex int) (err error) {
			dp, err = ebpf.Load(ebpf.Config{
				Dir: filepath.Join(bpffs, "forwarding_"+s.name), Bridges: portFinder{links}, Log: slog.New(slog.DiscardHandler),
				Node: ebpf.Node{RouterMAC: routerMAC, NextHopMAC: nextHopMAC, VTEP4: nodeVTEP, VXLANIndex: uint32(ifindex), UnderlayMTU: underlayIP, ZeroChecksum: true},
			})
			if err != nil {
				return err
			}
			s.undo = append(s.undo, dp.Close)
			return dp.Attach(ebpf.FabricIn, ifindex)
		}})
		if _, err := fabric.Ensure(ctx); err != nil {
			return err
		}
		for _, err := range links.Apply(ctx, []reconcile.Row[intent.BridgeKey, intent.Bridge]{{Key: bridge, Value: intent.Bridge{Name: bridge}}}) {
			if err != nil {
				return err
			}
		}
		if err := fill(ctx, dp); err != nil {
			return err
		}
		return s.node.ip(ctx, fmt.Sprintf("link set sluice0-ovs netns %s", s.ovn.name))
	}
}

// fill writes the rows of the one VRF.
func fill(ctx context.Context, d *ebpf.Dataplane) error {
	gw := intent.GatewayKey{Bridge: bridge, MAC: gatewayMAC}
	far := intent.NewNextHopSet(intent.NextHop{VTEP: farVTEP, VNI: vni, RouterMAC: farMAC})
	var routes []reconcile.Row[intent.RouteKey, intent.Route]
	route := func(host netip.Addr, local bool) {
		k := intent.NewHostKey(vni, host)
		r := intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: far}
		if local {
			r = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: gw}
		}
		routes = append(routes, reconcile.Row[intent.RouteKey, intent.Route]{Key: k, Value: r})
	}
	for _, f := range families {
		route(f.near, true)
		route(f.far, false)
		for i := range otherHosts {
			route(f.others(i), i%2 == 0)
		}
	}
	for _, errs := range [][]error{
		d.VRFs().Apply(ctx, []reconcile.Row[intent.VNI, intent.VRF]{{Key: vni, Value: intent.VRF{VNI: vni, Index: 1}}}),
		d.Gateways().Apply(ctx, []reconcile.Row[intent.GatewayKey, intent.Gateway]{{Key: gw, Value: intent.Gateway{Key: gw, VNI: vni, Kind: intent.GatewayCRLRP}}}),
		d.VTEPs().Apply(ctx, []reconcile.Row[netip.Addr, intent.VTEP]{{Key: farVTEP, Value: intent.VTEP{Addr: farVTEP}}}),
		d.Routes().Apply(ctx, routes),
	} {
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
	}
	return nil
}
