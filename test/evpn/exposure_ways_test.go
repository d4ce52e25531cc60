package evpn_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// dhcp gives the VMs on provider networks OVN's DHCP, which names their default
// gateways of IPv4, and lists that of IPv6 on the network without a router.
func (w *world) dhcp() {
	w.Helper()
	for vm, subnet := range map[string]string{"a-pub": "172.24.0.0/16", "a-tag": "172.28.0.0/16"} {
		gateway := netip.MustParsePrefix(subnet).Addr().Next()
		id := strings.TrimSpace(w.nb("a", "create", "DHCP_Options", "cidr="+subnet, "options:router="+gateway.String()))
		w.nb("a", "lsp-set-dhcpv4-options", vm, id)
	}
	w.nb("a", "set", "Logical_Switch_Port", "a-tag", fmt.Sprintf("external_ids:sluice-next-hops=%q", tagHop6))
}

// packets are those that a node's devices of the underlay received and sent.
func (w *world) packets(node string) map[string][2]uint64 {
	w.Helper()
	var links []struct {
		Ifname  string
		Stats64 struct{ Rx, Tx struct{ Packets uint64 } }
	}
	if err := json.Unmarshal([]byte(w.exec(node, "ip", "-s", "-j", "link")), &links); err != nil {
		w.Fatal(err)
	}
	out := map[string][2]uint64{}
	for _, l := range links {
		out[l.Ifname] = [2]uint64{l.Stats64.Rx.Packets, l.Stats64.Tx.Packets}
	}
	return out
}

// bothWays has all addresses of the world ping what a node exposes: each of the node's
// links carries a part of the questions and of the answers. The kernel of the one side
// and that of the other choose by the addresses; of 16 pairs each link gets some.
func (w *world) bothWays(node string, addrs ...string) {
	w.Helper()
	const each = 5
	for _, a := range addrs {
		before := w.packets(node)
		base := strings.TrimSuffix(source(a), "1")
		digits := "%d"
		if family(netip.MustParseAddr(a)) == 6 {
			digits = "%x"
		}
		out := w.exec(leaf, "sh", "-c", fmt.Sprintf("for i in $(seq 1 %d); do ping -n -q -c%d -i0.05 -W2 -I %s$(printf '%s' $i) %s & done; wait", worlds, each, base, digits, a))
		if got := strings.Count(out, fmt.Sprintf(" %d received", each)); got != worlds {
			w.Errorf("%d of %d addresses of the world had all answers from %s:\n%s", got, worlds, a, out)
		}
		after := w.packets(node)
		for _, u := range uplinks {
			if u.node != node {
				continue
			}
			b, n := before[u.device], after[u.device]
			rx, tx := n[0]-b[0], n[1]-b[1]
			w.Logf("%s, %s: %d of %d packets in, %d out", a, u.device, rx, worlds*each, tx)
			// What BGP sends meanwhile is less than a pair's packets twice.
			if rx < 2*each || tx < 2*each {
				w.Errorf("%s: %d packets came in by %s and %d went out: it has no part", a, rx, u.device, tx)
			}
		}
	}
}

// drainExposed drains a node, which says so with a community, then withdraws, and puts
// it back.
func (w *world) drainExposed(node string, addrs []string) {
	w.Helper()
	if s := w.drain(node, "drain", "--withdraw-after", "1h"); s.Stage != "graceful-shutdown" || s.Announced == nil || *s.Announced < len(addrs) {
		w.Errorf("drain: %+v", s)
	}
	for _, a := range addrs {
		w.eventually("the leaf sees that "+a+" is to go", func() error {
			out, err := w.Exec(w.Context(), leaf, "vtysh", "-c", fmt.Sprintf("show bgp ipv%d unicast %s", family(netip.MustParseAddr(a)), a))
			if err == nil && !strings.Contains(out, "graceful-shutdown") {
				err = fmt.Errorf("no community:\n%s", out)
			}
			return err
		})
	}
	w.world(addrs...)
	if s := w.drain(node, "drain", "--withdraw-after", "0"); s.Stage != "withdrawn" && s.Stage != "drained" {
		w.Errorf("drain: %+v", s)
	}
	for _, a := range addrs {
		w.leads(a)
	}
	if s := w.drain(node, "undrain"); s.Stage != "serving" {
		w.Errorf("undrain: %+v", s)
	}
	for _, a := range addrs {
		w.leads(a, node)
	}
	w.world(addrs...)
}
