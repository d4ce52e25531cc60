package bgp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// fuzzer makes messages that are nearly right.
type fuzzer struct{ *rand.Rand }

// last ends the session: no message at all, or half of one.
func (f fuzzer) last() (kind byte, body []byte) {
	kind, body = f.message()
	if f.IntN(2) == 0 {
		return byte(f.IntN(256)), f.bytes(f.IntN(64))
	}
	return kind, body[:f.IntN(len(body))]
}

// message is the kind and body of one: mostly UPDATEs of a route with one or two
// things wrong, which pass the first checks.
func (f fuzzer) message() (kind byte, body []byte) {
	if f.IntN(50) == 0 {
		return wire.BGP_MSG_ROUTE_REFRESH, append([]byte{0, 25, 0, 70}, f.bytes(f.IntN(4))...)
	}
	attrs := route(fmt.Sprintf("10.66.%d.0/24", f.IntN(256)), uint16(f.IntN(4)+60))
	for range 1 + f.IntN(2) {
		f.spoil(&attrs)
	}
	return wire.BGP_MSG_UPDATE, update(attrs...)
}

func (f fuzzer) spoil(attrs *[][]byte) {
	i := f.IntN(len(*attrs))
	a := slices.Clone((*attrs)[i])
	switch f.IntN(8) {
	case 0: // the route itself
		a = reach(f.bytes(f.IntN(80)))
	case 1: // a withdrawal
		a = attribute(flagOptional, 15, append([]byte{0, 25, 70}, f.bytes(f.IntN(80))...))
	case 2: // an attribute of any type
		a = attribute(byte(f.IntN(256)), byte(f.IntN(256)), f.bytes(f.IntN(40)))
	case 3: // left out
		*attrs = slices.Delete(*attrs, i, i+1)
		if len(*attrs) == 0 {
			*attrs = [][]byte{a}
		}
		return
	case 4: // twice
		if i != 1 { // RFC 7606 section 3 g: MP_REACH_NLRI twice ends the session
			*attrs = append(*attrs, a)
		}
		return
	case 5: // shorter
		a = attribute(a[0], a[1], a[4:4+f.IntN(len(a)-3)])
	default: // a byte, past the header of the attribute
		if len(a) > 4 {
			a[4+f.IntN(len(a)-4)] = byte(f.IntN(256))
		}
	}
	(*attrs)[i] = a
}

func (f fuzzer) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.IntN(256))
	}
	return b
}

// TestFuzzingNeighbors: neighbours that send one wrong message after the other lose
// their own sessions at most; what another one sent stays, and comes.
func TestFuzzingNeighbors(t *testing.T) {
	t.Parallel() // it mostly waits
	messages, seed := 300, uint64(1)
	if os.Getenv("SLUICE_NIGHTLY") != "" {
		messages, seed = 20_000, uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	good := startRawPeer(t, wire.RF_EVPN)
	bad := []*rawPeer{startRawPeerAt(t, "127.0.0.2", wire.RF_EVPN), startRawPeerAt(t, "127.0.0.3", wire.RF_EVPN)}
	s := startSpeaker(t, nodeConfig(1, good.neighbor(), bad[0].neighbor(), bad[1].neighbor()))
	s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.1.0.0/24")}})
	eventually(t, "sessions", func() bool { return good.updates() > 0 && bad[0].updates() > 0 && bad[1].updates() > 0 })
	prefix := func(i int) string { return fmt.Sprintf("10.2.%d.0/24", i) }
	const steps = 20
	for i := range steps {
		good.send(wire.BGP_MSG_UPDATE, update(route(prefix(i), 2)...))
		eventually(t, "the good neighbour's next route", func() bool { return s.hops(key(1001, prefix(i))) != nil })
		for j, p := range bad {
			f := fuzzer{rand.New(rand.NewPCG(seed, uint64(i*len(bad)+j)))}
			for range messages / steps {
				p.send(f.message())
			}
			if i == steps-1 {
				p.send(f.last())
			}
		}
		for k := range i {
			if s.hops(key(1001, prefix(k))) == nil {
				t.Fatalf("%s is gone after step %d", prefix(k), i)
			}
		}
	}
	st := s.do(childCommand{Status: true}).Status
	for _, n := range st.Neighbors {
		t.Logf("%s: %s, flaps %d, received %d, rejected %v", n.Address, n.State, n.Flaps, n.Received, n.RejectedTotal)
	}
	if n := st.Neighbors[0]; n.State != stateEstablished || n.Flaps != 0 || n.Received != steps {
		t.Errorf("the good neighbour's session: %+v", n)
	}
}
