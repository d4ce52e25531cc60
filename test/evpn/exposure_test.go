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
	hop4, hop6       = "172.24.0.1", "2001:db8:24::1"
)

// exposing is the configuration of a node with a link to the leaf and EVPN with the
// reflector.
const exposing = `bgp:
  asn: 64512
  neighbors:
    - {address: %[1]s}
    - {address: %[2]s, asn: 65001, families: [ipv4], holdTime: 9s}
    - {address: "%[3]s", asn: 65001, families: [ipv6], holdTime: 9s}
underlay:
  install: {enabled: true}
exposure: {ports: %[4]s, floatingIPs: %[4]s, gateways: %[4]s}
fabric:
  nextHops: {physnet1: [%[5]s, "%[6]s"]}
ovn:
  vswitch: unix:${OVS_RUNDIR}/db.sock
  nb: ${OVN_NB_DB}
ovs:
  runDir: ${OVS_RUNDIR}
dataplane:
  bpffs: ${SLUICE_BPFFS}
admin:
  socket: ${SLUICE_SOCKET}
stateDir: ${OVS_RUNDIR}/sluice
`

// A machine on the provider network, floating IPs of red, centralised and
// distributed, and green's gateway port are reached from behind the underlay without
// EVPN, while EVPN goes on: over IPv4 and IPv6, small and large, by ping and by
// TCP. They stay so while sluiced is dead, follow a machine to another chassis, and
// are gone when it is switched off.
func TestExposureWithoutEVPN(t *testing.T) {
	s := lab.EVPN(lab.EVPNParams{})
	s.Reflectors = append(s.Reflectors, leaf)
	s.Clouds = s.Clouds[:1]
	s.Clouds[0].VMs = append(s.Clouds[0].VMs, lab.VM{
		Name: "a-pub", Chassis: "a1", Network: "public", Addr4: netip.MustParseAddr(public4), Addr6: netip.MustParseAddr(public6),
	})
	green := lab.Tenant{Name: "green", Provider: "public", Networks: s.Clouds[0].Tenants[0].Networks, GatewayChassis: "a1"} // without EVPN
	s.Clouds[0].Tenants = append(s.Clouds[0].Tenants, green)
	w := &world{t, labtest.Up(t, s)}
	t.Cleanup(func() {
		if t.Failed() {
			w.report()
			w.exposureReport()
		}
	})
	w.floating()
	w.makeWorld("a1", "a2")
	for i, n := range []string{"a1", "a2"} {
		w.expose(n, i+1, "on")
	}
	everywhere := map[string][]string{"a1": {public4, public6, central4, central6, gateway4, gateway6}, "a2": {spread4, spread6}}
	for n, addrs := range everywhere {
		for _, a := range addrs {
			w.leads(a, n)
			w.world(a)
		}
	}
	w.leads("172.24.0.11") // red's gateway port has it in EVPN
	for _, a := range []string{world4, world6} {
		w.reach("a-pub", a)
		w.reach("a-red1", a)
	}
	for _, a := range []string{public4, public6} {
		w.exec(leaf, "ping", "-n", "-c2", "-W2", "-s1300", "-I", source(a), a)
	}
	w.tcp("a-pub", public4, public6)
	w.tcp("a-red1", spread4, spread6)
	w.tcp("a-red2", central4, central6)

	// sluiced is dead: packets go on, and the leaf keeps the routes.
	stream := w.stream(leaf, public4, "-I", world4)
	w.kill("a1", "sluiced")
	for _, a := range everywhere["a1"] {
		w.exec(leaf, "ping", "-n", "-c2", "-W2", "-I", source(a), a)
	}
	w.startAgain("a1", "sluiced")
	w.ready("a1")
	sent, lost := stream.stop()
	w.Logf("sluiced killed and started again: %d of %d packets lost", lost, sent)
	if lost > 0 {
		w.Errorf("%d of %d packets lost while sluiced was dead", lost, sent)
	}

	// A machine moves, with its address.
	if err := w.MoveVM(w.Context(), "a-pub", "a2"); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{public4, public6} {
		w.leads(a, "a2")
		w.world(a)
	}

	// Switched off, the addresses are withdrawn, and what carried them is gone.
	for i, n := range []string{"a1", "a2"} {
		if err := w.process(n, "sluiced").Stop(); err != nil {
			t.Fatal(err)
		}
		w.expose(n, i+1, "off")
	}
	for _, addrs := range everywhere {
		for _, a := range addrs {
			w.leads(a)
		}
	}
	if out := w.exec("a2", sluicectl(), "vrf", "list"); strings.Contains(out, "default") {
		w.Errorf("still there:\n%s", out)
	}
}

// floating gives red's machines floating IPs: the one on a1 centralised ones, the
// one on a2 distributed ones.
func (w *world) floating() {
	w.Helper()
	w.nb("a", "lsp-set-options", lab.GatewaySwitchPort("red"), "router-port="+lab.GatewayPort("red"), "nat-addresses=router")
	for _, nat := range [][]string{
		{central4, "10.10.0.12"}, {central6, "fd00:10::12"},
		{spread4, "10.10.0.11", "a-red1", spreadMAC}, {spread6, "fd00:10::11", "a-red1", spreadMAC},
	} {
		w.nb("a", append([]string{"lr-nat-add", lab.RouterName("red"), "dnat_and_snat"}, nat...)...)
	}
}

// linkTo are the addresses of the link between the leaf and its i-th node.
func linkTo(i int) (leaf4, node4, leaf6, node6 string) {
	four := func(n int) string { return fmt.Sprintf("192.0.2.%d", 4*i+n) }
	six := func(n int) string { return fmt.Sprintf("2001:db8:f:%d::%d", i, n) }
	return four(1), four(2), six(1), six(2)
}

// makeWorld joins the leaf with nodes, and gives it the world's addresses.
func (w *world) makeWorld(nodes ...string) {
	w.Helper()
	bgp := []string{"no router bgp", "router bgp 65001", "bgp router-id 192.0.2.1", "no bgp ebgp-requires-policy", "no bgp default ipv4-unicast"}
	four, six := []string{"network " + world4 + "/32"}, []string{"network " + world6 + "/128"}
	w.exec(leaf, "sh", "-ec", fmt.Sprintf("ip addr add %s/32 dev lo; ip addr add %s/128 dev lo nodad", world4, world6))
	for i, n := range nodes {
		l4, n4, l6, n6 := linkTo(i + 1)
		w.exec(leaf, "ip", "link", "add", "to-"+n, "type", "veth", "peer", "name", "up1", "netns", w.node(n).Netns)
		w.exec(leaf, "sh", "-ec", fmt.Sprintf("ip addr add %s/30 dev to-%[3]s; ip addr add %[2]s/64 dev to-%[3]s nodad; ip link set to-%[3]s up", l4, l6, n))
		w.exec(n, "sh", "-ec", fmt.Sprintf("ip addr add %s/30 dev up1; ip addr add %s/64 dev up1 nodad; ip link set up1 up", n4, n6))
		for _, a := range []string{n4, n6} {
			bgp = append(bgp, "neighbor "+a+" remote-as 64512", "neighbor "+a+" passive")
		}
		four, six = append(four, "neighbor "+n4+" activate"), append(six, "neighbor "+n6+" activate")
	}
	bgp = append(append(append(bgp, "address-family ipv4 unicast"), four...), "exit-address-family")
	bgp = append(append(append(bgp, "address-family ipv6 unicast"), six...), "exit-address-family")
	argv := []string{"vtysh", "-c", "configure terminal"}
	for _, line := range bgp {
		argv = append(argv, "-c", line)
	}
	w.exec(leaf, argv...)
}

// expose starts sluiced on the leaf's i-th node, with what is exposed on or off.
func (w *world) expose(node string, i int, exposed string) {
	w.Helper()
	l4, _, l6, _ := linkTo(i)
	text := fmt.Sprintf(exposing, w.node("rr").VTEP4, l4, l6, exposed, hop4, hop6)
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
		for _, n := range []string{"a1", "a2"} {
			if strings.Contains(out, "dev to-"+n) != slices.Contains(nodes, n) {
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
			_, err := w.Exec(w.Context(), leaf, "ping", "-n", "-c1", "-W1", "-I", source(a), a)
			return err
		})
	}
}

// tcp has the world fetch from a machine, in segments as large as they may be.
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
	for _, n := range []string{"a1", "a2"} {
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
