package bgp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"github.com/ovn-sluice/sluice/test/nightly"
)

const (
	// perSeed is how many UPDATEs a seed has: two seeds make 2,000.
	perSeed = 1000
	// a marker route follows each hundred UPDATEs: what stands before it has been read.
	markerEach = 100
)

// TestSameRoutesAsFRR: of the same well-formed UPDATEs, which a generator makes from the RFCs,
// Sluice and FRR's bgpd have the same Type-5 routes at every marker, with VNI, next hop, router
// MAC and route targets, and they are those that the generator has announced.
func TestSameRoutesAsFRR(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1, 2}
	if nightly.On() {
		seeds = nil
		for range 20 {
			seeds = append(seeds, rand.Uint64())
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Logf("seed %d", seed)
			ours, theirs := startRawPeer(t, gobgp.RF_EVPN), startRawPeerAt(t, "127.0.0.2", gobgp.RF_EVPN)
			f := startFRR(t, 64512, v4, connecting("127.0.0.2", 64512, fmt.Sprintf("port %d", theirs.neighbor().Port)))
			s := startSpeaker(t, nodeConfig(1, ours.neighbor()))
			s.do(childCommand{Policies: []childPolicy{red}})
			eventually(t, "both sessions", func() bool { return ours.sessions() == 1 && theirs.sessions() == 1 })
			g := generator{rand.New(rand.NewPCG(seed, 0)), map[string]modelRoute{}, 1}
			for n := range perSeed {
				b := g.update()
				ours.send(gobgp.BGP_MSG_UPDATE, b)
				theirs.send(gobgp.BGP_MSG_UPDATE, b)
				if n%markerEach == markerEach-1 {
					mark := update(route(fmt.Sprintf("10.200.%d.0/24", n/markerEach), 99)...)
					ours.send(gobgp.BGP_MSG_UPDATE, mark)
					theirs.send(gobgp.BGP_MSG_UPDATE, mark)
					sameRoutes(t, s, f, g, fmt.Sprintf("192.0.2.7:99 10.200.%d.0/24", n/markerEach))
				}
			}
			if n := s.neighbor(); ours.sessions() != 1 || theirs.sessions() != 1 || n.Flaps != 0 || n.Ignored != 0 {
				t.Errorf("%d sessions here, %d with FRR, status %+v", ours.sessions(), theirs.sessions(), n)
			}
		})
	}
}

// received are the Type-5 routes that a speaker lists, imported or not, by "RD prefix".
func (s *speaker) received() map[string]seenRoute {
	out := map[string]seenRoute{}
	for _, r := range s.do(childCommand{Routes: true}).Routes {
		if r.Sent {
			continue
		}
		targets := make([]string, 0, len(r.Targets))
		for _, rt := range r.Targets {
			targets = append(targets, rt.String())
		}
		out[r.RD+" "+r.Prefix.String()] = seenRoute{uint32(r.Label), r.NextHop.String(), r.RouterMAC.String(), targetList(targets)}
	}
	return out
}

// seen is what FRR shows of its routes.
func (f *frr) seen() map[string]seenRoute {
	out := map[string]seenRoute{}
	for name, p := range f.routes() {
		vni, _ := strconv.ParseUint(p.VNI, 10, 32)
		r := seenRoute{vni: uint32(vni)}
		if len(p.Nexthops) > 0 {
			r.hop = p.Nexthops[0].IP
		}
		var targets []string
		// "VRF RT:" is the target of a redirection, in another community.
		for _, c := range strings.Fields(strings.ReplaceAll(p.ExtendedCommunity.String, "VRF RT:", "")) {
			if rt, ok := strings.CutPrefix(c, "RT:"); ok {
				targets = append(targets, rt)
			} else if mac, ok := strings.CutPrefix(c, "Rmac:"); ok {
				r.mac = mac
			}
		}
		r.rt = targetList(targets)
		out[name] = r
	}
	return out
}

// expected are the routes of the generator.
func (g generator) expected() map[string]seenRoute {
	out := map[string]seenRoute{}
	for name, a := range g.has {
		out[name] = a.seen
	}
	return out
}

func sameRoutes(t *testing.T, s *speaker, f *frr, g generator, marker string) {
	t.Helper()
	var here, there map[string]seenRoute
	want := g.expected()
	marked := func(name string, _ seenRoute) bool { return strings.HasPrefix(name, "192.0.2.7:99 ") }
	// FRR shows a new route at once, and takes a withdrawn one out in its queue.
	eventually(t, "the marker at both, and no more routes with FRR than announced", func() bool {
		here, there = s.received(), f.seen()
		_, ours := here[marker]
		_, theirs := there[marker]
		maps.DeleteFunc(here, marked)
		maps.DeleteFunc(there, marked)
		return ours && theirs && len(there) <= len(want)
	})
	for name := range want {
		if r, ok := there[name]; ok && r.hop == "0.0.0.0" && strings.Contains(want[name].hop, ":") {
			r.hop = want[name].hop // FRR 8.4.4 shows no IPv6 next hop of EVPN in detail
			there[name] = r
		}
		if here[name] != want[name] || there[name] != want[name] {
			t.Errorf("%s at %s\nannounced  %+v\nSluice has %+v\nFRR has    %+v", name, marker, want[name], here[name], there[name])
		}
	}
	if len(here) != len(want) || len(there) != len(want) {
		t.Errorf("at %s: %d routes announced, Sluice has %d, FRR %d", marker, len(want), len(here), len(there))
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestValidAmongMalformed: of a neighbour that sends well-formed UPDATEs and malformed ones
// in turn, nothing of the former is lost, and no session of another one ends. At night it has
// random seeds and more of them.
func TestValidAmongMalformed(t *testing.T) {
	t.Parallel()
	rounds, seed := 4, uint64(1)
	if nightly.On() {
		rounds, seed = 200, uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	p, other := startRawPeer(t, gobgp.RF_EVPN), startRawPeerAt(t, "127.0.0.2", gobgp.RF_EVPN)
	cfg := nodeConfig(1, p.neighbor(), other.neighbor())
	cfg.PeerLinger = -1
	s := startSpeaker(t, cfg)
	s.do(childCommand{Policies: []childPolicy{red}})
	eventually(t, "both sessions", func() bool { return p.sessions() == 1 && other.sessions() == 1 })
	valid := generator{rand.New(rand.NewPCG(seed, 0)), map[string]modelRoute{}, 1}
	bad := generator{rand.New(rand.NewPCG(seed, 1)), map[string]modelRoute{}, 60}
	f := fuzzer{rand.New(rand.NewPCG(seed, 2)), nil}
	for round := range rounds {
		for range markerEach {
			p.send(gobgp.BGP_MSG_UPDATE, valid.update())
			if b := f.spoilBody(bad.update()); fateOf(gobgp.BGP_MSG_UPDATE, b) == taken && !valid.names(b) {
				p.send(gobgp.BGP_MSG_UPDATE, b)
			}
		}
		marker := fmt.Sprintf("10.200.%d.0/24", round)
		p.send(gobgp.BGP_MSG_UPDATE, update(route(marker, 99)...))
		var got map[string]seenRoute
		eventually(t, "the marker", func() bool {
			got = s.received()
			_, ok := got["192.0.2.7:99 "+marker]
			return ok
		})
		// Those of the malformed UPDATEs have other distinguishers.
		maps.DeleteFunc(got, func(name string, _ seenRoute) bool { return !valid.mine(name) })
		if want := valid.expected(); !maps.Equal(got, want) {
			t.Fatalf("round %d\nthere are %v\nannounced %v", round, got, want)
		}
	}
	for i, n := range s.do(childCommand{Status: true}).Status.Neighbors {
		if n.Flaps != 0 || n.State != stateEstablished {
			t.Errorf("neighbour %d: %+v", i, n)
		}
	}
}

// spoilBody changes some octets of an UPDATE, past its lengths.
func (f fuzzer) spoilBody(b []byte) []byte {
	b = slices.Clone(b)
	for range 1 + f.IntN(3) {
		b[4+f.IntN(len(b)-4)] = byte(f.IntN(256))
	}
	return b
}

// mine tells whether a route has a distinguisher of the generator's.
func (g generator) mine(name string) bool {
	rd, _, _ := strings.Cut(name, " ")
	var n uint16
	for _, form := range []string{"64512:%d", "192.0.2.7:%d", "4200000001:%d"} {
		if _, err := fmt.Sscanf(rd, form, &n); err == nil && n >= g.first && n < g.first+4 {
			return true
		}
	}
	return false
}

// names tells whether an UPDATE may have a distinguisher of the generator's in it.
func (g generator) names(b []byte) bool {
	for n := g.first; n < g.first+4; n++ {
		for _, rd := range [][]byte{{0, 0, 0xfc, 0, 0, 0, 0, byte(n)}, {0, 1, 192, 0, 2, 7, 0, byte(n)}, {0, 2, 0xfa, 0x56, 0xea, 1, 0, byte(n)}} {
			if strings.Contains(string(b), string(rd)) {
				return true
			}
		}
	}
	return false
}
