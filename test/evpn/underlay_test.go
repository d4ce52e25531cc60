package evpn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// The nodes of the underlay that Sluice keeps by itself, and the routers above them.
var (
	routed = map[string]int{"a1": 65101, "b1": 65102}
	leafs  = []string{"leaf1", "leaf2"}
)

const reflector = "rr"

// unnumbered has no more than links in it, and the tunnel address; reflected has EVPN
// with a reflector that is behind the routers.
const (
	unnumbered = `
    - {interface: up1, external: true, holdTime: 9s, connectRetry: 1s}
    - {interface: up2, external: true, holdTime: 9s, connectRetry: 1s}`
	reflected = `
    - {interface: up1, external: true, families: [ipv4, ipv6], connectRetry: 1s}
    - {interface: up2, external: true, families: [ipv4, ipv6], connectRetry: 1s}
    - {address: "%s", asn: 64512, multihopTTL: 4, localAddress: "%s", connectRetry: 1s}`
	underlayConfig = `bgp:
` + lab.Times + `  asn: %d
  neighbors:%s
fabric:
  vtep: %s
underlay:
  announce: {vtep: true, prefixes: [%s]}
  install: {enabled: true}
` + lab.NodeConfig
)

// Nodes without a routing daemon of their own, on two links each without addresses
// to routers with FRR: tenants reach each other through the underlay that Sluice
// announces and installs, over IPv4 and over IPv6, by both links, and by one when
// the other is cut; and with a reflector that the nodes reach by these routes only.
// The Southbound databases are where the reflector is: until Sluice has announced and
// installed its part of the underlay, no node reaches its own.
func TestUnderlayWithoutFRR(t *testing.T) {
	s := lab.EVPN(lab.EVPNParams{})
	// FRR in a namespace, which is made a router here, but for the last.
	s.Reflectors = append(slices.Clone(leafs), reflector)
	w := &world{T: t, Lab: labtest.Up(t, s)}
	for i, leaf := range leafs {
		w.makeLeaf(leaf, i+1)
	}
	w.makeReflector()
	databases := map[string]*southbound{"a1": w.onlyThrough(reflector, "a", "a1"), "b1": w.onlyThrough(reflector, "b", "b1")}
	for n := range routed {
		w.exec(n, "ip", "link", "set", lab.UnderlayLink, "down")
		databases[n].cannotReach(n)
		w.exec(n, "sh", "-ec", "echo 1 >/proc/sys/net/ipv4/fib_multipath_hash_policy; echo 1 >/proc/sys/net/ipv6/fib_multipath_hash_policy")
		w.startUnnumbered(n, unnumbered, w.node(n).VTEP4, w.node(n).VTEP6)
	}
	for n := range routed {
		w.ready(n)
	}
	w.connected()
	b4, b6 := w.node("b1").VTEP4, w.node("b1").VTEP6
	for _, to := range []netip.Addr{b4, b6} {
		w.waysTo("a1", to, "up1", "up2")
		w.exec("a1", "ping", "-n", "-c1", "-W2", to.String())
	}
	w.Logf("a1:\n%s", w.exec("a1", sluicectl(), "underlay"))
	w.usesBothLinks("a1", "a-red1", addrB4)
	foreign := w.foreignRoutes("a1")
	w.dryRunUnnumbered("a1", b4, b6)

	w.cutLink("a1", "to-a1", leafs[0], b4, b6)
	w.restartsUnnumbered("a1", b4, b6)
	w.startsCutOff("a1", databases["a1"], b4, b6)

	// The same tenants over tunnels of IPv6, by nodes that begin without a way again.
	for n := range routed {
		if err := w.process(n, "sluiced").Stop(); err != nil {
			t.Fatal(err)
		}
		w.exec(n, "sh", "-ec", flush)
		databases[n].cannotReach(n)
		w.startUnnumbered(n, fmt.Sprintf(reflected, w.node(reflector).VTEP6, w.node(n).VTEP6), w.node(n).VTEP6, w.node(n).VTEP4)
	}
	w.connected()
	w.waysTo("a1", b6, "up1", "up2")
	w.usesBothLinks("a1", "a-red1", addrB4)
	if err := w.process("a1", "sluiced").Stop(); err != nil {
		t.Fatal(err)
	}
	w.exec("a1", sluicectl(), "cleanup", "--config", w.node("a1").Dir+"/sluiced.yaml")
	if left := w.exec("a1", "sh", "-c", "ip route show proto 116; ip -6 route show proto 116"); left != "" {
		t.Errorf("cleanup left:\n%s", left)
	}
	if now := w.operatorsRoutes("a1"); now != foreign {
		t.Errorf("routes of others\n%swere\n%s", now, foreign)
	}
}

const flush = "ip route flush proto 116; ip -6 route flush proto 116"

// startsCutOff kills sluiced and takes its routes off: the next one has a way to
// nowhere. It learns the ways anew, and tenants have each other back while OVN cannot
// be reached still, by what is pinned; nothing of that is taken for given up.
func (w *world) startsCutOff(node string, database *southbound, to ...netip.Addr) {
	w.Helper()
	w.kill(node, "sluiced")
	database.cut()
	w.exec(node, "sh", "-ec", flush)
	database.cannotReach(node)
	w.startAgain(node, "sluiced")
	for _, a := range to {
		w.waysTo(node, a, "up1", "up2")
	}
	w.connected()
	s, err := w.status(node)
	if err != nil || s.Ready || !slices.ContainsFunc(s.Tables, func(t status.Table) bool { return t.Name == "routes" && t.Actual > 0 && t.Held != "" }) {
		w.Errorf("without OVN: %v, %+v", err, s)
	}
	w.connected()
	database.connect()
	w.ready(node)
	w.connected()
}

// dryRunUnnumbered has a dry run beside the running sluiced tell nothing but what
// only BGP could know more of.
func (w *world) dryRunUnnumbered(node string, to ...netip.Addr) {
	w.Helper()
	n := w.node(node)
	config := filepath.Join(w.TempDir(), "sluiced.yaml")
	w.exec(node, "cp", n.Dir+"/sluiced.yaml", config)
	p := w.dryRun(node, config, false)
	own := []netip.Prefix{netip.PrefixFrom(n.VTEP4, 32), netip.PrefixFrom(n.VTEP6, 128)}
	if len(p.Changes) > 0 || !slices.Equal(p.UnderlayAnnouncements, own) || !slices.Equal(p.Neighbors, []string{"up1", "up2"}) ||
		!slices.ContainsFunc(p.Unknown, func(u status.UnknownRows) bool { return u.Table == "underlay-routes" && u.Rows >= len(to) }) {
		w.Errorf("dry run: %+v", p)
	}
}

// Prefixes that a leaf announces: one that the node has a route of an operator's to,
// and one that ends while the node's sluiced is dead.
var (
	shadowed = []netip.Addr{netip.MustParseAddr("198.51.100.78"), netip.MustParseAddr("2001:db8:78::78")}
	ending   = []netip.Addr{netip.MustParseAddr("198.51.100.77"), netip.MustParseAddr("2001:db8:77::77")}
)

// network has a leaf announce addresses, or no longer.
func (w *world) network(leaf, no string, addrs ...netip.Addr) {
	w.Helper()
	number := slices.Index(leafs, leaf) + 1
	argv := []string{"vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("router bgp %d", 65000+number), "-c", "no bgp network import-check"}
	for _, a := range addrs {
		argv = append(argv, "-c", fmt.Sprintf("address-family ipv%d unicast", family(a)), "-c", fmt.Sprintf("%s network %s/%d", no, a, a.BitLen()), "-c", "exit-address-family")
	}
	w.exec(leaf, argv...)
}

// foreignRoutes gives a node routes of an operator's to what it learns too: they are
// used, and one with the metric of Sluice's is named as a conflict.
func (w *world) foreignRoutes(node string) string {
	w.Helper()
	w.exec(node, "sh", "-ec", fmt.Sprintf("ip route add %s/32 dev lo metric 100 proto static; ip -6 route add %s/128 dev up2 metric 4261412864 proto static", shadowed[0], shadowed[1]))
	before := w.operatorsRoutes(node)
	w.network(leafs[0], "", append(slices.Clone(shadowed), ending...)...)
	for _, a := range append([]netip.Addr{shadowed[0]}, ending...) {
		w.waysTo(node, a, "up1")
	}
	w.eventually("the conflict is named", func() error {
		out, err := w.Exec(w.Context(), node, sluicectl(), "underlay")
		if err == nil && !regexp.MustCompile(shadowed[1].String()+`/128 +error .*protocol`).MatchString(out) {
			err = errors.New(out)
		}
		return err
	})
	if got := w.exec(node, "ip", "route", "get", shadowed[0].String()); !strings.Contains(got, "dev lo") {
		w.Errorf("the operator's route is not used: %s", got)
	}
	return before
}

func (w *world) operatorsRoutes(node string) string {
	return w.exec(node, "sh", "-ec", "ip route show proto static; ip -6 route show proto static")
}

// makeLeaf joins a router with the nodes, and has it route between them.
func (w *world) makeLeaf(leaf string, number int) {
	w.Helper()
	ns := func(n string) string { return w.node(n).Netns }
	bgp := []string{"no router bgp", fmt.Sprintf("router bgp %d", 65000+number), "bgp router-id " + w.node(leaf).VTEP4.String(),
		"no bgp ebgp-requires-policy", "no bgp default ipv4-unicast", "bgp bestpath as-path multipath-relax"}
	families := map[string][]string{"ipv4 unicast": nil, "ipv6 unicast": nil, "l2vpn evpn": nil}
	for _, n := range append(slices.Sorted(maps.Keys(routed)), reflector) {
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

// makeReflector has one behind the routers, which tell it and the nodes of each other.
func (w *world) makeReflector() {
	w.Helper()
	n := w.node(reflector)
	w.exec(reflector, "ip", "link", "set", lab.UnderlayLink, "down")
	lines := []string{"configure terminal", "no router bgp", "router bgp 64512", "bgp router-id " + n.VTEP4.String(),
		"no bgp ebgp-requires-policy", "no bgp default ipv4-unicast", "neighbor up1 interface remote-as external", "neighbor up2 interface remote-as external"}
	evpn := []string{"address-family l2vpn evpn"}
	for node, asn := range routed {
		a := w.node(node).VTEP6.String()
		for _, line := range []string{fmt.Sprintf("remote-as %d", asn), "ebgp-multihop 4", "passive", "update-source " + n.VTEP6.String()} {
			lines = append(lines, "neighbor "+a+" "+line)
		}
		evpn = append(evpn, "neighbor "+a+" activate", "neighbor "+a+" attribute-unchanged next-hop")
	}
	lines = append(append(lines, evpn...), "exit-address-family", "address-family ipv6 unicast", "network "+n.VTEP6.String()+"/128",
		"neighbor up1 activate", "neighbor up2 activate", "exit-address-family")
	argv := []string{"vtysh"}
	for _, line := range lines {
		argv = append(argv, "-c", line)
	}
	w.exec(reflector, argv...)
}

func (w *world) startUnnumbered(node, neighbors string, vtep, other netip.Addr) {
	w.Helper()
	text := fmt.Sprintf(underlayConfig, routed[node], neighbors, vtep, other)
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

// usesBothLinks sends packets of many flows: tunnels to one node use all links.
func (w *world) usesBothLinks(node, vm, to string) {
	w.Helper()
	const flows = 64
	sent := func(link string) uint64 {
		var links []struct {
			Stats64 struct {
				TX struct{ Packets uint64 }
			}
		}
		out := w.exec(node, "ip", "-j", "-s", "link", "show", link)
		if err := json.Unmarshal([]byte(out), &links); err != nil || len(links) != 1 {
			w.Fatalf("%v in %s", err, out)
		}
		return links[0].Stats64.TX.Packets
	}
	one, two := sent("up1"), sent("up2")
	w.exec(vm, "bash", "-c", fmt.Sprintf("for p in $(seq 20001 %d); do echo >/dev/udp/%s/$p; done", 20000+flows, to))
	w.eventually("packets of many flows use both links", func() error {
		one, two := sent("up1")-one, sent("up2")-two
		if one+two < flows || min(one, two) < flows/6 {
			return fmt.Errorf("%d and %d packets", one, two)
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
	// The router ended its session when it lost the link, as this node finds now.
	w.eventually("the sessions of "+node+" are those after the cut", func() error {
		s, err := w.neighbors(node)
		if err == nil && (s[0].Flaps == 0 || s[0].State != "established" || s[1].State != "established") {
			err = fmt.Errorf("neighbours %+v", s)
		}
		return err
	})
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
	w.network(leafs[0], "no", ending...)
	w.waysTo(node, ending[0], "up1")
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
	for _, a := range ending {
		w.waysTo(node, a)
	}
	sent, lost := s.stop()
	w.Logf("sluiced on %s was killed and started: %d of %d packets lost", node, lost, sent)
}
