package evpn_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// probeInterval is the time between two packets of a pair.
const probeInterval = 50 * time.Millisecond

// pair is two virtual machines of a tenant that talk all the time: one pings, 20
// times a second, and the other answers.
type pair struct {
	tenant   string
	from, to place
	addr     netip.Addr

	mu       sync.Mutex
	packets  []packet
	answered int
}

// place is a virtual machine of the lab and where it is.
type place struct{ name, cloud, chassis string }

type packet struct {
	sent     time.Time
	answered bool
}

func (p *pair) String() string {
	return fmt.Sprintf("%s: %s to %s %s", p.tenant, p.from.name, p.to.name, p.addr)
}

// send notes a packet before it goes, since the answer may be faster than the note.
func (p *pair) send() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packets = append(p.packets, packet{sent: time.Now()})
	return len(p.packets) - 1
}

func (p *pair) answer(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number < len(p.packets) && !p.packets[number].answered {
		p.packets[number].answered = true
		p.answered++
	}
}

// losses are those of a time.
type losses struct {
	sent, lost int
	row        int       // the longest row without an answer
	first      time.Time // when the first of them was sent
}

// lost looks at the packets that were sent in a time.
func (p *pair) lost(from, to time.Time) losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	start, _ := slices.BinarySearchFunc(p.packets, from, func(a packet, t time.Time) int { return a.sent.Compare(t) })
	var out losses
	row := 0
	for _, a := range p.packets[start:] {
		if !a.sent.Before(to) {
			break
		}
		out.sent++
		if a.answered {
			row = 0
			continue
		}
		if out.lost == 0 {
			out.first = a.sent
		}
		out.lost++
		row++
		out.row = max(out.row, row)
	}
	return out
}

// works tells whether the last packets that were sent at least a moment ago, and
// after a time, are answered.
func (p *pair) works(since time.Time, count int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	good := 0
	for _, a := range slices.Backward(p.packets) {
		if a.sent.Before(since) || good == count {
			break
		}
		if a.answered {
			good++
		} else if good > 0 {
			break
		}
	}
	if good < count {
		return fmt.Errorf("%s: %d answers in a row", p, good)
	}
	return nil
}

// station is the sockets of a virtual machine. It sees the requests, too, and
// notes those of another tenant.
type station struct {
	vm, tenant string
	v4, v6     net.PacketConn
}

// traffic is all pairs and stations.
type traffic struct {
	pairs    []*pair
	stations map[string]*station

	mu      sync.Mutex
	foreign []string
}

const (
	echoRequest4, echoReply4 = 8, 0     // RFC 792
	echoRequest6, echoReply6 = 128, 129 // RFC 4443 section 4
	echoHeader               = 8
)

// startTraffic opens the sockets and begins to send. It ends with the test.
func (w *world) startTraffic(pairs []*pair) *traffic {
	w.Helper()
	t := &traffic{pairs: pairs, stations: map[string]*station{}}
	var readers, senders sync.WaitGroup
	ctx, stop := context.WithCancel(background)
	w.Cleanup(func() {
		stop()
		senders.Wait()
		for _, s := range t.stations {
			_, _ = s.v4.Close(), s.v6.Close()
		}
		readers.Wait()
	})
	for _, p := range pairs {
		for _, vm := range []string{p.from.name, p.to.name} {
			if t.stations[vm] != nil {
				continue
			}
			s := &station{vm: vm, tenant: p.tenant}
			w.in(vm, func() (err error) {
				if s.v4, err = net.ListenPacket("ip4:icmp", "0.0.0.0"); err != nil {
					return err
				}
				s.v6, err = net.ListenPacket("ip6:ipv6-icmp", "::")
				return err
			})
			t.stations[vm] = s
			readers.Go(func() { t.read(s, s.v4, echoRequest4, echoReply4) })
			readers.Go(func() { t.read(s, s.v6, echoRequest6, echoReply6) })
		}
	}
	for i, p := range pairs {
		senders.Go(func() { t.send(ctx, i, p) })
	}
	return t
}

// send pings until ctx ends. What the socket refuses counts as lost.
func (t *traffic) send(ctx context.Context, id int, p *pair) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	s := t.stations[p.from.name]
	c, kind := s.v6, byte(echoRequest6)
	if p.addr.Is4() {
		c, kind = s.v4, echoRequest4
	}
	to := &net.IPAddr{IP: p.addr.AsSlice()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, _ = c.WriteTo(request(kind, p.tenant, id, p.send()), to)
	}
}

// request is an echo request; the kernel fills in the checksum of ICMPv6.
func request(kind byte, tenant string, id, number int) []byte {
	b := make([]byte, echoHeader, 64)
	b[0] = kind
	binary.BigEndian.PutUint16(b[4:], uint16(id))
	binary.BigEndian.PutUint16(b[6:], uint16(number))
	b = fmt.Appendf(b, "sluice %s %d %d", tenant, id, number)
	if kind == echoRequest4 {
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i]) << 8
		if i+1 < len(b) {
			sum += uint32(b[i+1])
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func (t *traffic) read(s *station, c net.PacketConn, request, reply byte) {
	b := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < echoHeader {
			continue // an ICMP error about an earlier packet
		}
		var tenant string
		var id, number int
		if _, err := fmt.Sscanf(string(b[echoHeader:n]), "sluice %s %d %d", &tenant, &id, &number); err != nil {
			continue
		}
		switch {
		case tenant != s.tenant:
			t.mu.Lock()
			t.foreign = append(t.foreign, fmt.Sprintf("%s of %s got a packet of %s from %s", s.vm, s.tenant, tenant, from))
			t.mu.Unlock()
		case b[0] == reply && id < len(t.pairs):
			t.pairs[id].answer(number)
		case b[0] == request:
		}
	}
}

// leaks are the packets that came to another tenant.
func (t *traffic) leaks() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.foreign[:min(len(t.foreign), 10)], "\n")
}
