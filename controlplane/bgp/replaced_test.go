package bgp

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/test/nightly"
)

// replacements is how many UPDATEs TestReplacedAsFRR sends.
const replacements = 1000

const (
	resets = "ends the session (RFC 4271 section 6.3), where RFC 7606 has the routes count as withdrawn"
	takes  = "takes the route, where RFC 7607 section 2 has it count as withdrawn"
)

// frrDiffers are the refusable forms of which FRR 8.4.4 makes something else, and what. FRR gets the
// withdrawal for which they stand.
var frrDiffers = map[string]string{
	"ORIGIN 77": resets, "ORIGIN of two octets": resets, "AS_PATH cut short": resets, "AS_PATH with a segment of no AS": resets,
	"AS 0": takes, "MULTI_EXIT_DISC of three octets": resets, "LOCAL_PREF of two octets": resets, "COMMUNITIES of three octets": resets,
	"ORIGINATOR_ID of three octets": resets, "CLUSTER_LIST of six octets": resets, "extended communities of nine octets": resets,
	"ORIGIN as an optional attribute": resets, "CLUSTER_LIST as a transitive attribute": resets, "a list that is cut off": resets,
}

// TestReplacedAsFRR: after the same sequence of announcements, replacements and withdrawals, many of them
// refused, Sluice uses the routes that FRR has, and they are those of the last good announcements.
func TestReplacedAsFRR(t *testing.T) {
	t.Parallel()
	seed := uint64(1)
	if nightly.On() {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	ours, theirs := startRawPeerAt(t, "::1", gobgp.RF_EVPN), startRawPeerAt(t, "127.0.0.2", gobgp.RF_EVPN)
	cfg := nodeConfig(1, offerAll(ours))
	offerAll(theirs)
	cfg.RouterID, cfg.PeerLinger = netip.MustParseAddr("192.0.2.255"), -1 // as FRR has it; what is withdrawn is gone
	f := startFRR(t, 64512, v4, connecting("127.0.0.2", 64512, fmt.Sprintf("port %d", theirs.neighbor().Port)),
		" address-family ipv4 unicast\n  neighbor 127.0.0.2 activate\n exit-address-family\n address-family ipv6 unicast\n  neighbor 127.0.0.2 activate\n exit-address-family")
	s := startSpeaker(t, cfg)
	s.do(childCommand{Policies: []childPolicy{red}})
	eventually(t, "both sessions", func() bool { return ours.sessions() == 1 && theirs.sessions() == 1 })
	g := replacer{rand.New(rand.NewPCG(seed, 0)), map[string]string{}, map[string]int{}, refusedBy(255)}
	var here, there map[string]string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("good are   %v\nSluice has %v\nFRR has    %v", g.has, here, there)
		}
	})
	for n := range replacements {
		b, forFRR := g.next()
		ours.send(gobgp.BGP_MSG_UPDATE, b)
		theirs.send(gobgp.BGP_MSG_UPDATE, forFRR)
		if n%markerEach == markerEach-1 {
			marker := fmt.Sprintf("192.0.2.7:99 10.200.%d.0/24", n/markerEach)
			mark := update(route(fmt.Sprintf("10.200.%d.0/24", n/markerEach), 99)...)
			ours.send(gobgp.BGP_MSG_UPDATE, mark)
			theirs.send(gobgp.BGP_MSG_UPDATE, mark)
			g.has[marker] = "192.0.2.7"
			eventually(t, marker+": both have what is good, and no more", func() bool {
				here, there = s.used(), f.used()
				return maps.Equal(here, g.has) && maps.Equal(there, g.has)
			})
		}
	}
	t.Logf("sent %v", g.sent)
	if n := s.neighbor(); ours.sessions() != 1 || theirs.sessions() != 1 || n.Flaps != 0 || n.Ignored != 0 || g.sent["withdrawn"] < 100 || g.sent["good"] < 300 || g.sent["refused"] < 300 {
		t.Errorf("%d sessions here, %d with FRR, sent %v, status %+v", ours.sessions(), theirs.sessions(), g.sent, n)
	}
}

// replacer makes UPDATEs of a few routes each.
type replacer struct {
	*rand.Rand
	// has are the next hops of the routes whose last announcement is good.
	has map[string]string
	// sent counts UPDATEs by what they are.
	sent map[string]int
	// forms are those that are refused.
	forms []refusedForm
}

// next is an UPDATE, for Sluice and for FRR.
func (g replacer) next() (here, there []byte) {
	i, hop := g.IntN(4), byte(2+g.IntN(9))
	v4 := netip.AddrFrom4([4]byte{192, 0, 2, hop}).String()
	var k announcedKind
	var name, leads string
	switch g.IntN(5) {
	case 0:
		p := fmt.Sprintf("10.73.%d.0/24", i)
		k, name, leads = evpnKind(p), "192.0.2.7:1 "+p, v4
	case 1:
		p := fmt.Sprintf("2001:db8:73:%x::/64", i+1)
		k, name, leads = evpnKind(p), "192.0.2.7:1 "+p, v4
	case 2, 3:
		name = fmt.Sprintf("198.51.10%d.0/24", i)
		k, leads = unicastKind(name, g.IntN(2) == 0), v4
	default:
		name = fmt.Sprintf("2001:db8:74:%x::/64", i+1)
		k, leads = unicastKind(name, false), fmt.Sprintf("2001:db8::%x", hop)
	}
	switch n := g.IntN(10); {
	case n < 2:
		delete(g.has, name)
		g.sent["withdrawn"]++
		return k.withdraw(), k.withdraw()
	case n < 6:
		g.has[name] = leads
		g.sent["good"]++
		here = k.announce(hop, g.among(keep))
		return here, here
	}
	f := g.forms[g.IntN(len(g.forms))]
	delete(g.has, name)
	g.sent["refused"]++
	if here = k.announce(hop, g.among(f.change)); frrDiffers[f.name] != "" {
		return here, k.withdraw()
	}
	return here, here
}

// among adds what changes nothing: others' numbers, and attributes that nobody reads here.
func (g replacer) among(change func(attrs)) func(attrs) {
	return func(a attrs) {
		for kind, value := range map[byte][]byte{
			4: attribute(flagOptional, 4, []byte{0, 0, 0, 9}), 8: attribute(flagOptional|flagTransitive, 8, []byte{0xfd, 0xe8, 0, 7}),
			9: attribute(flagOptional, 9, []byte{192, 0, 2, 2}), 10: attribute(flagOptional, 10, []byte{192, 0, 2, 2, 192, 0, 2, 3}),
		} {
			if g.IntN(3) == 0 {
				a[kind] = value
			}
		}
		change(a)
	}
}

// used are the next hops of the routes that a speaker has not refused, by "RD prefix" or prefix.
func (s *speaker) used() map[string]string {
	out := map[string]string{}
	r := s.do(childCommand{Routes: true})
	for _, e := range r.Routes {
		if e.Rejected == "" {
			out[e.RD+" "+e.Prefix.String()] = e.NextHop.String()
		}
	}
	for _, l := range r.Learned {
		for _, h := range l.Hops {
			out[l.Prefix.String()] = h.Addr.String()
		}
	}
	return out
}

// used is the same of FRR.
func (f *frr) used() map[string]string {
	out := map[string]string{}
	for name, p := range f.routes() {
		out[name] = p.Nexthops[0].IP
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		var table struct {
			Routes map[string][]struct {
				Nexthops []struct {
					IP string `json:"ip"`
				} `json:"nexthops"`
			} `json:"routes"`
		}
		if err := json.Unmarshal(f.vtysh("show bgp "+family+" unicast json"), &table); err != nil {
			f.t.Log(err)
			continue
		}
		for prefix, paths := range table.Routes {
			out[prefix] = paths[0].Nexthops[0].IP
		}
	}
	return out
}
