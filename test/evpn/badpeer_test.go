package evpn_test

import (
	"encoding/binary"
	"fmt"
	"github.com/ovn-sluice/sluice/test/nightly"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// badPeer is a BGP neighbour of one node, on its link to the fabric, that sends what a
// test tells it.
type badPeer struct {
	mu       sync.Mutex
	conn     net.Conn
	greeting []byte
}

const badPort = 1790

// Types of BGP messages (RFC 4271 section 4.1).
const (
	bgpOpen, bgpUpdate, bgpNotification, bgpKeepalive = 1, 2, 3, 4
	bgpUnknown                                        = 77
)

func bgpMessage(kind byte, body ...byte) []byte {
	msg := slices.Repeat([]byte{0xff}, 16)
	msg = binary.BigEndian.AppendUint16(msg, uint16(19+len(body)))
	return append(append(msg, kind), body...)
}

func bgpUpdateOf(attributes []byte) []byte {
	return bgpMessage(bgpUpdate, append(binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(attributes))), attributes...)...)
}

// flaps are the prefixes that come and go, 50 to a message, of the first of many VTEPs, which is
// not there, though a route leads to it; announce or withdraw all of them.
const flaps = 10_000

func flapMessages(announce bool) []byte {
	var out []byte
	for i := 0; i < flaps; i += 50 {
		var nlri []byte
		for j := i; j < i+50; j++ { // RFC 9136 section 3.1: RD, ESI, tag, prefix, gateway, label
			nlri = append(nlri, 5, 34, 0, 1, 192, 0, 2, 7, 0, 1)
			nlri = append(append(nlri, make([]byte, 14)...), 24, 10, 128+byte(j>>8), byte(j), 0, 0, 0, 0, 0)
			nlri = append(nlri, 0, vniRed>>8, vniRed&0xff)
		}
		if !announce {
			out = append(out, bgpUpdateOf(longAttribute(0x90, 15, append([]byte{0, 25, 70}, nlri...)))...)
			continue
		}
		attributes := slices.Concat([]byte{0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 5, 4, 0, 0, 0, 100},
			[]byte{0xc0, 16, 24, 0, 2, 252, 0, 0, 0, vniRed >> 8, vniRed & 0xff, 3, 12, 0, 0, 0, 0, 0, 8, 6, 3, 2, 0, 0, 0, 0, 7},
			longAttribute(0x90, 14, slices.Concat([]byte{0, 25, 70, 4, 172, 30, 201, 0, 0}, nlri)))
		out = append(out, bgpUpdateOf(attributes)...)
	}
	return out
}

// many VTEPs announce one prefix of each family, more than a route has next hops.
const many = 40

func manyMessages() (out []byte) {
	prefixes := [][]byte{append([]byte{24, 10, 74, 0, 0}, make([]byte, 4)...), append(append([]byte{64, 0xfd, 0, 0, 0x74}, make([]byte, 12)...), make([]byte, 16)...)}
	for i := range byte(many) {
		for _, p := range prefixes { // length, prefix, gateway
			rest := slices.Concat([]byte{192, 0, 2, i, 0, 1}, make([]byte, 14), p, []byte{0, vniRed >> 8, vniRed & 0xff})
			nlri := append([]byte{5, byte(len(rest) + 2), 0, 1}, rest...)
			out = append(out, bgpUpdateOf(slices.Concat([]byte{0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 5, 4, 0, 0, 0, 100},
				[]byte{0xc0, 16, 24, 0, 2, 252, 0, 0, 0, vniRed >> 8, vniRed & 0xff, 3, 12, 0, 0, 0, 0, 0, 8, 6, 3, 2, 0, 0, 0, 0, 7},
				longAttribute(0x90, 14, slices.Concat([]byte{0, 25, 70, 4, 172, 30, 201, i, 0}, nlri))))...)
		}
	}
	return out
}

func longAttribute(flags, kind byte, value []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{flags, kind}, uint16(len(value))), value...)
}

// badPeer listens where a node's link to the fabric ends, until the test does.
func (w *world) badPeer(node string) (p *badPeer, address string) {
	w.Helper()
	p, address = &badPeer{}, fmt.Sprintf("172.29.%d.1", w.node(node).Index)
	var l net.Listener
	w.in("fabric", func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf("%s:%d", address, badPort))
		return err
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	}()
	w.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		if p.conn != nil {
			_ = p.conn.Close()
		}
		p.mu.Unlock()
		<-done
	})
	return p, address
}

// serve is one session: OPEN with EVPN and four-octet AS numbers, then End-of-RIB.
func (p *badPeer) serve(c net.Conn) {
	defer c.Close()
	open := []byte{4, 252, 0, 0, 90, 198, 51, 100, 77, 14, 2, 12, 1, 4, 0, 25, 0, 70, 65, 4, 0, 0, 252, 0}
	if _, err := c.Write(bgpMessage(bgpOpen, open...)); err != nil {
		return
	}
	head := make([]byte, 19)
	for begun := false; ; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint16(head[16:]))-19); err != nil {
			return
		}
		switch head[18] {
		case bgpOpen, bgpKeepalive:
			_, _ = c.Write(bgpMessage(bgpKeepalive))
		case bgpNotification:
			return
		}
		if head[18] == bgpKeepalive && !begun {
			begun = true
			p.mu.Lock()
			p.conn = c
			_, _ = c.Write(append(bgpUpdateOf([]byte{0x80, 15, 3, 0, 25, 70}), p.greeting...))
			p.mu.Unlock()
		}
	}
}

func (p *badPeer) send(msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.conn.Write(msg)
	return err
}

// greet has all sessions begin with a message, the present one too.
func (p *badPeer) greet(msg []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.greeting = msg
	_, _ = p.conn.Write(msg)
}

// A second neighbour announces and withdraws ten thousand prefixes of a tenant again
// and again: the tenant's traffic over other routes loses nothing, and in the end the
// node has what it had before. Then it sends messages of an unknown type, which end its
// own session alone.
func TestBadNeighbor(t *testing.T) {
	w := shared(t)
	rr := w.node("rr").VTEP4
	p, bad := w.badPeer("a1")
	defer func() { w.configured("a1", fmt.Sprintf("    - address: %s\n", rr)) }() // a cleanup would have no context
	streams := w.streams()
	w.configured("a1", fmt.Sprintf("    - {address: %s, connectRetry: 1s}\n    - {address: %s, port: %d, connectRetry: 1s}\n  peerLinger: 0s\n", rr, bad, badPort))
	has := func(n int) {
		w.Helper()
		w.eventually(fmt.Sprintf("a1 has %d routes of the neighbour", n), func() error {
			list, err := w.neighbors("a1")
			if err == nil && (list[1].State != "established" || list[1].Received != n) {
				err = fmt.Errorf("%+v", list[1])
			}
			return err
		})
		w.eventually("a1 has done what follows from it", func() error { return w.settled("a1") })
	}
	has(0)
	// First, since the node keeps a VTEP for ten seconds that it has learned after its start.
	if err := p.send(manyMessages()); err != nil {
		t.Fatal(err)
	}
	has(2 * many)
	for _, ends := range [][2]string{{addrA4, "10.74.0.1"}, {addrA6, "fd00:74::1"}} {
		w.says("a1", []string{"8 more next hops are left out: a route uses at most 32, those with the lowest VTEP addresses"}, "explain", "--vrf", "1001", ends[0], ends[1])
	}
	rounds := 1
	if nightly.On() {
		rounds = 3
	}
	for range rounds {
		for _, announce := range []bool{true, false} {
			if err := p.send(flapMessages(announce)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.send(flapMessages(true)); err != nil {
		t.Fatal(err)
	}
	has(2*many + flaps)
	if err := p.send(flapMessages(false)); err != nil {
		t.Fatal(err)
	}
	has(2 * many)
	w.endsOnlyItsSession(p)
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	w.connected()
	w.clean()
}

// endsOnlyItsSession: a neighbour that begins each session with a message of an unknown type
// is told so, and neither the daemon nor the reflector's session ends.
func (w *world) endsOnlyItsSession(p *badPeer) {
	w.Helper()
	before := w.process("a1", "sluiced").Pid()
	p.greet(bgpMessage(bgpUnknown))
	w.eventually("the neighbour's session ends, and its status says why", func() error {
		list, err := w.neighbors("a1")
		if err == nil && (list[0].State != "established" || list[0].Flaps != 0 || list[1].Flaps == 0 || !strings.Contains(list[1].LastError, "unknown type 77")) {
			err = fmt.Errorf("%+v", list)
		}
		return err
	})
	p.mu.Lock()
	p.greeting = nil
	p.mu.Unlock()
	w.eventually("it comes back", func() error {
		list, err := w.neighbors("a1")
		if err == nil && (list[1].State != "established" || list[0].Flaps != 0) {
			err = fmt.Errorf("%+v", list)
		}
		return err
	})
	if after := w.process("a1", "sluiced").Pid(); after != before {
		w.Errorf("sluiced was process %d and is %d", before, after)
	}
}
