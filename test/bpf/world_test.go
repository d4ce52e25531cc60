// Package bpf_test runs the programs over packets with PROG_TEST_RUN: rows of a
// packet in, a verdict, a packet out and what was counted.
package bpf_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// The devices of the test: the loopback device, which PROG_TEST_RUN puts packets
// on, stands for sluice0. Nothing is sent out, so the others need not exist.
const (
	lo     = 1
	sluice = 9
	vxlan  = 77
)

var (
	routerMAC  = mac("02:00:00:00:00:01")
	nextHopMAC = mac("02:00:00:00:00:02")
	peerMAC    = mac("02:00:00:00:00:99")
	gwMAC      = mac("fa:16:3e:00:00:01")
	gw2MAC     = mac("fa:16:3e:00:00:02")
	blueMAC    = mac("fa:16:3e:00:00:03")
	local4     = addr("192.0.2.1")
	local6     = addr("2001:db8:ffff::1")
	peer4      = addr("192.0.2.9")
	peer4b     = addr("192.0.2.10")
	peer6      = addr("2001:db8:ffff::9")

	gw     = intent.GatewayKey{Bridge: "br-ex", MAC: gwMAC}
	gw2    = intent.GatewayKey{Bridge: "br-two", VLAN: 100, MAC: gw2MAC}
	gwVLAN = intent.GatewayKey{Bridge: "br-ex", VLAN: 300, MAC: gwMAC}
	blueGW = intent.GatewayKey{Bridge: "br-ex", MAC: blueMAC}
)

const (
	red    = intent.VNI(1001)
	blue   = intent.VNI(1002)
	tagged = intent.VNI(1003)
)

func mac(s string) intent.MAC {
	m, err := intent.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

type bridges struct{}

func (bridges) Port(b intent.BridgeKey) (ebpf.Port, bool) {
	switch b {
	case "br-ex":
		return ebpf.Port{IfIndex: lo, MTU: 1500}, true
	case "br-two":
		return ebpf.Port{IfIndex: sluice, MTU: 1400}, true
	}
	return ebpf.Port{}, false
}

func node() ebpf.Node {
	return ebpf.Node{RouterMAC: routerMAC, NextHopMAC: nextHopMAC, VTEP4: local4, VTEP6: local6, VXLANIndex: vxlan,
		UnderlayMTU: 1500, ICMPRate: 1_000_000, ICMPBurst: 1_000_000}
}

// bpffs mounts a bpf file system of the test's own.
func bpffs(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		t.Fatalf("mount a bpf file system (root is needed): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return filepath.Join(dir, "sluice")
}

func load(t testing.TB, cfg ebpf.Config) *ebpf.Dataplane {
	t.Helper()
	if cfg.Bridges == nil {
		cfg.Bridges = bridges{}
	}
	cfg.Log = slog.New(slog.DiscardHandler)
	own := nightly.On() || !isEmpty(t, cfg.Dir) // what the test itself has pinned is its own
	var k *kit
	if !own {
		k = takeKit(t, cfg)
	}
	d, err := ebpf.Load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if k == nil && !own {
		k = openKit(t, cfg)
	}
	if k != nil {
		k.keep(t)
	}
	t.Cleanup(func() { d.Close() }) // runs before the kit is emptied
	return d
}

// apply applies rows and fails on the first error.
func apply[K, V comparable](t testing.TB, d reconcile.Driver[K, V], rows map[K]V) {
	t.Helper()
	var list []reconcile.Row[K, V]
	for k, v := range rows {
		list = append(list, reconcile.Row[K, V]{Key: k, Value: v})
	}
	for _, err := range d.Apply(context.Background(), list) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func hop(vtep netip.Addr, vni intent.VNI) intent.NextHop {
	return intent.NextHop{VTEP: vtep, VNI: vni, RouterMAC: peerMAC}
}

func routes(list ...intent.Route) map[intent.RouteKey]intent.Route {
	out := map[intent.RouteKey]intent.Route{}
	for _, r := range list {
		out[r.Key] = r
	}
	return out
}

func local(vni intent.VNI, p string, g intent.GatewayKey) intent.Route {
	return intent.Route{Key: intent.NewRouteKey(vni, prefix(p)), Kind: intent.RouteLocal, Gateway: g}
}

func remote(vni intent.VNI, p string, hops ...intent.NextHop) intent.Route {
	return intent.Route{Key: intent.NewRouteKey(vni, prefix(p)), Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(hops...)}
}

func block(vni intent.VNI, p string) intent.Route {
	return intent.Route{Key: intent.NewRouteKey(vni, prefix(p)), Kind: intent.RouteBlock}
}

func gateways() map[intent.GatewayKey]intent.Gateway {
	return map[intent.GatewayKey]intent.Gateway{
		gw: {Key: gw, VNI: red, Kind: intent.GatewayCRLRP, LogicalPort: "cr-lrp-red", Addr4: addr("172.24.4.10"), Addr6: addr("2001:db8:24::10"),
			ICMPSource4: addr("172.24.4.1"), ICMPSource6: addr("2001:db8:24::1")},
		gw2:    {Key: gw2, VNI: red, Kind: intent.GatewayCRLRP, LogicalPort: "cr-lrp-red2", Addr4: addr("172.24.5.10"), Addr6: addr("2001:db8:25::10")},
		gwVLAN: {Key: gwVLAN, VNI: tagged, Kind: intent.GatewayL3, LogicalPort: "cr-lrp-tag", Addr4: addr("172.24.6.10"), MTU: 1450},
		blueGW: {Key: blueGW, VNI: blue, Kind: intent.GatewayCRLRP, LogicalPort: "cr-lrp-blue"},
	}
}

func served() map[intent.ServedKey]intent.Served {
	out := map[intent.ServedKey]intent.Served{}
	add := func(g intent.GatewayKey, p string, answer bool) {
		k := intent.ServedKey{Gateway: g, Prefix: prefix(p)}
		out[k] = intent.Served{Key: k, Answer: answer}
	}
	add(gw, "172.24.4.0/24", true)
	add(gw, "172.24.4.10/32", false)
	add(gw, "2001:db8:24::/64", true)
	add(gw, "2001:db8:24::10/128", false)
	add(gw, "fe80::1/128", true)
	add(gwVLAN, "172.24.6.1/32", true)
	add(gw.Segment(), "172.24.4.20/32", false)
	add(gw.Segment(), "2001:db8:24::20/128", false)
	// Next hops that are listed are answered whoever has them.
	add(gw.Segment(), "fe80::1/128", false)
	add(gwVLAN.Segment(), "172.24.6.1/32", false)
	add(gwVLAN.Segment(), "172.24.4.21/32", false)
	return out
}

func worldRoutes() map[intent.RouteKey]intent.Route {
	return routes(
		local(red, "10.10.0.0/24", gw), local(red, "10.10.0.5/32", gw), block(red, "10.10.0.66/32"),
		local(red, "10.11.0.0/24", gw2), local(red, "fd00:10::/64", gw), local(red, "fd00:10::5/128", gw), local(red, "fd00:11::/64", gw2),
		remote(red, "10.20.0.0/24", hop(peer4, 5001)), remote(red, "10.20.0.9/32", hop(peer4, 5001)),
		remote(red, "10.21.0.0/24", hop(peer4, 5001), hop(peer4b, 5002)), remote(red, "10.26.0.0/24", hop(peer6, 5006)),
		remote(red, "fd00:20::/64", hop(peer4, 5001)), remote(red, "fd00:26::/64", hop(peer6, 5006)),
		local(blue, "10.10.0.0/24", blueGW), remote(blue, "10.20.0.0/24", hop(peer4b, 6001)),
		local(tagged, "10.30.0.0/24", gwVLAN), remote(tagged, "10.20.0.0/24", hop(peer4, 7001)),
		remote(blue, "::/0", hop(peer4, 6001)),
	)
}

// world is a data plane with three tenants, two of which use the same addresses.
func world(t testing.TB, dir string, n ebpf.Node) *ebpf.Dataplane {
	t.Helper()
	return worldOf(t, ebpf.Config{Dir: dir, Node: n})
}

func worldOf(t testing.TB, cfg ebpf.Config) *ebpf.Dataplane {
	t.Helper()
	d := load(t, cfg)
	fillWorld(t, d)
	return d
}

func fillWorld(t testing.TB, d *ebpf.Dataplane) {
	t.Helper()
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}, blue: {VNI: blue, Index: 2}, tagged: {VNI: tagged, Index: 3}})
	apply(t, d.Gateways(), gateways())
	apply(t, d.Served(), served())
	apply(t, d.VTEPs(), map[netip.Addr]intent.VTEP{peer4: {Addr: peer4}, peer6: {Addr: peer6}})
	apply(t, d.Routes(), worldRoutes())
}

func tracer(t testing.TB, dir string) *ebpf.Tracer {
	t.Helper()
	return tracerOf(t, dir, ebpf.Fabric)
}

func tracerOf(t testing.TB, dir string, plane ebpf.Plane) *ebpf.Tracer {
	t.Helper()
	tr, err := ebpf.OpenTracer(dir, plane)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// frame serialises layers with lengths and checksums.
func frame(ls ...gopacket.SerializableLayer) []byte {
	var network gopacket.NetworkLayer
	for _, l := range ls {
		if n, ok := l.(gopacket.NetworkLayer); ok {
			network = n
		}
		if c, ok := l.(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			_ = c.SetNetworkLayerForChecksum(network)
		}
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func ether(src, dst intent.MAC, t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: net.HardwareAddr(src[:]), DstMAC: net.HardwareAddr(dst[:]), EthernetType: t}
}

func ip4(src, dst string, proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: proto, SrcIP: net.ParseIP(src), DstIP: net.ParseIP(dst)}
}

func ip6(src, dst string, next layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: next, SrcIP: net.ParseIP(src), DstIP: net.ParseIP(dst)}
}

func udp() *layers.UDP { return &layers.UDP{SrcPort: 40000, DstPort: 7777} }
