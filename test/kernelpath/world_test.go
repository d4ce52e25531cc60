//go:build guest

package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// run runs a script in a namespace and gives what it printed.
func run(t *testing.T, ns, script string) string {
	t.Helper()
	out, err := try(ns, script)
	if err != nil {
		t.Fatalf("in %s: %s: %v\n%s", ns, script, err, out)
	}
	return out
}

func try(ns, script string) (string, error) {
	out, err := exec.Command("nsenter", "--net=/run/netns/"+ns, "/usr/bin/sh", "-ec", script).CombinedOutput()
	return string(out), err
}

// The site:
//
//	pe (10.9.0.1, fd09::1) - VXLAN - node - br-ex - ovn (10.0.0.5, fd00::5)
//
// ovn is the gateway port and the machine behind it in one.
const (
	vni     = intent.VNI(1001)
	peMAC   = "02:00:00:00:00:02"
	nodeMAC = "02:00:00:00:00:01"
	hopMAC  = "02:00:00:00:00:ff"
	gwMAC   = "02:00:00:00:00:aa"
)

func mac(s string) intent.MAC {
	m, err := intent.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

var addr = netip.MustParseAddr

type site struct {
	t      *testing.T
	config kernel.PathConfig
	node   kernel.PathNode
	fabric *kernel.Fabric
	path   *kernel.Path
	ports  *ports
	data   *ebpf.Dataplane
	pins   string
	v6     bool // the underlay
}

// newSite makes the namespaces, and the node's sluice-vxlan unless whole.
func newSite(t *testing.T, underlay6, whole bool) *site {
	t.Helper()
	for _, ns := range []string{"node", "pe", "ovn"} {
		if out, err := exec.Command("/usr/bin/ip", "netns", "add", ns).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("/usr/bin/ip", "netns", "del", ns).Run() })
		run(t, ns, "ip link set lo up")
	}
	run(t, "node", `ip link add u type veth peer name v netns /run/netns/pe; ip link set u up
		ip addr add 192.0.2.1/24 dev u; ip addr add 2001:db8::1/64 dev u nodad
		ip link add br-ex type bridge mcast_snooping 0; ip link set br-ex addrgenmode none up
		ip link add x type veth peer name e netns /run/netns/ovn; ip link set x addrgenmode none master br-ex up
		sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=1 net.ipv4.ip_forward=0`)
	s := &site{t: t, v6: underlay6, ports: &ports{}}
	s.pe()
	run(t, "ovn", `ip link set e address `+gwMAC+` arp off addrgenmode none up
		ip addr add 10.0.0.5/32 dev lo; ip addr add fd00::5/128 dev lo; ip addr add 172.24.4.1/24 dev e; ip addr add fd17::1/64 dev e nodad
		ip neigh add 172.24.4.9 lladdr `+hopMAC+` dev e nud permanent; ip neigh add fd17::9 lladdr `+hopMAC+` dev e nud permanent
		ip route add default via 172.24.4.9 src 10.0.0.5; ip route add default via fd17::9 dev e src fd00::5`)
	s.load()
	s.config = kernel.PathConfig{Namespace: netns.Named("node"), Ports: s.ports, Whole: whole,
		Guard:    func(_ context.Context, g kernel.GuardedDevice) error { return s.data.Guard(guardOf(g)) },
		Guarding: func(g kernel.GuardedDevice) (bool, error) { return s.data.Guarding(guardOf(g)) },
		Unguard:  func(ifindex int) error { return s.data.Unguard(ifindex) }}
	s.node = kernel.PathNode{RouterMAC: mac(nodeMAC), NextHopMAC: mac(hopMAC), VTEP4: addr("192.0.2.1"), VTEP6: addr("2001:db8::1"), UnderlayMTU: 1500}
	if underlay6 {
		s.node.VTEP4 = netip.Addr{}
	}
	s.path = kernel.NewPath(s.config, s.node)
	if !whole {
		s.fabric = kernel.NewFabric(kernel.FabricConfig{Namespace: netns.Named("node"), RouterMAC: mac(nodeMAC),
			Attach: func(_ context.Context, _ string, index int) error { return s.data.Attach(ebpf.FabricIn, index) }})
		if _, err := s.fabric.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// pe makes the provider edge: a bridge, a classic VXLAN device, static entries.
func (s *site) pe() {
	local, remote := "192.0.2.2", "192.0.2.1"
	if s.v6 {
		local, remote = "2001:db8::2", "2001:db8::1"
	}
	run(s.t, "pe", fmt.Sprintf(`ip link set v up; ip addr add 192.0.2.2/24 dev v; ip addr add 2001:db8::2/64 dev v nodad
		ip link add br-1001 address %[1]s type bridge mcast_snooping 0; ip link add vxlan-1001 type vxlan id 1001 dstport 4789 local %[3]s nolearning udp6zerocsumrx
		ip link set vxlan-1001 mtu 1500 master br-1001; ip link set br-1001 mtu 1500; ip link set vxlan-1001 up; ip link set br-1001 up
		ip link set v mtu 2000; ip addr add 10.9.0.1/32 dev lo; ip addr add fd09::1/128 dev lo
		ip neigh add 169.254.0.1 lladdr %[2]s dev br-1001 nud permanent; ip neigh add fe80::99 lladdr %[2]s dev br-1001 nud permanent
		bridge fdb add %[2]s dev vxlan-1001 dst %[4]s self; bridge fdb add %[2]s dev vxlan-1001 master static
		ip route add default via 169.254.0.1 dev br-1001 onlink src 10.9.0.1; ip route add default via fe80::99 dev br-1001 onlink src fd09::1`,
		peMAC, nodeMAC, local, remote))
	run(s.t, "node", "ip link set u mtu 2000")
}

func (s *site) peVTEP() netip.Addr {
	if s.v6 {
		return addr("2001:db8::2")
	}
	return addr("192.0.2.2")
}

// handOver makes the rows of fabric_in for the VRF.
func (s *site) handOver() {
	s.t.Helper()
	vrf, vtep := intent.VRF{VNI: vni, Index: 1, Path: intent.PathKernel}, intent.VTEP{Addr: s.peVTEP()}
	errs := append(s.data.VRFs().Apply(s.t.Context(), []reconcile.Row[intent.VNI, intent.VRF]{{Key: vni, Value: vrf}}),
		s.data.VTEPs().Apply(s.t.Context(), []reconcile.Row[netip.Addr, intent.VTEP]{{Key: vtep.Addr, Value: vtep}})...)
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

// rows is what is wanted.
type rows struct {
	vrfs     map[intent.VNI]intent.KernelVRF
	gateways map[intent.GatewayKey]intent.KernelGateway
	routes   map[intent.RouteKey]intent.Route
}

func gatewayKey() intent.GatewayKey { return intent.GatewayKey{Bridge: "br-ex", MAC: mac(gwMAC)} }

func (s *site) rows() rows {
	g := intent.KernelGateway{Key: gatewayKey(), VNI: vni, Addr4: addr("172.24.4.1"), Addr6: addr("fd17::1"),
		ICMPSource4: addr("172.24.4.9"), ICMPSource6: addr("fd17::9"), MTU: 1400}
	r := rows{
		vrfs:     map[intent.VNI]intent.KernelVRF{vni: {VNI: vni, Index: 1}},
		gateways: map[intent.GatewayKey]intent.KernelGateway{g.Key: g},
		routes:   map[intent.RouteKey]intent.Route{},
	}
	r.local("10.0.0.0/24", "fd00::/64", "172.24.4.1/32", "fd17::1/128")
	r.remote([]intent.NextHop{{VTEP: s.peVTEP(), VNI: vni, RouterMAC: mac(peMAC)}}, "10.9.0.0/24", "fd09::/64")
	return r
}

func (r rows) local(prefixes ...string) {
	for _, p := range prefixes {
		k := intent.NewRouteKey(vni, netip.MustParsePrefix(p))
		r.routes[k] = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: gatewayKey()}
	}
}

func (r rows) remote(hops []intent.NextHop, prefixes ...string) {
	for _, p := range prefixes {
		k := intent.NewRouteKey(vni, netip.MustParsePrefix(p))
		r.routes[k] = intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(hops...)}
	}
}

func asRows[K, V comparable](m map[K]V) []reconcile.Row[K, V] {
	var out []reconcile.Row[K, V]
	for k, v := range m {
		out = append(out, reconcile.Row[K, V]{Key: k, Value: v})
	}
	return out
}

func (s *site) apply(r rows) error {
	ctx := s.t.Context()
	return errors.Join(errors.Join(s.path.VRFs().Apply(ctx, asRows(r.vrfs))...), errors.Join(s.path.Gateways().Apply(ctx, asRows(r.gateways))...),
		errors.Join(s.path.Routes().Apply(ctx, asRows(r.routes))...))
}

func (s *site) mustApply(r rows) {
	s.t.Helper()
	if err := s.apply(r); err != nil {
		s.t.Fatalf("%v\n%s", err, s.state())
	}
}

// same fails unless what is listed is what is wanted.
func (s *site) same(r rows) {
	s.t.Helper()
	if d := s.difference(r); d != "" {
		s.t.Fatalf("%s\n%s", d, s.state())
	}
}

func (s *site) difference(r rows) string {
	s.t.Helper()
	vrfs, err1 := s.path.VRFs().List(s.t.Context())
	gateways, err2 := s.path.Gateways().List(s.t.Context())
	routes, err3 := s.path.Routes().List(s.t.Context())
	if err := errors.Join(err1, err2, err3); err != nil {
		s.t.Fatal(err)
	}
	switch {
	case !maps.Equal(vrfs, r.vrfs):
		return fmt.Sprintf("VRFs %+v, want %+v", vrfs, r.vrfs)
	case !maps.Equal(gateways, r.gateways):
		return fmt.Sprintf("gateways %+v, want %+v", gateways, r.gateways)
	case !maps.Equal(routes, r.routes):
		return fmt.Sprintf("routes %+v, want %+v", routes, r.routes)
	}
	return ""
}

func (s *site) state() string {
	out, _ := try("node", `ip -br addr; ip route show table 1001; ip -6 route show table 1001; ip neigh; ip -6 neigh; ip rule`)
	return out
}

// remove deletes all in the order of the pipeline.
func (s *site) remove(r rows) error {
	ctx := s.t.Context()
	return errors.Join(errors.Join(s.path.Routes().Delete(ctx, keys(r.routes))...), errors.Join(s.path.Gateways().Delete(ctx, keys(r.gateways))...),
		errors.Join(s.path.VRFs().Delete(ctx, keys(r.vrfs))...))
}

func keys[K, V comparable](m map[K]V) []K {
	var out []K
	for k := range m {
		out = append(out, k)
	}
	return out
}

// ping tells whether a machine answers; ok waits for it.
func ping(ns, args, to string) (string, bool) {
	out, err := try(ns, "ping -n -c1 -W2 "+args+" "+to)
	return out, err == nil
}

func (s *site) pings(ns, from string, to ...string) {
	s.t.Helper()
	for _, a := range to {
		source := from
		if strings.Contains(a, ":") && from != "" {
			source = strings.Replace(from, "10.9.0.1", "fd09::1", 1)
		}
		ok, out := false, ""
		for range 5 {
			if out, ok = ping(ns, source, a); ok {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		if !ok {
			s.t.Fatalf("from %s to %s: %s\n%s", ns, a, out, s.state())
		}
	}
}
