//go:build guest

package evpn_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// Both tenants reach their VMs through Open vSwitch's kernel datapath, and only
// their own.
func TestKernelDatapath(t *testing.T) {
	w := shared(t)
	for _, vm := range vms {
		for _, addr := range far(vm) {
			w.pings(vm, addr, 64)
			w.pings(vm, addr, pathMTU, "-M", "do")
		}
	}
	w.tooBig("a-red1", addrB4)
	w.tooBig("b-blue1", addrA6)
	w.clean()
}

// withEdges is the lab with the edges at the underlay's MTU.
func withEdges(t *testing.T) *world {
	t.Helper()
	w := onAnyPath(t)
	for _, p := range w.Scenario().Peers {
		w.exec(p.Name, "ip", "link", "set", lab.UnderlayLink, "mtu", fmt.Sprint(underlayMTU))
		for _, v := range p.VRFs {
			for _, link := range lab.EdgeLinks(v.VNI) {
				w.exec(p.Name, "ip", "link", "set", link, "mtu", fmt.Sprint(pathMTU))
			}
		}
	}
	return w
}

// FRR with VRF devices and Sluice learn each other's networks and hosts, in both
// families and on both paths, and what is sent arrives both ways; what is too big is
// answered by whoever has it then.
func TestFRREdge(t *testing.T) {
	w := withEdges(t)
	for _, path := range []string{"ebpf", "kernel"} {
		t.Run(path, func(t *testing.T) {
			w := &world{T: t, Lab: w.Lab}
			w.redOn(path)
			w.exchange()
			w.clean()
		})
	}
}

func (w *world) exchange() {
	w.Helper()
	for i, edge := range edges {
		own := []string{fmt.Sprintf("10.%d.0.10", 41+i), fmt.Sprintf("fd00:%d::10", 41+i)}
		w.reach(edge, addrA4, addrA6, addrB4, addrB6)
		w.reach("a-red1", own...)
		w.reach("b-red1", own...)
		for _, size := range []int{64, 1280, pathMTU} {
			for k, addr := range own {
				w.pings("a-red1", addr, size, "-M", "do")
				w.pings(edge, far("b-red1")[k], size, "-M", "do")
			}
		}
		w.unreachable("a-blue1", own...)
	}
	w.forget("a-red1")
	for _, addr := range []string{"10.41.0.10", "fd00:41::10"} {
		w.tooBig("a-red1", addr)
	}
	for _, addr := range far("b-red1") {
		w.forget(edges[0])
		w.tooBig(edges[0], addr)
	}
}

// Flows are spread over two edges with the same network, on both paths, and by FRR
// over two gateways with the same VM, until one of the two takes its routes back.
func TestFRREdgeECMP(t *testing.T) {
	w := withEdges(t)
	for _, path := range []string{"ebpf", "kernel"} {
		w.redOn(path)
		if path == "kernel" {
			w.portsInHash()
		}
		for _, addr := range []netip.Addr{shared4.Addr(), shared6.Addr()} {
			w.reach("a-red1", addr.String())
			w.spreads("a-red1", addr, edges...)
		}
	}
	for _, addr := range []string{"10.60.0.11", "fd00:60::11"} {
		w.eventually("two ways to "+addr+" at p1", func() error { return w.ways("p1", addr, 2) })
		// Zebra may write the two in another order meanwhile, and a flow changes its way.
		by := w.spread(edges[0], netip.MustParseAddr(addr), "a-any1", "b-any1")
		t.Logf("flows from p1 to %s: %v", addr, by)
		if by["a-any1"] == 0 || by["b-any1"] == 0 {
			t.Errorf("flows from p1 to %s: %v, want some at each", addr, by)
		}
	}

	if err := w.DelVM(t.Context(), "b-any1"); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"10.60.0.11", "fd00:60::11"} {
		w.eventually("one way to "+addr+" at p1", func() error { return w.ways("p1", addr, 1) })
		w.pings(edges[0], addr, 64)
	}
	for family, addr := range map[string]netip.Addr{"ipv4": shared4.Addr(), "ipv6": shared6.Addr()} {
		w.exec("p1", "vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("router bgp %d vrf %s", lab.FabricAS, lab.EdgeVRF(vniRed)),
			"-c", "address-family "+family+" unicast", "-c", "no redistribute connected")
		w.eventually("all flows are at p2", func() error {
			if by := w.spread("a-red1", addr, edges...); by[edges[0]] != 0 {
				return fmt.Errorf("flows: %v", by)
			}
			return nil
		})
	}
	w.clean()
}

// portsInHash has the kernel look at ports where it has several next hops. As long as
// it does not, status says so.
func (w *world) portsInHash() {
	w.Helper()
	warns := func(want bool) {
		for _, family := range []string{"ipv4", "ipv6"} {
			policy := "net." + family + ".fib_multipath_hash_policy"
			w.eventually(fmt.Sprintf("a1 warns of %s: %v", policy, want), func() error { return w.warns("a1", "sysctl", policy, "hash-policy", want) })
		}
	}
	warns(true)
	for _, n := range w.chassis() {
		w.exec(n, "sh", "-ec", "cd /proc/sys/net; echo 1 >ipv4/fib_multipath_hash_policy; echo 1 >ipv6/fib_multipath_hash_policy")
	}
	warns(false)
}

// ways checks how many next hops the host route of an address has at an edge.
func (w *world) ways(edge, addr string, want int) error {
	family := "-4"
	if strings.Contains(addr, ":") {
		family = "-6"
	}
	out, err := w.Exec(w.Context(), edge, "ip", family, "-j", "route", "show", addr, "vrf", lab.EdgeVRF(vniRed))
	if err != nil {
		return err
	}
	var routes []struct {
		Nexthops []struct{ Gateway string }
	}
	if err := json.Unmarshal([]byte(out), &routes); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if len(routes) != 1 || max(1, len(routes[0].Nexthops)) != want {
		return fmt.Errorf("%s", out)
	}
	return nil
}
