// Package identity says who is behind a connection to the metadata proxy.
//
// A program on each tap replaces the source of a metadata request by an address that
// stands for the tap, and for the guest's address behind it: two guests with one address
// are two here. Of IPv4 each address of a port has a number, in 100.64.0.0/10 (RFC 6598,
// which no guest's request can come from, as the program has rewritten it). Of IPv6 each
// MAC address of a port has one, and the guest's interface identifier stays behind it:
//
//	fd6d:0000:NNNN:NNNN:IIII:IIII:IIII:IIII stands for fe80::IIII:IIII:IIII:IIII
//
// Requests that come in through the namespace of a network have no number: there guests
// have their own addresses, and the file has the ports on the network beside them.
//
// The daemon writes what the numbers mean into a file that is replaced as a whole; the
// proxy reads it when it has changed, and needs neither the daemon nor a database.
package identity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Number is what an address stands for: of IPv4 an address of a port, of IPv6 a MAC
// address of a port. 0 is none.
type Number uint32

// Max is the largest: 100.64.0.0/10 has 22 bits behind its prefix, of which the last
// address is left out.
const Max Number = 1<<22 - 2

var (
	prefix4 = netip.MustParsePrefix("100.64.0.0/10")
	prefix6 = netip.MustParsePrefix("fd6d::/32")
)

// Address4 is the address of a number.
func Address4(n Number) netip.Addr {
	base := prefix4.Addr().As4()
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+uint32(n))
	return netip.AddrFrom4(base)
}

// Address6 is the address of a number and a link-local address.
func Address6(n Number, guest netip.Addr) netip.Addr {
	a, g := prefix6.Addr().As16(), guest.As16()
	binary.BigEndian.PutUint32(a[4:], uint32(n))
	copy(a[8:], g[8:])
	return netip.AddrFrom16(a)
}

// Parse is the reverse of both. guest is the link-local address behind IPv6, and invalid
// for IPv4, whose number stands for it.
func Parse(a netip.Addr) (n Number, guest netip.Addr, ok bool) {
	a = a.Unmap()
	switch {
	case prefix4.Contains(a):
		b := a.As4()
		base := prefix4.Addr().As4()
		n = Number(binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(base[:]))
	case prefix6.Contains(a):
		b := a.As16()
		n = Number(binary.BigEndian.Uint32(b[4:]))
		g := [16]byte{0: 0xfe, 1: 0x80}
		copy(g[8:], b[8:])
		guest = netip.AddrFrom16(g)
	}
	if n == 0 || n > Max {
		return 0, netip.Addr{}, false
	}
	return n, guest, true
}

// RestTime is how long a number is nobody's after it was given back: a late packet, or a
// connection of a VM that is gone, must not become another one's.
const RestTime = 2 * time.Minute

// ErrNone: all numbers are taken, or rest.
var ErrNone = errors.New("no number for a metadata identity is free")

// Pool gives numbers out. The caller serialises.
type Pool struct {
	max   Number
	next  Number
	taken map[Number]struct{}
	// rests are the numbers that were given back, in the order of their ends.
	rests   []rest
	resting map[Number]struct{}
}

type rest struct {
	n   Number
	end time.Time
}

// NewPool makes a pool of the numbers 1 to most, Max at most; it begins behind start,
// which should be another one after each restart: what rested then is not known.
func NewPool(most, start Number) *Pool {
	most = min(most, Max)
	return &Pool{max: most, next: start % most, taken: map[Number]struct{}{}, resting: map[Number]struct{}{}}
}

// Adopt takes a number that was given out before a restart.
func (p *Pool) Adopt(n Number) error {
	if n == 0 || n > p.max {
		return fmt.Errorf("the number %d is none of 1 to %d", n, p.max)
	}
	if _, twice := p.taken[n]; twice {
		return fmt.Errorf("the number %d has two owners", n)
	}
	p.taken[n] = struct{}{}
	return nil
}

// Take gives a number out, round the pool: the one that was given back last is the last
// to be given out again.
func (p *Pool) Take(now time.Time) (Number, error) {
	for len(p.rests) > 0 && !now.Before(p.rests[0].end) {
		delete(p.resting, p.rests[0].n)
		p.rests = p.rests[1:]
	}
	if len(p.taken)+len(p.resting) >= int(p.max) {
		return 0, ErrNone
	}
	for {
		p.next = p.next%p.max + 1
		_, taken := p.taken[p.next]
		_, resting := p.resting[p.next]
		if !taken && !resting {
			p.taken[p.next] = struct{}{}
			return p.next, nil
		}
	}
}

// Give takes a number back, which rests.
func (p *Pool) Give(n Number, now time.Time) {
	if _, taken := p.taken[n]; !taken {
		return
	}
	delete(p.taken, n)
	p.resting[n] = struct{}{}
	p.rests = append(p.rests, rest{n, now.Add(RestTime)})
}
