//go:build guest

package kernelpath

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// TestForeign has objects of others where Sluice's would be: each is an error of
// the one row, and is never touched; the others go on.
func TestForeign(t *testing.T) {
	for _, tt := range []struct {
		name, script, show string
		table              uint32 // 0: an error
	}{
		{"device vrf", "ip link add vrf-1001 type vrf table 7; ip link set vrf-1001 up", "ip -d link show vrf-1001", 0},
		{"device br", "ip link add br-1001 type bridge; ip link set br-1001 up", "ip link show br-1001; bridge link show", 0},
		{"device vx", "ip link add vx-1001 type veth peer name y; ip link set vx-1001 up", "ip link show vx-1001", 0},
		{"a VRF with the table", "ip link add red type vrf table 1001; ip link set red up", "ip -d link show red", 16777217},
		{"routes in the table", "ip route add 10.1.0.0/24 dev u table 1001 proto static", "ip route show table 1001", 16777217},
		{"a rule for the table", "ip rule add from 10.1.0.0/24 lookup 1001 pref 5000", "ip rule", 16777217},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, false, false)
			run(t, "node", tt.script)
			before := run(t, "node", tt.show)
			r := rows{vrfs: map[intent.VNI]intent.KernelVRF{vni: {VNI: vni, Index: 1}, 1002: {VNI: 1002, Index: 2}}}
			errs := s.path.VRFs().Apply(t.Context(), []reconcile.Row[intent.VNI, intent.KernelVRF]{{Key: vni, Value: r.vrfs[vni]}, {Key: 1002, Value: r.vrfs[1002]}})
			if tt.table == 0 {
				if len(errs) != 2 || !errors.Is(errs[0], reconcile.ErrForeign) || errs[1] != nil {
					t.Errorf("errors %v", errs)
				}
			} else {
				if errs != nil {
					t.Errorf("errors %v", errs)
				}
				s.same(r)
				if out := run(t, "node", "ip -d link show vrf-1001"); !strings.Contains(out, fmt.Sprintf("table %d ", tt.table)) {
					t.Errorf("want table %d: %s", tt.table, out)
				}
			}
			if err := s.remove(r); err != nil {
				t.Error(err)
			}
			if after := run(t, "node", tt.show); cut(after) != cut(before) {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// cut leaves out the rule that the kernel makes with the first VRF.
func cut(out string) string {
	var keep []string
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "l3mdev") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

// A route of others in a VRF's table is an error of the same destination alone.
func TestForeignRoutes(t *testing.T) {
	s := newSite(t, false, false)
	r := s.rows()
	s.mustApply(rows{vrfs: r.vrfs, gateways: r.gateways})
	script := `ip route add 10.0.0.0/24 dev u table 1001 proto static metric 7; ip -6 route add fd09::/64 dev u table 1001 proto bird metric 7`
	run(t, "node", script)
	show := "ip route show table 1001 proto static; ip -6 route show table 1001 proto bird"
	before := run(t, "node", show)
	errs := s.path.Routes().Apply(t.Context(), asRows(r.routes))
	foreign := 0
	for _, err := range errs {
		if errors.Is(err, reconcile.ErrForeign) {
			foreign++
		} else if err != nil {
			t.Error(err)
		}
	}
	if foreign != 2 {
		t.Errorf("%d are foreign: %v", foreign, errs)
	}
	if err := s.remove(rows{routes: r.routes}); err != nil {
		t.Error(err)
	}
	if after := run(t, "node", show); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	run(t, "node", "ip route flush table 1001 proto static; ip -6 route flush table 1001 proto bird")
	s.mustApply(r)
	s.same(r)
	run(t, "node", "ip route add 10.0.0.0/24 dev u table 1001 proto static metric 7")
	if s.difference(r) == "" {
		t.Error("a route of others to one of our destinations is not seen")
	}
}

// The UDP port of another's VXLAN device is named, and so is who has it.
func TestPortHeld(t *testing.T) {
	s := newSite(t, false, true)
	run(t, "node", "ip link add mine type vxlan id 7 dstport 4789 local 192.0.2.1; ip link set mine up")
	err := s.apply(rows{vrfs: s.rows().vrfs})
	if held, ok := errors.AsType[*kernel.PortHeldError](err); !ok || !strings.Contains(held.Holder, "mine") {
		t.Errorf("error %v", err)
	}
}

// TestChanges changes rows, one thing at a time, and looks at what is there and at
// packets after each.
func TestChanges(t *testing.T) {
	s := newSite(t, false, false)
	r := s.rows()
	s.mustApply(r)
	s.handOver()
	step := func(what string, change func()) {
		t.Helper()
		old := rows{maps.Clone(r.vrfs), maps.Clone(r.gateways), maps.Clone(r.routes)}
		change()
		s.mustApply(r)
		old.without(r)
		if err := s.remove(old); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Log(what)
		s.same(r)
	}
	both := func() {
		t.Helper()
		s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
		s.pings("ovn", "", "10.9.0.1", "fd09::1")
	}
	gateway := func(change func(*intent.KernelGateway)) {
		g := r.gateways[gatewayKey()]
		change(&g)
		r.gateways[g.Key] = g
	}
	step("index", func() { r.vrfs[vni] = intent.KernelVRF{VNI: vni, Index: 9} })
	step("address of the gateway port", func() {
		gateway(func(g *intent.KernelGateway) { g.Addr4, g.Addr6 = addr("172.24.4.2"), addr("fd17::2") })
	})
	both()
	step("MTU", func() { gateway(func(g *intent.KernelGateway) { g.MTU = 1300 }) })
	step("no MTU, no sources", func() {
		gateway(func(g *intent.KernelGateway) { g.MTU, g.ICMPSource4, g.ICMPSource6 = 0, netip.Addr{}, netip.Addr{} })
	})
	step("no addresses", func() { gateway(func(g *intent.KernelGateway) { g.Addr4, g.Addr6 = netip.Addr{}, netip.Addr{} }) })
	both()
	step("a second gateway port", func() {
		second := intent.KernelGateway{Key: intent.GatewayKey{Bridge: "br-ex", MAC: mac("02:00:00:00:00:ab")}, VNI: vni, Addr4: addr("172.24.4.7"), ICMPSource4: addr("172.24.4.9")}
		r.gateways[second.Key] = second
		k := intent.NewRouteKey(vni, netip.MustParsePrefix("10.7.0.0/24"))
		r.routes[k] = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: second.Key}
	})
	step("and no more", func() {
		delete(r.gateways, intent.GatewayKey{Bridge: "br-ex", MAC: mac("02:00:00:00:00:ab")})
		delete(r.routes, intent.NewRouteKey(vni, netip.MustParsePrefix("10.7.0.0/24")))
	})
	both()
	here := intent.NextHop{VTEP: s.peVTEP(), VNI: vni, RouterMAC: mac(peMAC)}
	step("several next hops", func() {
		r.remote([]intent.NextHop{here, {VTEP: addr("192.0.2.3"), VNI: 77, RouterMAC: mac("02:00:00:00:00:03")},
			{VTEP: addr("2001:db8::3"), VNI: 78, RouterMAC: mac("02:00:00:00:00:03")}}, "10.9.0.0/24", "fd09::/64")
	})
	step("one of them", func() { r.remote([]intent.NextHop{here}, "10.9.0.0/24", "fd09::/64") })
	if out := run(t, "node", "ip neigh show dev sluice-vxlan; ip -6 neigh show dev sluice-vxlan"); strings.Contains(out, "02:00:00:00:00:03") {
		t.Errorf("a neighbour that no route leads through is left: %s", out)
	}
	both()
	step("blocked", func() {
		for _, p := range []string{"10.0.0.5/32", "fd00::5/128"} {
			k := intent.NewRouteKey(vni, netip.MustParsePrefix(p))
			r.routes[k] = intent.Route{Key: k, Kind: intent.RouteBlock}
		}
	})
	for _, to := range []string{"10.0.0.5", "fd00::5"} {
		if out, ok := ping("pe", "-W1 -I "+map[bool]string{true: "10.9.0.1", false: "fd09::1"}[!strings.Contains(to, ":")], to); ok || strings.Contains(out, "nreachable") {
			t.Errorf("a blocked address answers: %s", out)
		}
	}
	step("not blocked", func() {
		for _, p := range []string{"10.0.0.5/32", "fd00::5/128"} {
			delete(r.routes, intent.NewRouteKey(vni, netip.MustParsePrefix(p)))
		}
	})
	both()
}

// without leaves what is in no row of the others: what has to be deleted.
func (r rows) without(o rows) {
	maps.DeleteFunc(r.vrfs, func(k intent.VNI, _ intent.KernelVRF) bool { _, ok := o.vrfs[k]; return ok })
	maps.DeleteFunc(r.gateways, func(k intent.GatewayKey, _ intent.KernelGateway) bool { _, ok := o.gateways[k]; return ok })
	maps.DeleteFunc(r.routes, func(k intent.RouteKey, _ intent.Route) bool { _, ok := o.routes[k]; return ok })
}

// TestManyVRFs has VRFs of all kinds of VNIs with equal addresses, and a gateway
// port that changes its VRF.
func TestManyVRFs(t *testing.T) {
	s := newSite(t, false, false)
	r := rows{map[intent.VNI]intent.KernelVRF{}, map[intent.GatewayKey]intent.KernelGateway{}, map[intent.RouteKey]intent.Route{}}
	for i, v := range []intent.VNI{1, 252, 253, 254, 255, 256, 1001, intent.MaxVNI} {
		r.vrfs[v] = intent.KernelVRF{VNI: v, Index: uint16(i + 1)}
		g := intent.KernelGateway{Key: intent.GatewayKey{Bridge: "br-ex", VLAN: uint16(i), MAC: mac(gwMAC)}, VNI: v, Addr4: addr("172.24.4.1"), Addr6: addr("fd17::1"), ICMPSource6: addr("fd17::9")}
		r.gateways[g.Key] = g
		for _, p := range []string{"10.0.0.0/24", "fd00::/64", "0.0.0.0/0", "::/0"} {
			k := intent.NewRouteKey(v, netip.MustParsePrefix(p))
			r.routes[k] = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: g.Key}
		}
	}
	main := "ip route show table main; ip -6 route show table main; ip route show table local | grep -v 10.0.0"
	before := run(t, "node", main)
	s.mustApply(r)
	s.same(r)
	if after := run(t, "node", main); after != before {
		t.Errorf("the node's own tables were\n%s\nand are\n%s", before, after)
	}
	// The gateway port of VNI 1 goes to the last VNI.
	key := intent.GatewayKey{Bridge: "br-ex", VLAN: 0, MAC: mac(gwMAC)}
	g := r.gateways[key]
	g.VNI = intent.MaxVNI
	r.gateways[key] = g
	var moved []intent.RouteKey
	for k, route := range r.routes {
		if k.VNI == 1 && route.Gateway == key {
			moved = append(moved, k)
			delete(r.routes, k)
		}
	}
	if err := errors.Join(s.path.Routes().Delete(t.Context(), moved)...); err != nil {
		t.Fatal(err)
	}
	s.mustApply(rows{gateways: map[intent.GatewayKey]intent.KernelGateway{key: g}})
	s.same(r)
	if err := s.remove(r); err != nil {
		t.Fatal(err)
	}
	s.same(rows{})
}

// TestDummy has the addresses of local routes on lo-<vni>, and the node does not
// answer for them.
func TestDummy(t *testing.T) {
	s := newSite(t, false, false)
	s.config.Dummy = true
	s.path = kernel.NewPath(s.config, s.node)
	r := s.rows()
	r.local("10.0.0.5/32", "fd00::5/128")
	s.mustApply(r)
	s.handOver()
	s.same(r)
	s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
	out := run(t, "node", "ip -o addr show lo-1001; ip route show table 1001 type local; ip -6 route show table 1001 type local")
	if !strings.Contains(out, "10.0.0.5/32") || !strings.Contains(out, "fd00::5/128") || strings.Contains(out, "local 10.0.0.5") || strings.Contains(out, "local fd00::5") {
		t.Errorf("lo-1001: %s", out)
	}
	run(t, "node", "ip link set lo-1001 down; ip link set lo-1001 up")
	if s.difference(r) == "" {
		t.Error("a local route that came back is not seen")
	}
	s.mustApply(r)
	s.same(r)
	s.path = kernel.NewPath(kernel.PathConfig{Namespace: s.config.Namespace, Ports: s.ports, Guard: s.config.Guard, Unguard: s.config.Unguard}, s.node)
	if s.difference(r) == "" {
		t.Error("lo-1001 is not wanted any more, and that is not seen")
	}
	s.mustApply(r)
	s.same(r)
}

// TestForwarding6 has a node that does not forward IPv6: its IPv6 routes say so.
func TestForwarding6(t *testing.T) {
	s := newSite(t, false, false)
	run(t, "node", "sysctl -qw net.ipv6.conf.all.forwarding=0")
	r := s.rows()
	s.mustApply(rows{vrfs: r.vrfs, gateways: r.gateways})
	for i, err := range s.path.Routes().Apply(t.Context(), asRows(r.routes)) {
		if err != nil && !errors.Is(err, kernel.ErrForwarding6) {
			t.Errorf("%d: %v", i, err)
		}
	}
	s.handOver()
	s.pings("pe", "-I 10.9.0.1", "10.0.0.5")
	if err := kernel.Forwarding6(s.config.Namespace); !errors.Is(err, kernel.ErrForwarding6) {
		t.Errorf("error %v", err)
	}
}
