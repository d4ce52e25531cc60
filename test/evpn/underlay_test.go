package evpn_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The nodes of the underlay that Sluice keeps by itself, and the routers above them.
var (
	routed = map[string]int{"a1": 65101, "b1": 65102}
	leafs  = []string{"leaf1", "leaf2"}
)

// unnumbered has no more than links in it, and the tunnel address.
const unnumbered = `bgp:
  asn: %d
  neighbors:
    - {interface: up1, external: true, holdTime: 9s}
    - {interface: up2, external: true, holdTime: 9s}
fabric:
  vtep: %s
underlay:
  announce: {vtep: true, prefixes: [%s]}
  install: {enabled: true}
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

// Nodes without a routing daemon of their own, on two links each without addresses
// to routers with FRR: tenants reach each other through the underlay that Sluice
// announces and installs, over IPv4 and over IPv6, by both links, and by one when
// the other is cut.
func TestUnderlayWithoutFRR(t *testing.T) {
	s := lab.EVPN(lab.EVPNParams{})
	s.Reflectors = leafs // FRR in a namespace, which is made a router here
	w := &world{t, labtest.Up(t, s)}
	for i, leaf := range leafs {
		w.makeLeaf(leaf, i+1)
	}
	for n := range routed {
		w.exec(n, "ip", "link", "set", lab.UnderlayLink, "down")
		w.startUnnumbered(n, w.node(n).VTEP4, w.node(n).VTEP6)
	}
	w.connected()
	b4, b6 := w.node("b1").VTEP4, w.node("b1").VTEP6
	for _, to := range []netip.Addr{b4, b6} {
		w.waysTo("a1", to, "up1", "up2")
		w.exec("a1", "ping", "-n", "-c1", "-W2", to.String())
	}
	w.Logf("a1:\n%s", w.exec("a1", sluicectl(), "underlay"))

	w.cutLink("a1", "to-a1", leafs[0], b4, b6)
	w.restartsUnnumbered("a1", b4, b6)

	// The same tenants over tunnels of IPv6.
	for n := range routed {
		if err := w.process(n, "sluiced").Stop(); err != nil {
			t.Fatal(err)
		}
		w.startUnnumbered(n, w.node(n).VTEP6, w.node(n).VTEP4)
	}
	w.connected()
	w.waysTo("a1", b6, "up1", "up2")
	if err := w.process("a1", "sluiced").Stop(); err != nil {
		t.Fatal(err)
	}
	w.exec("a1", sluicectl(), "cleanup", "--config", w.node("a1").Dir+"/sluiced.yaml")
	if left := w.exec("a1", "sh", "-c", "ip route show proto 116; ip -6 route show proto 116"); left != "" {
		t.Errorf("cleanup left:\n%s", left)
	}
}

// makeLeaf joins a router with the nodes, and has it route between them.
func (w *world) makeLeaf(leaf string, number int) {
	w.Helper()
	ns := func(n string) string { return w.node(n).Netns }
	bgp := []string{"no router bgp", fmt.Sprintf("router bgp %d", 65000+number), "bgp router-id " + w.node(leaf).VTEP4.String(),
		"no bgp ebgp-requires-policy", "no bgp default ipv4-unicast", "bgp bestpath as-path multipath-relax"}
	families := map[string][]string{"ipv4 unicast": nil, "ipv6 unicast": nil, "l2vpn evpn": nil}
	for n := range routed {
		port, up := "to-"+n, fmt.Sprintf("up%d", number)
		w.exec(leaf, "ip", "link", "add", port, "type", "veth", "peer", "name", up, "netns", ns(n))
		w.exec(leaf, "ip", "link", "set", port, "up")
		w.exec(n, "ip", "link", "set", up, "up")
		bgp = append(bgp, "neighbor "+port+" interface remote-as external")
		for f := range families {
			families[f] = append(families[f], "neighbor "+port+" activate")
		}
		families["l2vpn evpn"] = append(families["l2vpn evpn"], "neighbor "+port+" attribute-unchanged next-hop")
	}
	w.exec(leaf, "ip", "link", "set", lab.UnderlayLink, "down")
	w.exec(leaf, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
	for f, lines := range families {
		bgp = append(append(append(bgp, "address-family "+f), lines...), "exit-address-family")
	}
	argv := []string{"vtysh", "-c", "configure terminal"}
	for _, line := range bgp {
		argv = append(argv, "-c", line)
	}
	w.exec(leaf, argv...)
}

func (w *world) startUnnumbered(node string, vtep, other netip.Addr) {
	w.Helper()
	text := fmt.Sprintf(unnumbered, routed[node], vtep, other)
	if _, err := w.StartSluiced(w.Context(), node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
}

// waysTo waits until the kernel of a node has a route of Sluice's by these links
// alone.
func (w *world) waysTo(node string, to netip.Addr, links ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s goes to %s by %v", node, to, links), func() error {
		out, err := w.Exec(w.Context(), node, "ip", "-o", fmt.Sprintf("-%d", family(to)), "route", "show", "proto", "116", to.String())
		if err != nil {
			return err
		}
		for _, l := range []string{"up1", "up2"} {
			if strings.Contains(out, "dev "+l) != strings.Contains(strings.Join(links, " "), l) {
				return fmt.Errorf("route %q", out)
			}
		}
		return nil
	})
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// cutLink takes a link away under traffic, and gives it back.
func (w *world) cutLink(node, port, leaf string, to ...netip.Addr) {
	w.Helper()
	streams := []*stream{w.stream("a-red1", addrB4), w.stream("b-red1", addrA6)}
	w.exec(leaf, "ip", "link", "set", port, "down")
	for _, a := range to {
		w.waysTo(node, a, "up2")
	}
	w.connected()
	w.exec(leaf, "ip", "link", "set", port, "up")
	for _, a := range to {
		w.waysTo(node, a, "up1", "up2")
	}
	for _, s := range streams {
		sent, lost := s.stop()
		w.Logf("a link was cut and came back: %s: %d of %d packets lost", s.name, lost, sent)
		if lost > sent/2 {
			w.Errorf("%s: %d of %d packets lost over a cut link", s.name, lost, sent)
		}
	}
}

// restartsUnnumbered kills sluiced: its routes stay while it is dead, and the new
// one takes them over.
func (w *world) restartsUnnumbered(node string, to ...netip.Addr) {
	w.Helper()
	s := w.stream("a-red1", addrB4)
	w.kill(node, "sluiced")
	for _, a := range to {
		w.waysTo(node, a, "up1", "up2")
	}
	w.startAgain(node, "sluiced")
	w.ready(node)
	w.eventually("the underlay of "+node+" is complete", func() error {
		out, err := w.Exec(w.Context(), node, sluicectl(), "underlay", "-o", "json")
		if err == nil && !strings.Contains(out, `"inSync": true`) {
			err = fmt.Errorf("status %s", out)
		}
		return err
	})
	for _, a := range to {
		w.waysTo(node, a, "up1", "up2")
	}
	sent, lost := s.stop()
	w.Logf("sluiced on %s was killed and started: %d of %d packets lost", node, lost, sent)
}
