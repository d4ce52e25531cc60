// Package programs measures the nanoseconds that each program takes for a
// packet, against a program that only redirects.
package programs

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"

	cilium "github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Result is one line of the table.
type Result struct {
	Program ebpf.Program
	Family  int  // of the packet: 4 or 6
	Host    bool // the packet's addresses have routes of their own; else the longest prefix is looked for
	Miss    bool // the packet is the host's, and not for an exposed address
	Cold    bool // the programs remember nothing of the packet before: each is as the first of a flow
	Routes  int
	VRFs    int
	Timing  ebpf.Timing
}

// Goal is the most that Timing.Ratio should be.
func (r Result) Goal() float64 {
	switch {
	case r.Miss: // all of the host's packets pay it
		return 2
	case r.Host:
		return 3.5
	}
	return 5
}

// The MAC addresses change places in each program, so that what comes out goes in again.
var (
	near = intent.MAC{2, 0, 0, 0, 0, 1}
	far  = intent.MAC{2, 0, 0, 0, 0, 2}
	vtep = netip.MustParseAddr("192.0.2.9")
	gw   = intent.GatewayKey{Bridge: "br-ex", MAC: near}
)

const vni = intent.VNI(1001)

type bridge struct{}

func (bridge) Port(intent.BridgeKey) (ebpf.Port, bool) { return ebpf.Port{IfIndex: 1, MTU: 1500}, true }

// Run measures every combination in a directory on a bpffs that is the bench's own.
func Run(ctx context.Context, dir string, rounds int) (out []Result, err error) {
	for _, vrfs := range []int{1, 1000} {
		for _, routes := range []int{1, 1000, 100_000} {
			for _, host := range []bool{true, false} {
				sub := filepath.Join(dir, fmt.Sprintf("bench_%d_%d_%t", vrfs, routes, host))
				rows, err := one(ctx, sub, Result{VRFs: vrfs, Routes: routes, Host: host}, rounds)
				if err != nil {
					return out, fmt.Errorf("%d VRFs, %d routes: %w", vrfs, routes, err)
				}
				out = append(out, rows...)
			}
		}
	}
	return out, nil
}

// RunCold measures the prefixes as Run does, with the programs' memory of them
// switched off.
func RunCold(ctx context.Context, dir string, rounds int) (out []Result, err error) {
	for _, vrfs := range []int{1, 1000} {
		sub := filepath.Join(dir, fmt.Sprintf("cold_%d", vrfs))
		rows, err := one(ctx, sub, Result{VRFs: vrfs, Routes: 100_000, Cold: true}, rounds)
		if err != nil {
			return out, fmt.Errorf("%d VRFs, cold: %w", vrfs, err)
		}
		out = append(out, rows...)
	}
	return out, nil
}

// switchCacheOff sets the generation of the prefixes to the one that is never kept.
func switchCacheOff(dir string) error {
	m, err := cilium.LoadPinnedMap(filepath.Join(dir, "prefix_gen_v1"), nil)
	if err != nil {
		return err
	}
	defer m.Close()
	return m.Put(uint32(0), uint32(0))
}

func load(dir string) (*ebpf.Dataplane, error) { return loadLimited(dir, ebpf.Limits{}) }

func loadLimited(dir string, limits ebpf.Limits) (*ebpf.Dataplane, error) {
	return ebpf.Load(ebpf.Config{Dir: dir, Limits: limits, Bridges: bridge{}, Log: slog.New(slog.DiscardHandler), Node: ebpf.Node{
		RouterMAC: near, NextHopMAC: far, VTEP4: netip.MustParseAddr("192.0.2.1"), VXLANIndex: 1, UnderlayMTU: 1500}})
}

// one measures what has the routes of kind, for each program and family.
func one(ctx context.Context, dir string, kind Result, rounds int) (out []Result, err error) {
	d, err := load(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := fill(ctx, d, kind.VRFs, kind.Routes, kind.Host); err != nil {
		return nil, err
	}
	if kind.Cold {
		if err := switchCacheOff(dir); err != nil {
			return nil, fmt.Errorf("switch the cache off: %w", err)
		}
	}
	tr, err := ebpf.OpenTracer(dir, ebpf.Fabric)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	for _, family := range []int{4, 6} {
		for _, p := range ebpf.Programs() {
			req := ebpf.TraceRequest{Program: p, Frame: packet(p, family), VTEP: vtep, VNI: vni}
			if p == ebpf.OverlayIn {
				req.VTEP = netip.Addr{}
			}
			timing, err := tr.Measure(req, rounds)
			if err != nil {
				return nil, err
			}
			row := kind
			row.Program, row.Family, row.Timing = p, family, timing
			out = append(out, row)
		}
	}
	return out, nil
}

// The packet's own addresses: near ones lead into OVN, far ones to the peer.
var (
	near4, far4 = netip.MustParseAddr("10.10.0.5"), netip.MustParseAddr("10.20.0.9")
	near6, far6 = netip.MustParseAddr("fd00:10::5"), netip.MustParseAddr("fd00:20::9")
)

func packet(p ebpf.Program, family int) []byte {
	src, dst := near4, far4
	if family == 6 {
		src, dst = near6, far6
	}
	if p == ebpf.FabricIn {
		return frame(dst, src, far, near)
	}
	return frame(src, dst, near, far)
}

func frame(src, dst netip.Addr, srcMAC, dstMAC intent.MAC) []byte {
	eth := &layers.Ethernet{SrcMAC: srcMAC[:], DstMAC: dstMAC[:], EthernetType: layers.EthernetTypeIPv4}
	l4 := &layers.UDP{SrcPort: 40000, DstPort: 7777}
	var l3 gopacket.SerializableLayer
	if src.Is4() {
		ip := &layers.IPv4{Version: 4, TTL: 255, Protocol: layers.IPProtocolUDP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
		l3 = ip
		_ = l4.SetNetworkLayerForChecksum(ip)
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 255, NextHeader: layers.IPProtocolUDP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
		l3 = ip
		_ = l4.SetNetworkLayerForChecksum(ip)
	}
	b := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, opts, eth, l3, l4, gopacket.Payload("0123456789")); err != nil {
		panic(err) // the layers are constant
	}
	return b.Bytes()
}

func firstError(steps ...[]error) error {
	for _, errs := range steps {
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func fill(ctx context.Context, d *ebpf.Dataplane, vrfs, routes int, host bool) error {
	var vrfRows []reconcile.Row[intent.VNI, intent.VRF]
	for i := range vrfs {
		v := vni + intent.VNI(i)
		vrfRows = append(vrfRows, reconcile.Row[intent.VNI, intent.VRF]{Key: v, Value: intent.VRF{VNI: v, Index: uint16(i + 1)}})
	}
	return firstError(
		d.VRFs().Apply(ctx, vrfRows),
		d.Gateways().Apply(ctx, []reconcile.Row[intent.GatewayKey, intent.Gateway]{{Key: gw, Value: intent.Gateway{Key: gw, VNI: vni, Kind: intent.GatewayCRLRP}}}),
		d.VTEPs().Apply(ctx, []reconcile.Row[netip.Addr, intent.VTEP]{{Key: vtep, Value: intent.VTEP{Addr: vtep}}}),
		d.Routes().Apply(ctx, routeRows(vrfs, routes, host)))
}

// routeRows are the routes of the packet, and others of both families spread over the VRFs.
func routeRows(vrfs, routes int, host bool) (rows []reconcile.Row[intent.RouteKey, intent.Route]) {
	hops := intent.NewNextHopSet(intent.NextHop{VTEP: vtep, VNI: vni, RouterMAC: far})
	add := func(v intent.VNI, a netip.Addr, bits int, local bool) {
		k := intent.NewHostKey(v, a)
		if !host {
			k = intent.NewRouteKey(v, netip.PrefixFrom(a, bits))
		}
		r := intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: hops}
		if local {
			r = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: gw}
		}
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Route]{Key: k, Value: r})
	}
	add(vni, near4, 24, true)
	add(vni, far4, 24, false)
	add(vni, near6, 64, true)
	add(vni, far6, 64, false)
	for i := range routes - 1 {
		v := vni + intent.VNI(i%vrfs)
		x, y, z := byte(i>>16), byte(i>>8), byte(i)
		add(v, netip.AddrFrom4([4]byte{11 + x, y, z, 1}), 24, false)
		add(v, netip.AddrFrom16([16]byte{0xfd, 1, 0, x, y, z, 15: 1}), 64, false)
	}
	return rows
}
