package bgp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// fuzzer makes messages that are nearly right: mostly UPDATEs of a route with one or
// two things wrong, which pass the first checks.
type fuzzer struct {
	*rand.Rand
	// others are prefixes that another neighbour announces, with these very
	// distinguishers: half of the messages are about them.
	others []string
}

// message is one that leaves the session up.
func (f fuzzer) message() (kind byte, body []byte) {
	for {
		if kind, body = f.any(); fateOf(kind, body) == taken {
			return kind, body
		}
	}
}

// last is one that ends the session.
func (f fuzzer) last() (kind byte, body []byte) {
	for range f.IntN(100) {
		if kind, body = f.any(); fateOf(kind, body) == ends {
			return kind, body
		}
	}
	return gobgp.BGP_MSG_UPDATE, []byte{0, 0, 255, 255} // more attributes than there is message
}

func (f fuzzer) any() (kind byte, body []byte) {
	if f.IntN(50) == 0 {
		return gobgp.BGP_MSG_ROUTE_REFRESH, append([]byte{0, 25, 0, 70}, f.bytes(f.IntN(4))...)
	}
	prefix, index := fmt.Sprintf("10.66.%d.0/24", f.IntN(256)), uint16(f.IntN(4)+60)
	if len(f.others) > 0 && f.IntN(2) == 0 {
		prefix, index = f.others[f.IntN(len(f.others))], goodIndex
	}
	attrs := route(prefix, index)
	for range 1 + f.IntN(2) {
		f.spoil(&attrs)
	}
	return gobgp.BGP_MSG_UPDATE, update(attrs...)
}

// goodIndex is that of the distinguisher of the neighbour that does nothing wrong.
const goodIndex = 2

func (f fuzzer) spoil(attrs *[][]byte) {
	i := f.IntN(len(*attrs))
	a := slices.Clone((*attrs)[i])
	switch f.IntN(10) {
	case 0: // the route itself
		a = reach(f.bytes(f.IntN(80)))
	case 1: // a withdrawal
		a = attribute(flagOptional, 15, append([]byte{0, 25, 70}, f.bytes(f.IntN(80))...))
	case 2: // a withdrawal of what is announced
		if len(a) > 36 && a[1] == attrMPReach {
			a = attribute(flagOptional, 15, append([]byte{0, 25, 70}, a[len(a)-36:]...))
		}
	case 3: // an attribute of any type
		a = attribute(byte(f.IntN(256)), byte(f.IntN(256)), f.bytes(f.IntN(40)))
	case 4: // left out
		*attrs = slices.Delete(*attrs, i, i+1)
		if len(*attrs) == 0 {
			*attrs = [][]byte{a}
		}
		return
	case 5: // twice
		*attrs = append(*attrs, a)
		return
	case 6: // shorter
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

// fate is what becomes of a session with a message.
type fate int

const (
	taken fate = iota
	ends       // RFC 4271 or RFC 7606 leaves nothing but a reset
)

// fateOf is what RFC 4271 and RFC 7606 make of a message in a session of EVPN alone. No code
// under test is in it.
func fateOf(kind byte, body []byte) fate {
	if kind == gobgp.BGP_MSG_ROUTE_REFRESH {
		return endsIf(len(body) != 4) // RFC 4271 section 6.1
	}
	if len(body) > maxBody || len(body) < 4 {
		return ends // RFC 4271 section 6.1
	}
	withdrawn := int(binary.BigEndian.Uint16(body))
	if 4+withdrawn > len(body) {
		return ends // RFC 4271 section 6.3
	}
	attrs := body[4+withdrawn:]
	n := int(binary.BigEndian.Uint16(body[2+withdrawn:]))
	if n > len(attrs) {
		return ends // RFC 4271 section 6.3
	}
	attrs = attrs[:n]
	seen := set[byte]{}
	for len(attrs) >= 3 {
		head, n := 3, int(attrs[2])
		if attrs[0]&0x10 != 0 {
			if len(attrs) < 4 {
				break
			}
			head, n = 4, int(binary.BigEndian.Uint16(attrs[2:]))
		}
		if head+n > len(attrs) {
			break // RFC 7606 section 4: its routes are withdrawn
		}
		optional, kind := attrs[0]&0x80 != 0, attrs[1]
		_, twice := seen[kind]
		switch {
		case twice && (kind == 14 || kind == 15):
			return ends // RFC 7606 section 3 g
		case twice: // the same: it is discarded
		case !optional && !recognized(kind):
			return ends // RFC 4271 section 6.3
		}
		seen[kind] = struct{}{}
		attrs = attrs[head+n:]
	}
	return taken
}

func endsIf(it bool) fate {
	if it {
		return ends
	}
	return taken
}

// recognized are the attributes of RFC 4271, 1997, 4456, 4760, 4360 and 6793.
func recognized(kind byte) bool { return kind >= 1 && kind <= 10 || kind >= 14 && kind <= 18 }

// becomes is what package wire and the BGP server's parser make of a message. It panics where
// the parser does.
func becomes(kind byte, body []byte) fate {
	msg := message(kind, body)
	if wire.CheckHeader(msg) != nil {
		return ends
	}
	out, _, err := wire.Agreement{Families: []wire.Family{{AFI: 25, SAFI: 70}}, Loopback: true}.In(nil, msg)
	if err != nil {
		return ends
	}
	for len(out) > 0 {
		n := binary.BigEndian.Uint16(out[16:])
		if serverResets(out[18], out[gobgp.BGP_HEADER_LENGTH:n]) {
			return ends
		}
		out = out[n:]
	}
	return taken
}

// A session ends for what the RFCs say, and for nothing else.
func TestFates(t *testing.T) {
	t.Parallel()
	messages, seed := 20000, uint64(1)
	if nightly.On() {
		messages, seed = 200000, uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	f := fuzzer{rand.New(rand.NewPCG(seed, 0)), []string{"10.2.0.0/24"}}
	g := generator{rand.New(rand.NewPCG(seed, 1)), map[string]modelRoute{}, 1}
	ended := 0
	for i := range messages {
		kind, body := byte(gobgp.BGP_MSG_UPDATE), []byte(nil)
		if i%2 == 0 {
			kind, body = f.any()
		} else {
			body = f.spoilBody(g.update())
		}
		want := fateOf(kind, body)
		if got := becomes(kind, body); got != want {
			t.Errorf("fate %d, want %d, of a message of type %d: %x", got, want, kind, body)
		}
		ended += int(want)
	}
	if ended < messages/100 {
		t.Errorf("only %d of %d messages end a session: this tests little", ended, messages)
	}
}

func serverResets(kind byte, body []byte) bool {
	m, err := gobgp.ParseBGPBody(&gobgp.BGPHeader{Type: kind, Len: uint16(gobgp.BGP_HEADER_LENGTH + len(body))}, body)
	if err == nil && kind == gobgp.BGP_MSG_UPDATE {
		_, err = gobgp.ValidateUpdateMsg(m.Body.(*gobgp.BGPUpdate), map[gobgp.RouteFamily]gobgp.BGPAddPathMode{gobgp.RF_EVPN: gobgp.BGP_ADD_PATH_NONE}, false, false, true)
	}
	bad, ok := errors.AsType[*gobgp.MessageError](err)
	return err != nil && (!ok || bad.ErrorHandling == gobgp.ERROR_HANDLING_SESSION_RESET)
}

// TestFuzzingNeighbors: neighbours that send one wrong message after the other, of
// routes of their own and of those that another neighbour has, lose their own
// sessions at most. What the other one sent stays, and comes; and a good route of
// theirs is taken as before.
func TestFuzzingNeighbors(t *testing.T) {
	t.Parallel() // it mostly waits
	const steps = 12
	messages, seed := 50, uint64(1)
	if nightly.On() {
		messages, seed = 2000, uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	good := startRawPeer(t, gobgp.RF_EVPN)
	bad := []*rawPeer{startRawPeerAt(t, "127.0.0.2", gobgp.RF_EVPN), startRawPeerAt(t, "127.0.0.3", gobgp.RF_EVPN)}
	cfg := nodeConfig(1, good.neighbor(), bad[0].neighbor(), bad[1].neighbor())
	cfg.PeerLinger = -1 // what stays does so by itself
	s := startSpeakerIn(t, "", cfg, mayRace)
	s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.1.0.0/24")}})
	eventually(t, "sessions", func() bool { return good.updates() > 0 && bad[0].updates() > 0 && bad[1].updates() > 0 })
	var sent []string
	for i := range steps {
		sent = append(sent, fmt.Sprintf("10.2.%d.0/24", i))
		good.send(gobgp.BGP_MSG_UPDATE, update(route(sent[i], goodIndex)...))
		eventually(t, "the good neighbour's next route", func() bool { return s.hops(key(1001, sent[i])) != nil })
		for j, p := range bad {
			f := fuzzer{rand.New(rand.NewPCG(seed, uint64(i*len(bad)+j))), sent}
			for range messages {
				p.send(f.message())
			}
			if i == steps/2 {
				p.send(f.last())
			}
		}
		if i == steps/2 {
			eventually(t, "the next sessions of both", func() bool { return bad[0].sessions() == 2 && bad[1].sessions() == 2 })
		}
		for j, p := range bad {
			k := fmt.Sprintf("10.%d.%d.0/24", 67+j, i)
			p.send(gobgp.BGP_MSG_UPDATE, update(route(k, 3)...))
			eventually(t, "a good route of a bad neighbour", func() bool { return s.hops(key(1001, k)) != nil })
		}
		for _, k := range sent {
			if n := s.deletedOf(key(1001, k)); n != 0 || s.hops(key(1001, k)) == nil {
				t.Fatalf("%s was deleted %d times up to step %d", k, n, i)
			}
		}
	}
	checkFuzzed(t, s, steps)
}

// checkFuzzed: the good neighbour's session has never been lost, the others' only by
// what is to end them; and the messages got as far as our own checks.
func checkFuzzed(t *testing.T, s *speaker, routes int) {
	t.Helper()
	st := s.do(childCommand{Status: true}).Status
	rejected, reasons := 0, set[Reason]{}
	for _, n := range st.Neighbors[1:] {
		t.Logf("%s: %s, flaps %d, received %d, rejected %v", n.Address, n.State, n.Flaps, n.Received, n.RejectedTotal)
		for r, c := range n.RejectedTotal {
			rejected += int(c)
			reasons[r] = struct{}{}
		}
		if n.State != stateEstablished || n.Flaps != 1 || n.Missing != 0 {
			t.Errorf("%s is %s after %d flaps, status %+v", n.Address, n.State, n.Flaps, n)
		}
	}
	if rejected < 20 || len(reasons) < 4 {
		t.Errorf("only %d routes were rejected, for %d reasons: this tests little", rejected, len(reasons))
	}
	if n := st.Neighbors[0]; n.State != stateEstablished || n.Flaps != 0 || n.Received != routes {
		t.Errorf("the good neighbour's session: %+v", n)
	}
}
