package bgp

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// flapping are the prefixes that a neighbour announces and withdraws, flapRoutes so
// many to a message, as they all have the same attributes.
const flapping, flapRoutes = 10_000, 50

// flapper sends them.
type flapper struct{ peer *rawPeer }

func (f flapper) each(send func(nlris []byte)) {
	for i := 0; i < flapping; i += flapRoutes {
		var b []byte
		for j := i; j < i+flapRoutes; j++ {
			b = append(b, encodeNLRI(type5{routerID: netip.MustParseAddr("192.0.2.7"), index: 1, label: 1001,
				prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(j >> 8), byte(j), 0}), 24)})...)
		}
		send(b)
	}
}

// announce is with another LOCAL_PREF each time, so that it is another route.
func (f flapper) announce(preference byte) {
	f.each(func(b []byte) {
		attrs := route("10.0.0.0/24", 1)
		attrs[1], attrs[4] = reach(b), attribute(flagTransitive, attrLocalPref, []byte{0, 0, 1, preference})
		f.peer.send(wire.BGP_MSG_UPDATE, update(attrs...))
	})
}

func (f flapper) withdraw() {
	f.each(func(b []byte) {
		f.peer.send(wire.BGP_MSG_UPDATE, update(attribute(flagOptional, 15, append([]byte{0, 25, 70}, b...))))
	})
}

// usage is the memory that a speaker has in RAM, the most that it had, and the CPU
// time that it took.
func (s *speaker) usage() (now, most int, cpu time.Duration) {
	s.t.Helper()
	dir := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		switch f := strings.Fields(line); f[0] {
		case "VmRSS:":
			now, _ = strconv.Atoi(f[1])
		case "VmHWM:":
			most, _ = strconv.Atoi(f[1])
		}
	}
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may have spaces
	f := strings.Fields(rest)
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return now, most, time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// A neighbour announces and withdraws ten thousand prefixes again and again. What it
// says last is what counts; the routes of another neighbour are not touched, new ones
// of it come meanwhile; and it costs a bounded time and no more memory from one round
// to the next.
func TestManyPrefixesFlap(t *testing.T) {
	t.Parallel() // it mostly waits
	const perRound = 5
	rounds := 4
	if nightly.On() {
		rounds = 30
	}
	p, good := startRawPeer(t, wire.RF_EVPN), startRawPeerAt(t, "127.0.0.2", wire.RF_EVPN)
	s := startSpeaker(t, nodeConfig(1, p.neighbor(), good.neighbor()))
	s.do(childCommand{Policies: []childPolicy{red}})
	status := func() *Status {
		time.Sleep(200 * time.Millisecond) // it looks at all routes: not too often
		return s.do(childCommand{Status: true}).Status
	}
	eventually(t, "sessions", func() bool { return good.sessions() > 0 && p.sessions() > 0 })
	var others []intent.RouteKey
	more := func(round int) {
		for i := range perRound {
			prefix := fmt.Sprintf("172.16.%d.%d/32", round, i)
			attrs := route(prefix, 2)
			r := type5{routerID: netip.MustParseAddr("192.0.2.8"), index: 2, prefix: netip.MustParsePrefix(prefix), label: 1001,
				nextHop: netip.MustParseAddr("192.0.2.8"), routerMAC: intent.MAC{2, 0, 0, 0, 0, 8}, targets: targets("64512:1001")}
			copy(attrs, encodeAttributes(r)[:3])
			good.send(wire.BGP_MSG_UPDATE, update(attrs...))
			others = append(others, key(1001, prefix))
		}
	}
	f := flapper{p}
	var early, most int
	var before, after time.Duration
	for round := range rounds {
		f.announce(byte(round))
		more(round)
		if round%2 == 0 { // nothing is waited for
			f.withdraw()
			continue
		}
		eventually(t, "all are imported", func() bool {
			st := status()
			return st.Imported == flapping+len(others) && st.Neighbors[0].Received == flapping && st.Stale == 0
		})
		f.withdraw()
		eventually(t, "all are withdrawn", func() bool { return status().Neighbors[0].Received == 0 })
		if _, most, after = s.usage(); round == 1 {
			early, before = most, after
		}
	}
	cpu := (after - before) / time.Duration((rounds-2)*2*flapping)
	t.Logf("most memory after 2 rounds %d KiB, after %d rounds %d KiB; %s of CPU time for a change", early, rounds, most, cpu)
	// A few rounds differ by what waits to be read on a busy machine; what is left by each
	// of them shows in many.
	if most > early*max(2, rounds/6) {
		t.Errorf("memory grew from %d to %d KiB", early, most)
	}
	if cpu > 5*time.Millisecond { // a hundred times of what it takes: something would not be linear
		t.Errorf("%s of CPU time for a change", cpu)
	}
	p.send(wire.BGP_MSG_UPDATE, update(route("10.0.0.0/24", 1)...))
	eventually(t, "the node is back, with one route", func() bool { st := status(); return st.Imported == 1+len(others) && st.Stale == 0 && st.VTEPs == 2 })
	for _, k := range others {
		if n := s.changesOf(k); n != 1 || len(s.hops(k)) != 1 {
			t.Errorf("%s of the other neighbour: %d changes, next hops %v", k, n, s.hops(k))
		}
	}
	for _, n := range status().Neighbors {
		if n.Flaps != 0 || n.State != stateEstablished {
			t.Errorf("neighbour %s: %s after %d flaps", n.Address, n.State, n.Flaps)
		}
	}
}
