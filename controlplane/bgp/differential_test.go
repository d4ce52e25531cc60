package bgp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
// Sluice and FRR's bgpd have the same Type-5 routes at every marker, and they are those that
// the generator has announced.
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
			g := generator{rand.New(rand.NewPCG(seed, 0)), map[string][]byte{}, 1}
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
func (s *speaker) received() map[string]bool {
	out := map[string]bool{}
	for _, r := range s.do(childCommand{Routes: true}).Routes {
		if !r.Sent {
			out[r.RD+" "+r.Prefix.String()] = true
		}
	}
	return out
}

func sameRoutes(t *testing.T, s *speaker, f *frr, g generator, marker string) {
	t.Helper()
	var here map[string]bool
	var there map[string]frrPath
	eventually(t, "the marker at both", func() bool {
		here, there = s.received(), f.routes()
		_, ok := there[marker]
		return here[marker] && ok
	})
	want := slices.Sorted(maps.Keys(g.has))
	unmarked := func(names []string) []string {
		return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "192.0.2.7:99 ") })
	}
	got, frrs := unmarked(slices.Sorted(maps.Keys(here))), unmarked(slices.Sorted(maps.Keys(there)))
	if !slices.Equal(got, frrs) || !slices.Equal(got, want) {
		t.Fatalf("at %s\nSluice has %q\nFRR has    %q\nannounced  %q", marker, got, frrs, want)
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
	valid := generator{rand.New(rand.NewPCG(seed, 0)), map[string][]byte{}, 1}
	bad := generator{rand.New(rand.NewPCG(seed, 1)), map[string][]byte{}, 60}
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
		var got []string
		eventually(t, "the marker", func() bool {
			here := s.received()
			got = slices.Sorted(maps.Keys(here))
			return here["192.0.2.7:99 "+marker]
		})
		// Those of the malformed UPDATEs have other distinguishers.
		got = slices.DeleteFunc(got, func(n string) bool { return !valid.mine(n) })
		if want := slices.Sorted(maps.Keys(valid.has)); !slices.Equal(got, want) {
			t.Fatalf("round %d\nthere are %q\nannounced %q", round, got, want)
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
