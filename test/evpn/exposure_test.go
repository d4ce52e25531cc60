package evpn_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// What is exposed without EVPN, and the addresses of the world, which are behind a
// router of the underlay.
const (
	leaf             = "leaf"
	world4, world6   = "198.51.100.1", "2001:db8:51::1"
	public4, public6 = "172.24.0.50", "2001:db8:24::50"
	central4         = "172.24.0.60"
	central6         = "2001:db8:24::60"
	spread4, spread6 = "172.24.0.61", "2001:db8:24::61"
	gateway4         = "172.24.0.13" // green's
	gateway6         = "2001:db8:24::d"
	spreadMAC        = "02:00:00:00:61:61"
	tagged4, tagged6 = "172.28.0.50", "2001:db8:28::50" // in VLAN 100
	tagHop6          = "2001:db8:28::1"
)

// exposing is the configuration of a node with links to the leaf and EVPN with the
// reflector. It lists no next hops: Northbound names those.
const exposing = `bgp:
` + lab.Times + `  asn: 64512
  neighbors:
    - {address: %[1]s, connectRetry: 1s}
%[2]sunderlay:
  install: {enabled: true}
exposure: {ports: %[3]s, floatingIPs: %[3]s, gateways: %[3]s}
` + lab.NodeConfig

// A VM on the provider network, floating IPs of red, centralised and
// distributed, and green's gateway port are reached from behind the underlay without
// EVPN, while EVPN goes on: over IPv4 and IPv6, small and large, by ping and by
// TCP. They stay so while sluiced is dead, follow a VM to another chassis, and
// are gone when it is switched off. a3 is no gateway: what is exposed there makes
// Sluice forward on it. a1 has two links to the leaf, which both carry packets, and a
// VM in a VLAN of the same bridge; it is drained and put back.
func TestExposureWithoutEVPN(t *testing.T) {
	w := &world{T: t, Lab: labtest.Up(t, exposureScenario())}
	t.Cleanup(func() {
		if t.Failed() {
			w.report()
			w.exposureReport()
		}
	})
	w.floating()
	w.dhcp()
	w.makeWorld()
	for _, n := range []string{"a1", "a3"} {
		w.expose(n, "on")
	}
	everywhere := map[string][]string{
		"a1": {public4, public6, tagged4, tagged6, central4, central6, gateway4, gateway6}, "a3": {spread4, spread6},
	}
	for n, addrs := range everywhere {
		for _, a := range addrs {
			w.leads(a, n)
			w.world(a)
		}
	}
	w.leads("172.24.0.11") // red's gateway port has it in EVPN
	for _, a := range []string{world4, world6} {
		w.reach("a-pub", a)
		w.reach("a-tag", a)
		w.reach("a-red3", a)
	}
	for _, a := range []string{public4, public6, tagged4, tagged6} {
		w.exec(leaf, "ping", "-n", "-c2", "-i0.05", "-W2", "-s1300", "-I", source(a), a)
	}
	for a, says := range map[string]string{public4: "Time to live exceeded", public6: "Hop limit"} {
		out, _ := w.Exec(w.Context(), leaf, "sh", "-c", fmt.Sprintf("ping -n -c1 -W2 -t1 -I %s %s || true", source(a), a))
		if !strings.Contains(out, says) {
			w.Errorf("a hop limit that ends at a1 is answered by nobody:\n%s", out)
		}
	}
	w.tcp("a-pub", public4, public6)
	w.tcp("a-red3", spread4, spread6)
	w.tcp("a-red2", central4, central6)
	w.tcp("a-tag", tagged4, tagged6)
	w.bothWays("a1", public4, public6, tagged4, tagged6)
	w.toldOfExposure()
	w.drainExposed("a1", everywhere["a1"])

	// A VM moves, with its address.
	if err := w.MoveVM(w.Context(), "a-pub", "a3"); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{public4, public6} {
		w.leads(a, "a3")
		w.world(a)
	}

	// sluiced is dead: packets go on, and the leaf keeps the routes. Switched off, the
	// addresses of a node are withdrawn, and what carried them goes.
	streams := []*stream{w.stream(leaf, tagged4, "-I", world4), w.stream(leaf, tagged6, "-I", world6)}
	w.kill("a1", "sluiced")
	if err := w.process("a3", "sluiced").Stop(); err != nil {
		t.Fatal(err)
	}
	for _, a := range append(everywhere["a1"][2:], everywhere["a3"]...) {
		w.exec(leaf, "ping", "-n", "-c2", "-i0.05", "-W2", "-I", source(a), a)
	}
	w.startAgain("a1", "sluiced")
	w.expose("a3", "off")
	w.ready("a1")
	for _, s := range streams {
		sent, lost := s.stop()
		w.Logf("%s, sluiced killed and started again: %d of %d packets lost", s.name, lost, sent)
		s.noLoss(sent, lost)
	}
	for _, a := range []string{spread4, spread6, public4, public6} {
		w.leads(a)
	}
	w.leads(central4, "a1")
	w.eventually("a3 has nothing left of it", func() error {
		out, err := w.Exec(w.Context(), "a3", "sh", "-c", sluicectl()+" vrf list 2>&1; ovs-ofctl dump-flows br-ex; bpftool net show dev up1")
		if strings.Contains(out, "default") || strings.Contains(out, "172.24.0.") || strings.Contains(out, "underlay_in") {
			err = fmt.Errorf("still there:\n%s", out)
		}
		return err
	})
}

// exposureScenario is cloud A with a VM on each of two provider networks, one of
// them a VLAN, and a tenant without EVPN.
func exposureScenario() lab.Scenario {
	s := lab.EVPN(lab.EVPNParams{Compute: true})
	s.Reflectors = append(s.Reflectors, leaf)
	s.Clouds = s.Clouds[:1]
	c := &s.Clouds[0]
	c.Providers = append(c.Providers, lab.Provider{
		Name: "tagged", Physnet: "physnet1", Bridge: "br-ex", VLAN: 100,
		Subnet4: netip.MustParsePrefix("172.28.0.0/16"), Subnet6: netip.MustParsePrefix("2001:db8:28::/64"),
	})
	vm := func(name, network, addr4, addr6 string) lab.VM {
		return lab.VM{Name: name, Chassis: "a1", Network: network, Addr4: netip.MustParseAddr(addr4), Addr6: netip.MustParseAddr(addr6)}
	}
	c.VMs = append(c.VMs, vm("a-pub", "public", public4, public6), vm("a-tag", "tagged", tagged4, tagged6))
	c.Tenants = append(c.Tenants, lab.Tenant{Name: "green", Provider: "public", Networks: c.Tenants[0].Networks, GatewayChassis: "a1"})
	return s
}

// toldOfExposure checks what a person is told.
func (w *world) toldOfExposure() {
	w.Helper()
	for _, c := range []struct {
		node  string
		argv  []string
		words []string
	}{
		{"a1", []string{"vrf", "list"}, []string{"default  ok     ebpf  only-path"}},
		{"a1", []string{"route", "list", "--vrf", "default"}, []string{"default  " + public4 + "/32", "default  " + public6 + "/128", "a-pub", "cr-lrp-green-gw"}},
		{"a1", []string{"explain", "--vrf", "default", world4, public4}, []string{"port, by port a-pub, on physnet1", "up1", "announcement of " + public4 + "/32"}},
		{"a1", []string{"explain", "--vrf", "default", central6, world6}, []string{"floating-ip, by port cr-lrp-red-gw", "the host's route to " + world6}},
		{"a1", []string{"trace", "--vrf", "default", world4, public4}, []string{"underlay_in", "VRF default", "Leaves through sluice"}},
		{"a1", []string{"trace", "--vrf", "default", world6, public6}, []string{"underlay_in", "VRF default", "Leaves through sluice"}},
		{"a1", []string{"trace", "--vrf", "default", central4, world4}, []string{"overlay_in", "by the host's routes", "Leaves through up"}},
		{"a1", []string{"trace", "--vrf", "default", central6, world6}, []string{"overlay_in", "by the host's routes", "Leaves through up"}},
		{"a1", []string{"trace", "--vrf", "default", world4, "203.0.113.200"}, []string{"Passes to the host, unchanged"}},
		{"a3", []string{"status"}, []string{"is exposed without EVPN"}},
		{"a3", []string{"explain", "--vrf", "default", world4, public4}, []string{"nothing that is bound to this node has it"}},
		{"a1", []string{"explain", "--vrf", "default", world4, "172.24.0.11"}, []string{"is exposed in VRF 1001"}},
	} {
		out := w.exec(c.node, "sh", "-c", sluicectl()+" "+strings.Join(c.argv, " ")+" 2>&1 || true")
		for _, word := range c.words {
			if !strings.Contains(out, word) {
				w.Errorf("%s: sluicectl %s does not say %q:\n%s", c.node, strings.Join(c.argv, " "), word, out)
			}
		}
	}
}

// floating gives red's VMs floating IPs: the one on a1 centralised ones, the
// one on a3 distributed ones.
func (w *world) floating() {
	w.Helper()
	w.nb("a", "lsp-set-options", lab.GatewaySwitchPort("red"), "router-port="+lab.GatewayPort("red"), "nat-addresses=router")
	for _, nat := range [][]string{
		{central4, "10.10.0.12"}, {central6, "fd00:10::12"},
		{spread4, "10.10.0.13", "a-red3", spreadMAC}, {spread6, "fd00:10::13", "a-red3", spreadMAC},
	} {
		w.nb("a", append([]string{"lr-nat-add", lab.RouterName("red"), "dnat_and_snat"}, nat...)...)
	}
}

// uplink is a link between the leaf and a node.
type uplink struct {
	node, device string
	n            int
}

// uplinks are those of the lab.
var uplinks = []uplink{{"a1", "up1", 1}, {"a1", "up2", 2}, {"a3", "up1", 3}}

// leafs is the leaf's device.
func (u uplink) leafs() string { return "to-" + u.node + "-" + u.device }

// addresses are those of the link's ends.
func (u uplink) addresses() (leaf4, node4, leaf6, node6 string) {
	four := func(end int) string { return fmt.Sprintf("192.0.2.%d", 4*u.n+end) }
	six := func(end int) string { return fmt.Sprintf("2001:db8:f:%d::%d", u.n, end) }
	return four(1), four(2), six(1), six(2)
}

// worlds is how many addresses the world has in each family, world4 and world6 first:
// the kernel chooses one of two ways by the addresses.
const worlds = 16

// makeWorld joins the leaf with the nodes, and gives it the world's addresses.
func (w *world) makeWorld() {
	w.Helper()
	bgp := []string{"no router bgp", "router bgp 65001", "bgp router-id 192.0.2.1", "no bgp ebgp-requires-policy", "no bgp default ipv4-unicast"}
	var four, six []string
	var script strings.Builder
	for n, a4, a6 := 0, netip.MustParseAddr(world4), netip.MustParseAddr(world6); n < worlds; n, a4, a6 = n+1, a4.Next(), a6.Next() {
		fmt.Fprintf(&script, "ip addr add %s/32 dev lo; ip addr add %s/128 dev lo nodad\n", a4, a6)
		four, six = append(four, fmt.Sprintf("network %s/32", a4)), append(six, fmt.Sprintf("network %s/128", a6))
	}
	for _, u := range uplinks {
		l4, n4, l6, n6 := u.addresses()
		w.exec(leaf, "ip", "link", "add", u.leafs(), "type", "veth", "peer", "name", u.device, "netns", w.node(u.node).Netns)
		fmt.Fprintf(&script, "ip addr add %s/30 dev %[3]s; ip addr add %[2]s/64 dev %[3]s nodad; ip link set %[3]s up\n", l4, l6, u.leafs())
		w.exec(u.node, "sh", "-ec", fmt.Sprintf("ip addr add %s/30 dev %[3]s; ip addr add %[2]s/64 dev %[3]s nodad; ip link set %[3]s up", n4, n6, u.device))
		for _, a := range []string{n4, n6} {
			bgp = append(bgp, "neighbor "+a+" remote-as 64512", "neighbor "+a+" passive")
		}
		four, six = append(four, "neighbor "+n4+" activate"), append(six, "neighbor "+n6+" activate")
	}
	w.exec(leaf, "sh", "-ec", script.String())
	bgp = append(append(append(bgp, "address-family ipv4 unicast"), four...), "exit-address-family")
	bgp = append(append(append(bgp, "address-family ipv6 unicast"), six...), "exit-address-family")
	argv := []string{"vtysh", "-c", "configure terminal"}
	for _, line := range bgp {
		argv = append(argv, "-c", line)
	}
	w.exec(leaf, argv...)
}

// expose starts sluiced on a node of the leaf's, with what is exposed on or off.
func (w *world) expose(node, exposed string) {
	w.Helper()
	var neighbors strings.Builder
	for _, u := range uplinks {
		if u.node == node {
			l4, _, l6, _ := u.addresses()
			fmt.Fprintf(&neighbors, "    - {address: %s, asn: 65001, families: [ipv4], holdTime: 9s, connectRetry: 1s}\n", l4)
			fmt.Fprintf(&neighbors, "    - {address: \"%s\", asn: 65001, families: [ipv6], holdTime: 9s, connectRetry: 1s}\n", l6)
		}
	}
	text := fmt.Sprintf(exposing, w.node("rr").VTEP4, neighbors.String(), exposed)
	if _, err := w.StartSluiced(w.Context(), node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
}

// leads waits until the leaf's kernel sends packets for an address to these nodes
// and no others.
func (w *world) leads(addr string, nodes ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("the world's way to %s is by %v", addr, nodes), func() error {
		out, err := w.Exec(w.Context(), leaf, "ip", "-o", fmt.Sprintf("-%d", family(netip.MustParseAddr(addr))), "route", "show", "proto", "bgp", addr)
		if err != nil {
			return err
		}
		for _, n := range []string{"a1", "a3"} {
			if strings.Contains(out, "dev to-"+n+"-") != slices.Contains(nodes, n) {
				return fmt.Errorf("route %q", out)
			}
		}
		return nil
	})
}

// source is the world's address of an address's family.
func source(addr string) string {
	if netip.MustParseAddr(addr).Is4() {
		return world4
	}
	return world6
}

// world reaches addresses by ping.
func (w *world) world(addrs ...string) {
	w.Helper()
	for _, a := range addrs {
		w.eventually("the world reaches "+a, func() error {
			_, err := w.Exec(w.Context(), leaf, "ping", "-n", "-c1", "-W0.5", "-I", source(a), a)
			return err
		})
	}
}

// tcp has the world fetch from a VM, in segments as large as they may be.
func (w *world) tcp(vm string, addrs ...string) {
	w.Helper()
	const size = 400_000
	server, err := w.Command(w.Context(), vm, "socat", "TCP6-LISTEN:8080,fork,reuseaddr", fmt.Sprintf("SYSTEM:head -c %d /dev/zero", size))
	if err != nil {
		w.Fatal(err)
	}
	if err := server.Start(); err != nil {
		w.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	for _, a := range addrs {
		protocol, to := "TCP4:", a
		if netip.MustParseAddr(a).Is6() {
			protocol, to = "TCP6:", "["+a+"]"
		}
		w.eventually("the world fetches from "+a, func() error {
			from := strings.Replace(source(a), world6, "["+world6+"]", 1)
			out, err := w.Exec(w.Context(), leaf, "sh", "-c", fmt.Sprintf("timeout 5 socat -u %s%s:8080,bind=%s,connect-timeout=2 - | wc -c", protocol, to, from))
			if err == nil && strings.TrimSpace(out) != fmt.Sprint(size) {
				err = fmt.Errorf("%s bytes of %d", strings.TrimSpace(out), size)
			}
			return err
		})
	}
}

// exposureReport shows what the nodes have when something did not work.
func (w *world) exposureReport() {
	for _, n := range []string{"a1", "a3"} {
		for _, argv := range [][]string{
			{sluicectl(), "vrf", "list"}, {sluicectl(), "route", "list", "--vrf", "default"}, {sluicectl(), "underlay"}, {"ip", "route"}, {"ip", "-6", "route"},
		} {
			out, err := w.Exec(background, n, argv...)
			w.Logf("%s: %s: %v\n%s", n, strings.Join(argv[1:], " "), err, out)
		}
	}
	out, err := w.Exec(background, leaf, "sh", "-c", "ip route; ip -6 route; vtysh -c 'show bgp summary'")
	w.Logf("leaf: %v\n%s", err, out)
}
