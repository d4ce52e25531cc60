package evpn_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// moveGateways gives the gateway ports of both tenants of cloud A to a chassis,
// in one transaction.
func (w *world) moveGateways(to string) {
	w.Helper()
	if err := w.MoveGateways(w.Context(), to); err != nil {
		w.Fatal(err)
	}
}

// macBindings are OVN's learned neighbours of the gateway ports in cloud A.
func (w *world) macBindings() string {
	w.Helper()
	out, err := w.SB(w.Context(), "a", "--format=csv", "--no-headings", "--columns=_uuid,logical_port,ip,mac", "list", "MAC_Binding")
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// A gateway moves to another node: routes and packets follow, and the router
// goes on with the next-hop MAC that it has learned, without asking again.
func TestGatewayMove(t *testing.T) {
	w := shared(t)
	routes := []string{"10.10.0.0/24", "10.10.0.11/32", "fd00:10::/64", "fd00:10::11/128", "172.24.0.11/32", "2001:db8:24::b/128"}
	back := false
	t.Cleanup(func() {
		if !back {
			_, _ = w.NB(background, "a", strings.Fields("lrp-set-gateway-chassis lrp-red-gw a1 20 -- lrp-set-gateway-chassis lrp-red-gw a2 10 -- "+
				"lrp-set-gateway-chassis lrp-blue-gw a1 20 -- lrp-set-gateway-chassis lrp-blue-gw a2 10")...)
		}
	})
	bindings := w.macBindings()
	if !strings.Contains(bindings, `"172.24.0.1"`) {
		t.Fatalf("OVN has not learned the next hop: %s", bindings)
	}
	for _, to := range []string{"a2", "a1"} {
		from := map[string]string{"a1": "a2", "a2": "a1"}[to]
		asked := w.capture(to, "any", "arp or icmp6[0] == 135")
		streams := w.streams()
		w.moveGateways(to)
		w.announced(to, vniRed, routes...)
		w.withdrawn(from, vniRed, routes...)
		w.reach("a-red1", addrB4, addrB6)
		w.reach("b-blue1", addrA4, addrA6)
		for _, s := range streams {
			sent, lost := s.stop()
			t.Logf("move to %s: %s: %d of %d lost", to, s.name, lost, sent)
			if sent == lost {
				t.Errorf("%s: all lost", s.name)
			}
		}
		w.connected()
		// The new node has been asked for no next hop, and yet speaks as one.
		for _, addr := range []string{addrB4, addrB6} {
			w.tooBig("a-red1", addr)
		}
		w.clean()
		for _, p := range w.stop(asked) {
			if a := askedFor(p); strings.HasPrefix(a, "172.24.0.1 ") || strings.HasPrefix(a, "2001:db8:24::1 ") {
				t.Errorf("after the move to %s somebody asked for %s", to, a)
			}
		}
		if got := w.macBindings(); got != bindings {
			t.Errorf("MAC_Binding changed by the move to %s:\n%s\nbefore:\n%s", to, got, bindings)
		}
	}
	back = true
}

// moves are how many moves the test makes: the bench makes more.
const moves = 4

// The outage of a move, printed beside that of OVN alone: in the same move a host
// on the provider network, with a static route through the gateway port, talks to a
// network of the same router that Sluice does not expose.
func TestGatewayMoveBesideOVN(t *testing.T) {
	w := own(t, lab.EVPNMoves(), "")
	if err := w.PrepareMoves(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.connected()
	w.reach(lab.Outside, "10.30.0.9", "fd00:30::9")
	var all []lab.Move
	for i := range moves {
		to, from := "a2", "a1"
		if i%2 == 1 {
			to, from = from, to
		}
		m, err := w.MeasureMove(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		ours, ovn := m.Worst()
		t.Logf("move to %s: no answer through Sluice for %v, through OVN alone for %v", to, ours, ovn)
		all = append(all, m)
		w.announced(to, vniRed, "10.10.0.11/32", "fd00:10::11/128")
		w.withdrawn(from, vniRed, "10.10.0.11/32", "fd00:10::11/128")
		w.connected()
	}
	ours, ovn := lab.Medians(all)
	t.Logf("median of %d moves: %v through Sluice, %v through OVN alone, %v more", len(all), ours, ovn, ours-ovn)
	w.clean()
}

// askedFor is the address that an ARP or ND request of an "any" capture asks for.
func askedFor(p lab.Packet) string {
	const cooked = 20 // LINKTYPE_LINUX_SLL2
	if len(p.Data) < cooked+28 {
		return ""
	}
	protocol, body := fmt.Sprintf("%x", p.Data[:2]), p.Data[cooked:]
	switch {
	case protocol == "0806" && body[7] == 1:
		return fmt.Sprintf("%d.%d.%d.%d by ARP", body[24], body[25], body[26], body[27])
	case protocol == "86dd" && len(body) >= 64:
		return netip.AddrFrom16([16]byte(body[48:64])).String() + " by ND"
	}
	return ""
}
