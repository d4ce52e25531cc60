package bgp

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// attrs are the path attributes of an UPDATE by their types. A type that is not there has nil.
type attrs map[byte][]byte

// body is the UPDATE, with IPv4 prefixes behind the attributes.
func (a attrs) body(nlri []byte) []byte {
	var list [][]byte
	for _, kind := range slices.Sorted(maps.Keys(a)) {
		if kind != 14 {
			list = append(list, a[kind])
		}
	}
	list = append([][]byte{a[14]}, list...) // first of all (RFC 7606 section 5.1)
	return append(update(list...), nlri...)
}

// refusedForm is a form in which a neighbour's announcement is refused, with what it changes of a good one.
type refusedForm struct {
	name   string
	why    Reason
	change func(attrs)
}

// refusable are the forms for the node with the router ID 192.0.2.1.
var refusable = refusedBy(1)

// refusedBy are those for the node with the router ID 192.0.2.id.
func refusedBy(id byte) []refusedForm {
	return []refusedForm{
		{"own AS", reason.RouteOwnAS, func(a attrs) { a[2] = attribute(flagTransitive, 2, []byte{2, 2, 0, 0, 0xfd, 0xe8, 0, 0, 0xfc, 0}) }},
		{"own AS in a set", reason.RouteOwnAS, func(a attrs) { a[2] = attribute(flagTransitive, 2, []byte{1, 2, 0, 0, 0xfc, 0, 0, 0, 0xfd, 0xe8}) }},
		{"own AS within a confederation", reason.RouteOwnAS, func(a attrs) { a[2] = attribute(flagTransitive, 2, []byte{3, 1, 0, 0, 0xfc, 0}) }},
		{"own ORIGINATOR_ID", reason.RouteOwnOriginator, func(a attrs) { a[9] = attribute(flagOptional, 9, []byte{192, 0, 2, id}) }},
		{"own CLUSTER_ID", reason.RouteOwnCluster, func(a attrs) { a[10] = attribute(flagOptional, 10, []byte{192, 0, 2, 99, 192, 0, 2, id}) }},
		{"ORIGIN 77", reason.RouteMalformed, func(a attrs) { a[1] = attribute(flagTransitive, 1, []byte{77}) }},
		{"ORIGIN of two octets", reason.RouteMalformed, func(a attrs) { a[1] = attribute(flagTransitive, 1, []byte{0, 0}) }},
		{"no ORIGIN", reason.RouteMalformed, func(a attrs) { delete(a, 1) }},
		{"no AS_PATH", reason.RouteMalformed, func(a attrs) { delete(a, 2) }},
		{"AS_PATH cut short", reason.RouteMalformed, func(a attrs) { a[2] = attribute(flagTransitive, 2, []byte{2, 9, 0, 0}) }},
		{"AS_PATH with a segment of no AS", reason.RouteMalformed, func(a attrs) { a[2] = attribute(flagTransitive, 2, []byte{2, 0}) }},
		{"AS 0", reason.RouteMalformed, func(a attrs) { a[2] = attribute(flagTransitive, 2, []byte{2, 1, 0, 0, 0, 0}) }},
		{"MULTI_EXIT_DISC of three octets", reason.RouteMalformed, func(a attrs) { a[4] = attribute(flagOptional, 4, []byte{0, 0, 1}) }},
		{"LOCAL_PREF of two octets", reason.RouteMalformed, func(a attrs) { a[5] = attribute(flagTransitive, 5, []byte{0, 1}) }},
		{"COMMUNITIES of three octets", reason.RouteMalformed, func(a attrs) { a[8] = attribute(flagOptional|flagTransitive, 8, []byte{1, 2, 3}) }},
		{"ORIGINATOR_ID of three octets", reason.RouteMalformed, func(a attrs) { a[9] = attribute(flagOptional, 9, []byte{192, 0, 2}) }},
		{"CLUSTER_LIST of six octets", reason.RouteMalformed, func(a attrs) { a[10] = attribute(flagOptional, 10, []byte{192, 0, 2, 9, 1, 1}) }},
		{"extended communities of nine octets", reason.RouteMalformed, func(a attrs) { a[16] = attribute(flagOptional|flagTransitive, 16, make([]byte, 9)) }},
		{"ORIGIN as an optional attribute", reason.RouteMalformed, func(a attrs) { a[1] = attribute(flagOptional|flagTransitive, 1, []byte{0}) }},
		{"CLUSTER_LIST as a transitive attribute", reason.RouteMalformed, func(a attrs) { a[10] = attribute(flagOptional|flagTransitive, 10, []byte{192, 0, 2, 9}) }},
		{"a list that is cut off", reason.RouteMalformed, func(a attrs) { a[251] = []byte{0xc0, 251, 200, 1} }},
	}
}

// announcedKind is a kind of route: how it is announced, withdrawn, and looked for.
type announcedKind struct {
	name     string
	announce func(hop byte, change func(attrs)) []byte
	withdraw func() []byte
	// hops are the next hops in use.
	hops func(s *speaker) string
}

func goodAttrs() attrs {
	return attrs{
		1: attribute(flagTransitive, 1, []byte{0}), 2: attribute(flagTransitive, 2, []byte{2, 1, 0, 0, 0xfd, 0xe8}),
		5: attribute(flagTransitive, 5, []byte{0, 0, 0, 100}), 16: route("10.0.0.0/8", 1)[2],
	}
}

func evpnKind(prefix string) announcedKind {
	nlri := sampleNLRI(prefix, 1)
	return announcedKind{
		name: "Type 5 " + prefix,
		announce: func(hop byte, change func(attrs)) []byte {
			a := goodAttrs()
			a[14] = attribute(flagOptional, 14, append([]byte{0, 25, 70, 4, 192, 0, 2, hop, 0}, nlri...))
			change(a)
			return a.body(nil)
		},
		withdraw: func() []byte { return unreach(nlri) },
		hops: func(s *speaker) string {
			var out []string
			for _, h := range s.hops(key(1001, prefix)) {
				out = append(out, h.VTEP)
			}
			return strings.Join(out, " ")
		},
	}
}

func unicastKind(prefix string, classic bool) announcedKind {
	p := netip.MustParsePrefix(prefix)
	afi, hop := byte(1), func(last byte) []byte { return []byte{192, 0, 2, last} }
	if p.Addr().Is6() {
		afi, hop = 2, func(last byte) []byte {
			return append(netip.MustParseAddr("2001:db8::").AsSlice()[:15], last)
		}
	}
	nlri := append([]byte{byte(p.Bits())}, p.Addr().AsSlice()[:(p.Bits()+7)/8]...)
	k := announcedKind{name: "unicast " + prefix, hops: func(s *speaker) string {
		var out []string
		for _, l := range s.do(childCommand{}).Learned {
			for _, h := range l.Hops {
				if l.Prefix == p {
					out = append(out, h.Addr.String())
				}
			}
		}
		return strings.Join(out, " ")
	}}
	if classic {
		k.name += " in the NLRI field"
		k.announce = func(last byte, change func(attrs)) []byte {
			a := goodAttrs()
			a[3] = attribute(flagTransitive, 3, hop(last))
			change(a)
			return a.body(nlri)
		}
		k.withdraw = func() []byte { return append(append([]byte{0, byte(len(nlri))}, nlri...), 0, 0) }
		return k
	}
	k.announce = func(last byte, change func(attrs)) []byte {
		a := goodAttrs()
		a[14] = attribute(flagOptional, 14, slices.Concat([]byte{0, afi, 1, byte(len(hop(last)))}, hop(last), []byte{0}, nlri))
		change(a)
		return a.body(nil)
	}
	k.withdraw = func() []byte { return update(attribute(flagOptional, 15, append([]byte{0, afi, 1}, nlri...))) }
	return k
}

func allKinds() []announcedKind {
	return []announcedKind{
		evpnKind("10.73.0.0/24"), evpnKind("2001:db8:73::/48"),
		unicastKind("198.51.101.0/24", true), unicastKind("198.51.102.0/24", false), unicastKind("2001:db8:74::/48", false),
	}
}

// offerAll has a raw peer offer all families.
func offerAll(p *rawPeer) Neighbor {
	p.offer(90, gobgp.NewCapMultiProtocol(gobgp.RF_IPv4_UC), gobgp.NewCapMultiProtocol(gobgp.RF_IPv6_UC),
		gobgp.NewCapExtendedNexthop([]*gobgp.CapExtendedNexthopTuple{gobgp.NewCapExtendedNexthopTuple(gobgp.RF_IPv4_UC, 2)}))
	n := p.neighbor()
	n.Families = allFamilies
	return n
}

func keep(attrs) {}

// TestRefusedReplaces: an announcement replaces the neighbour's earlier one of the same route,
// whatever becomes of the new one (RFC 4271 section 9, RFC 4456 section 8, RFC 7606 section 2). What
// is refused is counted as received, with its reason, until it is withdrawn or replaced.
func TestRefusedReplaces(t *testing.T) {
	t.Parallel()
	for _, k := range allKinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := startRawPeerAt(t, "::1", gobgp.RF_EVPN)
			s := startSpeaker(t, nodeConfig(1, offerAll(p)))
			s.do(childCommand{Policies: []childPolicy{red}})
			eventually(t, "a session", s.established)
			send := func(b []byte) { p.send(gobgp.BGP_MSG_UPDATE, b) }
			counts := func(want map[Reason]int) func() bool {
				return func() bool {
					n := s.neighbor()
					return n.Received+n.UnicastReceived == 1 && maps.Equal(n.refused(), want)
				}
			}
			for i, f := range refusable {
				if i%2 == 0 { // else it is refused from the first on
					send(k.announce(7, keep))
					eventually(t, f.name+": a good route", func() bool { return k.hops(s) != "" })
				}
				send(k.announce(8, f.change))
				eventually(t, f.name+": counted as received and refused", counts(map[Reason]int{f.why: 1}))
				eventually(t, f.name+": the earlier route is gone", func() bool { return k.hops(s) == "" })
				send(k.announce(9, keep))
				eventually(t, f.name+": a good one replaces it", func() bool { return strings.HasSuffix(k.hops(s), "9") && counts(map[Reason]int{})() })
				send(k.announce(8, f.change))
				eventually(t, f.name+": refused again", counts(map[Reason]int{f.why: 1}))
				send(k.withdraw())
				eventually(t, f.name+": withdrawn", func() bool { n := s.neighbor(); return n.Received+n.UnicastReceived == 0 && len(n.refused()) == 0 })
			}
			// Foreign numbers are none of these, and do replace.
			for _, change := range []func(attrs){
				func(a attrs) { a[9] = attribute(flagOptional, 9, []byte{192, 0, 2, 2}) },
				func(a attrs) { a[10] = attribute(flagOptional, 10, []byte{192, 0, 2, 2}) },
				func(a attrs) { a[2] = attribute(flagTransitive, 2, []byte{2, 1, 0, 0, 0xfc, 1}) },
			} {
				send(k.announce(7, keep))
				eventually(t, "a good route", func() bool { return strings.HasSuffix(k.hops(s), "7") })
				send(k.announce(8, change))
				eventually(t, "replaced", func() bool { return strings.HasSuffix(k.hops(s), "8") && counts(map[Reason]int{})() })
			}
			if n := s.neighbor(); n.Flaps != 0 || n.Ignored != 0 {
				t.Errorf("status %+v", n)
			}
		})
	}
}

// refused are the routes that are held and not used, of all families.
func (ns NeighborStatus) refused() map[Reason]int {
	out := maps.Clone(ns.Rejected)
	for r, n := range ns.UnicastRejected {
		out[r] += n
	}
	maps.DeleteFunc(out, func(_ Reason, n int) bool { return n == 0 })
	return out
}

// A refused route is listed, and explained with what to do.
func TestRefusedIsShown(t *testing.T) {
	t.Parallel()
	p := startRawPeerAt(t, "::1", gobgp.RF_EVPN)
	cfg := nodeConfig(1, offerAll(p))
	cfg.PeerLinger = -1 // what is withdrawn is gone
	s := startSpeaker(t, cfg)
	s.do(childCommand{Policies: []childPolicy{red}})
	eventually(t, "a session", s.established)
	for _, prefix := range []string{"10.73.0.0/24", "2001:db8:73::/48"} {
		k, dst := evpnKind(prefix), netip.MustParsePrefix(prefix).Addr().Next()
		for _, f := range refusable {
			p.send(gobgp.BGP_MSG_UPDATE, k.announce(8, f.change))
			eventually(t, f.name+": refused", func() bool { return s.neighbor().Rejected[f.why] == 1 })
			routes := s.do(childCommand{Routes: true}).Routes
			if len(routes) != 1 || routes[0].Rejected != f.why || routes[0].Prefix.String() != prefix || routes[0].Neighbor != p.neighbor().Address {
				t.Errorf("%s: listed are %+v", f.name, routes)
			}
			src := netip.MustParseAddr("10.1.0.1")
			if dst.Is6() {
				src = netip.MustParseAddr("2001:db8:1::1")
			}
			step := s.do(childCommand{Explain: &status.Query{VRF: 1001, Src: src, Dst: dst}}).Steps[3]
			if step.Found || !strings.Contains(step.Detail, string(f.why)) || step.Hint == "" || step.Hint != reason.ActOnRoute(string(f.why)) {
				t.Errorf("%s: explained as %+v", f.name, step)
			}
			p.send(gobgp.BGP_MSG_UPDATE, k.announce(8, keep))
			eventually(t, "accepted", func() bool { return k.hops(s) != "" })
		}
		p.send(gobgp.BGP_MSG_UPDATE, k.withdraw())
		eventually(t, "withdrawn", func() bool { return s.neighbor().Received == 0 })
	}
	if s.do(childCommand{Status: true}).Status.Dials {
		t.Error("the BGP server dials")
	}
	// Of plain unicast the prefix has the reason.
	for _, k := range allKinds()[2:] {
		p.send(gobgp.BGP_MSG_UPDATE, k.announce(8, refusable[0].change))
	}
	eventually(t, "the prefixes have their reason", func() bool {
		var got []string
		for _, l := range s.do(childCommand{}).Learned {
			got = append(got, fmt.Sprintf("%s %d %s", l.Prefix, len(l.Hops), l.Refused))
		}
		return strings.Join(got, ", ") == "198.51.101.0/24 0 own-as, 198.51.102.0/24 0 own-as, 2001:db8:74::/48 0 own-as"
	})
}

// What is refused counts for the neighbour's limit, so a neighbour gone mad takes no more memory with
// refused routes than with others.
func TestRefusedIsLimited(t *testing.T) {
	t.Parallel()
	p := startRawPeerAt(t, "::1", gobgp.RF_EVPN)
	n := offerAll(p)
	n.MaxPrefixes = 20
	s := startSpeaker(t, nodeConfig(1, n))
	s.do(childCommand{Policies: []childPolicy{red}})
	eventually(t, "a session", s.established)
	for i := range 21 {
		p.send(gobgp.BGP_MSG_UPDATE, evpnKind(fmt.Sprintf("10.73.%d.0/24", i)).announce(8, refusable[0].change))
	}
	eventually(t, "the limit ends the session", func() bool {
		n := s.neighbor()
		return n.State == StatePrefixLimit && n.Received == 0 && len(n.refused()) == 0
	})
}

// A refused announcement with the NLRI of a route of this node takes that from no neighbour, though
// this node is drained and its route has the lowest LOCAL_PREF.
func TestRefusedLeavesOwnRoute(t *testing.T) {
	t.Parallel()
	p := startRawPeerAt(t, "127.0.0.2", gobgp.RF_EVPN)
	peer := listening(2, freePort(t, "127.0.0.3"), "127.0.0.3")
	peer.Neighbors = []Neighbor{{Address: netip.MustParseAddr("127.0.0.1"), ASN: 64512, Passive: true}}
	b := startSpeaker(t, peer)
	b.do(childCommand{Policies: []childPolicy{red}})
	a := startSpeaker(t, nodeConfig(1, p.neighbor(), Neighbor{Address: netip.MustParseAddr("127.0.0.3"), ASN: 64512, Port: uint16(peer.ListenPort), ConnectRetry: time.Second}))
	drained, prefix := true, "10.74.0.0/24"
	k := key(1001, prefix)
	a.do(childCommand{Policies: []childPolicy{red}, Upserts: []intent.RouteKey{k}, Shutdown: &drained})
	eventually(t, "the peer has the route", func() bool { return b.hops(k) != nil })
	eventually(t, "a session", a.established)
	own := sample(prefix, "192.0.2.8")
	own.routerID, own.index = netip.MustParseAddr("192.0.2.1"), 7
	for i, f := range refusable {
		at := goodAttrs()
		at[14] = reach(encodeNLRI(own))
		f.change(at)
		p.send(gobgp.BGP_MSG_UPDATE, at.body(nil))
		eventually(t, f.name+": refused", func() bool { return a.neighbor().Rejected[f.why] == 1 })
		m := fmt.Sprintf("10.75.%d.0/24", i)
		a.do(childCommand{Upserts: []intent.RouteKey{key(1001, m)}})
		eventually(t, "the peer has what was announced behind it", func() bool { return b.hops(key(1001, m)) != nil })
	}
	if b.hops(k) == nil || b.deletedOf(k) != 0 {
		t.Errorf("the route was withdrawn %d times", b.deletedOf(k))
	}
}
