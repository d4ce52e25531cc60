package bgp

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// hopOf is a next hop of the addresses, each after a route distinguisher if there is one.
func hopOf(words ...string) (out []byte) {
	for _, w := range words {
		if w == "rd" {
			out = append(out, make([]byte, 8)...)
			continue
		}
		out = append(out, netip.MustParseAddr(w).AsSlice()...)
	}
	return out
}

// hopForm is a next hop on the wire, and what IPv4 and IPv6 prefixes with it lead to; "": as IPv4.
type hopForm struct {
	hop      []byte
	want, v6 string
}

// classics are values of NEXT_HOP beside MP_REACH_NLRI, where nobody looks at it (RFC 4760 section 3).
func classics() [][]byte {
	next := func(b ...byte) []byte { return attribute(flagTransitive, 3, b) }
	return [][]byte{
		nil, next(0, 0, 0, 0), next(198, 51, 100, 1), next(127, 0, 0, 1), next(224, 0, 0, 5), next(255, 255, 255, 255), next(192, 0, 2, 7),
		next(1, 2, 3), next(), attribute(flagOptional, 3, []byte{192, 0, 2, 7}),
	}
}

// TestNextHopForms: prefixes lead to the router that they name, whatever their next hop looks like
// (RFC 2545 section 3, RFC 8950 section 3), and whatever NEXT_HOP stands beside it.
func TestNextHopForms(t *testing.T) {
	t.Parallel()
	const router, global, far = twinAddr, "2001:db8:51::fe", "2001:db8:99::1"
	up, eth := router+" dev up0", router+" dev eth0"
	unresolved, bad := reason.UnderlayUnresolved, string(ReasonBadNextHop)
	for _, tt := range []struct {
		name, address string
		forms         []hopForm
	}{
		{"unnumbered", router + "%up0", []hopForm{
			{hopOf(router), up, ""}, {hopOf(far, router), up, ""}, {hopOf("::", router), up, ""}, {hopOf(router, router), up, ""},
			{hopOf(router, "::"), up, ""}, {hopOf(router, far), up, ""}, {hopOf("::ffff:192.0.2.7", router), up, ""}, {hopOf(global, router), up, ""},
			{hopOf("rd", router), up, ""}, {hopOf("rd", far, "rd", router), up, ""}, {hopOf("rd", "::", "rd", router), up, ""},
			{hopOf("fe80::99"), "fe80::99 dev up0", ""}, {hopOf(far), unresolved, ""}, {hopOf("::"), unresolved, ""}, {hopOf("ff02::1"), unresolved, ""},
			{hopOf(nodeTwin), unresolved, ""}, {make([]byte, 20), bad, ""}, {nil, bad, ""},
		}},
		{"numbered", global, []hopForm{
			{hopOf(global), global + " dev eth0", ""}, {hopOf(global, router), global + " dev eth0", ""}, {hopOf(far, router), eth, ""},
			{hopOf("::", router), eth, ""}, {hopOf(router), eth, ""}, {hopOf(router, router), eth, ""}, {hopOf(global, "::"), global + " dev eth0", ""},
			{hopOf("rd", global), global + " dev eth0", ""}, {hopOf("rd", global, "rd", router), global + " dev eth0", ""},
			{hopOf("198.51.100.254"), "198.51.100.254 dev eth0", bad}, {hopOf("rd", "198.51.100.254"), "198.51.100.254 dev eth0", bad},
			{hopOf("::ffff:198.51.100.254"), "198.51.100.254 dev eth0", unresolved}, {hopOf("::ffff:198.51.100.254", router), "198.51.100.254 dev eth0", eth},
			{hopOf(far), unresolved, ""}, {hopOf(nodeAddr6), unresolved, ""}, {hopOf(nodeAddr4), unresolved, bad}, {hopOf("0.0.0.0"), unresolved, bad},
			{hopOf("224.0.0.5"), unresolved, bad},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newChain(t)
			c.twinLinks("up0")
			var p *rawPeer
			in := netns.Named(c.mid)
			if err := in.Do(func() error { p = startRawPeerOn(t, "[::]:1790", gobgp.RF_EVPN); return nil }); err != nil {
				t.Fatal(err)
			}
			n := offerAll(p)
			n.Address, n.Port, n.ConnectRetry = netip.MustParseAddr(tt.address), 1790, time.Second
			s := startSpeakerIn(t, c.node, nodeConfig(1, n))
			eventually(t, "a session", s.established)
			want := map[netip.Prefix]string{}
			for i, f := range tt.forms {
				for j, classic := range classics() {
					p4, p6 := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), byte(j), 7}), 32), netip.MustParsePrefix(fmt.Sprintf("2001:db8:%x:%x::7/128", 0xa000+i, j+1))
					want[p4], want[p6] = f.want, f.want
					if f.v6 != "" {
						want[p6] = f.v6
					}
					p.send(gobgp.BGP_MSG_UPDATE, withHop(1, f.hop, classic, p4))
					p.send(gobgp.BGP_MSG_UPDATE, withHop(2, f.hop, classic, p6))
				}
			}
			eventually(t, "all routes", func() bool { return s.neighbor().UnicastReceived == len(want) })
			got := resolved(t, c.node, s.do(childCommand{}).Learned)
			for _, prefix := range slices.SortedFunc(maps.Keys(want), func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) }) {
				if got[prefix] != want[prefix] {
					i := int(prefix.Addr().AsSlice()[1])
					if prefix.Addr().Is6() {
						i = int(prefix.Addr().AsSlice()[5])
					}
					t.Errorf("%s, next hop %s: %s, want %s", prefix, hex.EncodeToString(tt.forms[i].hop), got[prefix], want[prefix])
				}
			}
			if n := s.neighbor(); n.Flaps != 0 || n.Ignored != 0 {
				t.Errorf("status %+v", n)
			}
		})
	}
}

// withHop announces a unicast prefix in MP_REACH_NLRI with NEXT_HOP beside it.
func withHop(afi byte, hop, classic []byte, prefix netip.Prefix) []byte {
	a := goodAttrs()
	delete(a, 16)
	a[3] = classic
	value := append([]byte{0, afi, 1, byte(len(hop))}, hop...)
	value = append(append(value, 0, byte(prefix.Bits())), prefix.Addr().AsSlice()...)
	a[14] = attribute(flagOptional, 14, value)
	return a.body(nil)
}

// resolved are the routes that the node installs, and the reasons for others.
func resolved(t *testing.T, ns string, learned []underlay.Learned) map[netip.Prefix]string {
	t.Helper()
	list, err := link.New(netns.Named(ns)).Links()
	if err != nil {
		t.Fatal(err)
	}
	var links []underlay.Link
	for _, l := range list {
		links = append(links, underlay.Link{Name: l.Name, Index: l.Index, Carrier: l.Carrier, Loopback: l.Loopback, Prefixes: l.Prefixes})
	}
	r := underlay.Resolve(learned, links, underlay.Config{Accept: underlay.DefaultAccept()})
	out := map[netip.Prefix]string{}
	for p, row := range r.Rows {
		out[p] = row.Hops.String()
	}
	for _, refused := range r.Refused {
		out[refused.Prefix] = refused.Reason
	}
	return out
}

// TestVTEPForms: the same of Type-5 routes, whose next hop is a VTEP, over both families of the session.
func TestVTEPForms(t *testing.T) {
	t.Parallel()
	for _, address := range loopbacks {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			p := startRawPeerAt(t, address, gobgp.RF_EVPN)
			cfg := nodeConfig(1, p.neighbor())
			cfg.VTEP6 = netip.MustParseAddr("2001:db8::1")
			s := startSpeaker(t, cfg)
			s.do(childCommand{Policies: []childPolicy{red}})
			eventually(t, "a session", s.established)
			want := map[string]string{}
			for i, f := range []hopForm{
				{hop: hopOf("192.0.2.7"), want: "192.0.2.7"}, {hop: hopOf("2001:db8::7"), want: "2001:db8::7"}, {hop: hopOf("2001:db8::7", "fe80::7"), want: "2001:db8::7"},
				{hop: hopOf("fe80::7", "2001:db8::7"), want: "2001:db8::7"}, {hop: hopOf("2001:db8::7", "::"), want: "2001:db8::7"}, {hop: hopOf("::ffff:192.0.2.7"), want: "192.0.2.7"},
				{hop: hopOf("::ffff:192.0.2.7", "fe80::7"), want: "192.0.2.7"}, {hop: hopOf("rd", "192.0.2.7"), want: "192.0.2.7"}, {hop: hopOf("rd", "2001:db8::7"), want: "2001:db8::7"},
				{hop: hopOf("rd", "2001:db8::7", "rd", "fe80::7"), want: "2001:db8::7"}, {hop: hopOf("::", "fe80::7"), want: string(ReasonBadNextHop)}, {hop: hopOf("fe80::7"), want: string(ReasonBadNextHop)},
				{hop: hopOf("0.0.0.0"), want: string(ReasonBadNextHop)}, {hop: make([]byte, 5), want: string(ReasonBadNextHop)}, {hop: hopOf("192.0.2.1"), want: string(ReasonOwn)}, {hop: hopOf("2001:db8::1", "fe80::1"), want: string(ReasonOwn)},
			} {
				for j, classic := range classics() {
					for _, prefix := range []string{fmt.Sprintf("10.%d.%d.0/24", i, j), fmt.Sprintf("2001:db8:%x:%x::/64", 0xa000+i, j+1)} {
						a := goodAttrs()
						a[3], want[prefix] = classic, f.want
						a[14] = attribute(flagOptional, 14, slices.Concat([]byte{0, 25, 70, byte(len(f.hop))}, f.hop, []byte{0}, sampleNLRI(prefix, 1)))
						p.send(gobgp.BGP_MSG_UPDATE, a.body(nil))
					}
				}
			}
			eventually(t, "all routes", func() bool { return s.neighbor().Received == len(want) })
			for _, r := range s.do(childCommand{Routes: true}).Routes {
				got := string(r.Rejected)
				if got == "" {
					got = r.NextHop.String()
				}
				if got != want[r.Prefix.String()] {
					t.Errorf("%s: %s, want %s", r.Prefix, got, want[r.Prefix.String()])
				}
			}
			if n := s.neighbor(); n.Flaps != 0 || n.Ignored != 0 {
				t.Errorf("status %+v", n)
			}
		})
	}
}

// NEXT_HOP of prefixes in the NLRI field counts, as it does for those alone (RFC 4271 section 5.1.3).
func TestNextHopOfTheField(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	var p *rawPeer
	if err := netns.Named(c.mid).Do(func() error { p = startRawPeerOn(t, "[::]:1790", gobgp.RF_EVPN); return nil }); err != nil {
		t.Fatal(err)
	}
	n := offerAll(p)
	n.Address, n.Port = netip.MustParseAddr("2001:db8:51::fe"), 1790
	s := startSpeakerIn(t, c.node, nodeConfig(1, n))
	eventually(t, "a session", s.established)
	want, got := map[string]string{}, map[string]string{}
	for i, f := range []hopForm{
		{hop: hopOf("198.51.100.254"), want: "198.51.100.254 dev eth0"}, {hop: hopOf("198.51.100.1"), want: reason.UnderlayUnresolved}, {hop: hopOf("203.0.113.1"), want: reason.UnderlayUnresolved},
		{hop: hopOf("0.0.0.0"), want: string(ReasonBadNextHop)}, {hop: hopOf("127.0.0.1"), want: string(ReasonBadNextHop)}, {hop: hopOf("224.0.0.5"), want: string(ReasonBadNextHop)},
		{hop: hopOf("255.255.255.255"), want: string(ReasonBadNextHop)}, {hop: []byte{1, 2, 3}, want: string(ReasonBadNextHop)}, {want: string(ReasonBadNextHop)},
	} {
		a := goodAttrs()
		if a[3] = nil; f.hop != nil {
			a[3] = attribute(flagTransitive, 3, f.hop)
		}
		// A route in MP_REACH_NLRI beside it has a next hop of its own.
		v6 := netip.MustParsePrefix(fmt.Sprintf("2001:db8:aa::%x/128", i+1))
		a[14] = attribute(flagOptional, 14, slices.Concat([]byte{0, 2, 1, 16}, hopOf("2001:db8:51::fe"), []byte{0, 128}, v6.Addr().AsSlice()))
		p.send(gobgp.BGP_MSG_UPDATE, a.body([]byte{32, 10, 3, 3, byte(i)}))
		want[fmt.Sprintf("10.3.3.%d/32", i)], want[v6.String()] = f.want, "2001:db8:51::fe dev eth0"
	}
	eventually(t, "all routes", func() bool { return s.neighbor().UnicastReceived == len(want) })
	for prefix, what := range resolved(t, c.node, s.do(childCommand{}).Learned) {
		got[prefix.String()] = what
	}
	if !maps.Equal(got, want) {
		t.Errorf("there are %v\nwant %v", got, want)
	}
}
