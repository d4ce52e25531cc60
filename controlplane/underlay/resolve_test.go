package underlay

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

func a(s string) netip.Addr   { return netip.MustParseAddr(s) }
func p(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// fabric is a node with an unnumbered and a numbered link up, a third one without
// carrier, and a network of its management.
func fabric() []Link {
	return []Link{
		{Name: "lo", Carrier: true, Loopback: true, Prefixes: []netip.Prefix{p("127.0.0.1/8"), p("10.0.0.7/32"), p("fd00::7/128")}},
		{Name: "eth1", Carrier: true, Prefixes: []netip.Prefix{p("fe80::71/64")}},
		{Name: "eth2", Carrier: true, Prefixes: []netip.Prefix{p("192.0.2.1/31"), p("2001:db8:2::1/127"), p("fe80::72/64")}},
		{Name: "eth3", Prefixes: []netip.Prefix{p("192.0.2.3/31"), p("fe80::73/64")}},
		{Name: "mgmt", Carrier: true, Prefixes: []netip.Prefix{p("198.51.100.9/24"), p("2001:db8:99::9/64")}},
	}
}

func unnumbered(link string) Hop { return Hop{Addr: a("fe80::1"), Neighbor: a("fe80::1%" + link)} }

func TestResolve(t *testing.T) {
	numbered4 := Hop{Addr: a("192.0.2.0"), Neighbor: a("192.0.2.0")}
	numbered6 := Hop{Addr: a("2001:db8:2::"), LinkLocal: a("fe80::2"), Neighbor: a("2001:db8:2::")}
	for _, tc := range []struct {
		name   string
		prefix string
		hops   []Hop
		want   string
		why    string
	}{
		{"unnumbered, IPv4 over IPv6", "10.0.0.8/32", []Hop{unnumbered("eth1")}, "fe80::1 dev eth1", ""},
		{"unnumbered with a global next hop beside", "fd00::8/128", []Hop{{a("fd00::100"), a("fe80::1"), a("fe80::1%eth1")}}, "fe80::1 dev eth1", ""},
		{"numbered", "10.0.0.8/32", []Hop{numbered4}, "192.0.2.0 dev eth2", ""},
		{"numbered, IPv6: the global one", "fd00::8/128", []Hop{numbered6}, "2001:db8:2:: dev eth2", ""},
		{"numbered, a global one that is on no link", "fd00::8/128", []Hop{{a("fd00::100"), a("fe80::2"), a("2001:db8:2::")}}, "fe80::2 dev eth2", ""},
		{"ECMP", "10.0.0.8/32", []Hop{numbered4, unnumbered("eth1")}, "fe80::1 dev eth1, 192.0.2.0 dev eth2", ""},
		{"one address on two links", "10.0.0.8/32", []Hop{unnumbered("eth1"), unnumbered("eth2")}, "fe80::1 dev eth1, fe80::1 dev eth2", ""},
		{"the node has its address on another link", "10.0.0.8/32", []Hop{{Addr: a("fe80::72"), Neighbor: a("fe80::72%eth1")}}, "fe80::72 dev eth1", ""},
		{"the node has its address on this link", "10.0.0.8/32", []Hop{{Addr: a("fe80::71"), Neighbor: a("fe80::1%eth1")}}, "", reason.UnderlayUnresolved},
		{"ECMP, one link down", "10.0.0.8/32", []Hop{unnumbered("eth3"), unnumbered("eth1")}, "fe80::1 dev eth1", ""},
		{"link down", "10.0.0.8/32", []Hop{unnumbered("eth3")}, "", reason.UnderlayLinkDown},
		{"link gone", "10.0.0.8/32", []Hop{unnumbered("eth9")}, "", reason.UnderlayLinkDown},
		{"the next hop is far away", "10.0.0.8/32", []Hop{{Addr: a("10.0.0.100"), Neighbor: a("10.0.0.100")}}, "", reason.UnderlayUnresolved},
		{"the next hop is the node itself", "10.0.0.8/32", []Hop{{Addr: a("192.0.2.1"), Neighbor: a("192.0.2.0")}}, "", reason.UnderlayUnresolved},
		{"default", "0.0.0.0/0", []Hop{unnumbered("eth1")}, "fe80::1 dev eth1", ""},
		{"default, IPv6", "::/0", []Hop{unnumbered("eth1")}, "fe80::1 dev eth1", ""},
		{"not accepted", "10.0.0.0/24", []Hop{numbered4}, "", reason.UnderlayFiltered},
		{"own address", "10.0.0.7/32", []Hop{numbered4}, "", reason.UnderlayConnected},
		{"own address, IPv6", "fd00::7/128", []Hop{unnumbered("eth1")}, "", reason.UnderlayConnected},
		{"the neighbour's address on the link", "192.0.2.0/32", []Hop{numbered4}, "", reason.UnderlayConnected},
		{"within the network of the management", "2001:db8:99::5/128", []Hop{unnumbered("eth1")}, "", reason.UnderlayConnected},
		{"within a network of a link that is down", "192.0.2.2/32", []Hop{unnumbered("eth1")}, "", reason.UnderlayConnected},
		{"multicast", "224.0.0.5/32", []Hop{numbered4}, "", reason.UnderlayNotUnicast},
		{"loopback", "::1/128", []Hop{unnumbered("eth1")}, "", reason.UnderlayNotUnicast},
		{"link-local", "fe80::5/128", []Hop{unnumbered("eth1")}, "", reason.UnderlayNotUnicast},
		{"IPv4 with a global next hop beside", "10.0.0.8/32", []Hop{{a("fd00::100"), a("fe80::1"), a("fe80::1%eth1")}}, "fe80::1 dev eth1", ""},
		{"IPv4 over a numbered session of IPv6", "10.0.0.8/32", []Hop{numbered6}, "2001:db8:2:: dev eth2", ""},
		{"numbered, the link-local one alone", "fd00::8/128", []Hop{{Addr: a("fe80::2"), Neighbor: a("2001:db8:2::")}}, "fe80::2 dev eth2", ""},
		{"IPv6 by an IPv4 router", "fd00::8/128", []Hop{{Addr: a("192.0.2.0"), Neighbor: a("192.0.2.0")}}, "", reason.UnderlayUnresolved},
		{"IPv6 by one with a link-local address, too", "fd00::8/128", []Hop{{a("192.0.2.0"), a("fe80::2"), a("192.0.2.0")}}, "fe80::2 dev eth2", ""},
		{"no address", "10.0.0.8/32", []Hop{{Addr: a("::"), Neighbor: a("fe80::1%eth1")}}, "", reason.UnderlayUnresolved},
		{"its own session", "10.0.0.100/32", []Hop{{Addr: a("192.0.2.0"), Neighbor: a("10.0.0.100")}}, "", reason.UnderlayOwnSession},
		{"its own session, default", "0.0.0.0/0", []Hop{{Addr: a("192.0.2.0"), Neighbor: a("10.0.0.100")}}, "", reason.UnderlayOwnSession},
		{"a far neighbour's address, learned on a link", "10.0.0.100/32", []Hop{{Addr: a("192.0.2.0"), Neighbor: a("10.0.0.100")}, unnumbered("eth1")}, "fe80::1 dev eth1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Resolve([]Learned{{Prefix: p(tc.prefix), Hops: tc.hops}}, fabric(), Config{Accept: DefaultAccept(), Metric: 5})
			row, ok := r.Rows[p(tc.prefix)]
			switch {
			case tc.why == "" && (!ok || row.Hops.String() != tc.want || row.Metric != 5 || row.Prefix != p(tc.prefix)):
				t.Errorf("row %+v, refused %v", row, r.Refused)
			case tc.why != "" && (ok || len(r.Refused) != 1 || r.Refused[0].Reason != tc.why):
				t.Errorf("row %+v, refused %v; want %s", row, r.Refused, tc.why)
			}
		})
	}
}

// What BGP has refused has BGP's reason, unless the prefix is none for the node anyway.
func TestRefusedByBGP(t *testing.T) {
	var learned []Learned
	for _, s := range []string{"10.0.0.8/32", "10.0.0.7/32", "fd00::8/128"} {
		learned = append(learned, Learned{Prefix: p(s), Refused: reason.RouteOwnAS})
	}
	r := Resolve(learned, fabric(), Config{Accept: DefaultAccept()})
	want := []Refusal{{p("10.0.0.7/32"), reason.UnderlayConnected}, {p("10.0.0.8/32"), reason.RouteOwnAS}, {p("fd00::8/128"), reason.RouteOwnAS}}
	if !slices.Equal(r.Refused, want) || len(r.Rows) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestSources(t *testing.T) {
	learned := []Learned{{Prefix: p("10.0.0.8/32"), Hops: []Hop{unnumbered("eth1")}}, {Prefix: p("fd00::8/128"), Hops: []Hop{unnumbered("eth1")}}}
	r := Resolve(learned, fabric(), Config{Accept: DefaultAccept(), Sources: []netip.Addr{a("10.0.0.9"), a("10.0.0.7"), a("192.0.2.1"), a("fd00::7")}})
	want := map[netip.Prefix]netip.Addr{p("10.0.0.8/32"): a("10.0.0.7"), p("fd00::8/128"): a("fd00::7")}
	got := map[netip.Prefix]netip.Addr{}
	for k, row := range r.Rows {
		got[k] = row.Source
	}
	if !maps.Equal(got, want) {
		t.Errorf("sources %v", got)
	}
	if r := Resolve(learned, fabric(), Config{Accept: DefaultAccept()}); r.Rows[p("10.0.0.8/32")].Source.IsValid() {
		t.Error("a source that nobody asked for")
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		m       Match
		in, out []string
	}{
		{Match{Prefix: p("10.0.0.0/8")}, []string{"10.0.0.0/8"}, []string{"10.0.0.0/9", "0.0.0.0/0", "10.1.0.0/16"}},
		{Match{Prefix: p("10.0.0.0/8"), GE: 24}, []string{"10.1.1.0/24", "10.1.1.1/32"}, []string{"10.1.0.0/16", "11.0.0.0/24"}},
		{Match{Prefix: p("10.0.0.0/8"), LE: 24}, []string{"10.0.0.0/8", "10.1.1.0/24"}, []string{"10.1.1.1/32"}},
		{Match{Prefix: p("10.0.0.0/8"), GE: 16, LE: 24}, []string{"10.1.0.0/16"}, []string{"10.0.0.0/8", "10.1.1.0/25"}},
		{Match{Prefix: p("::/0"), GE: 128}, []string{"fd00::1/128"}, []string{"::/0", "10.0.0.1/32", "0.0.0.0/0"}},
	} {
		for _, s := range tc.in {
			if !tc.m.Matches(p(s)) {
				t.Errorf("%+v leaves out %s", tc.m, s)
			}
		}
		for _, s := range tc.out {
			if tc.m.Matches(p(s)) {
				t.Errorf("%+v takes %s", tc.m, s)
			}
		}
	}
}

// Every learned route is a row or refused, whatever the order.
func TestNothingIsLost(t *testing.T) {
	var learned []Learned
	for _, s := range []string{"10.0.0.8/32", "10.0.0.0/24", "10.0.0.7/32", "::/0", "fd00::8/128"} {
		learned = append(learned, Learned{Prefix: p(s), Hops: []Hop{unnumbered("eth1")}})
	}
	r := Resolve(learned, fabric(), Config{Accept: DefaultAccept()})
	if len(r.Rows)+len(r.Refused) != len(learned) || len(r.Rows) != 3 {
		t.Errorf("%+v", r)
	}
	var none intent.UnderlayHops
	for _, row := range r.Rows {
		if row.Hops == none {
			t.Errorf("%+v leads nowhere", row)
		}
	}
}
