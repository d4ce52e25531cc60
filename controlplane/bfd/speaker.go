package bfd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// Config is what a Speaker does.
type Config struct {
	Peers []Peer
	// Changed is told of every change of a path, in order for each neighbour. It must
	// neither block nor call the speaker. Nil: nobody is told.
	Changed func(neighbor netip.Addr, path Path)
}

// Peer is a neighbour to hold a session with.
type Peer struct {
	// Neighbor is its address; a link-local one has its interface as zone.
	Neighbor netip.Addr
	// Local is this end's address. Unset: the kernel's choice, and any is accepted.
	Local netip.Addr
	// Multihop is RFC 5883: the neighbour is not on the link.
	Multihop bool
	// MinTTL is the lowest TTL of packets that a multihop session takes. Those of a
	// single-hop one have 255.
	MinTTL uint8
	Settings
}

// Path is what BFD says of the way to a neighbour.
type Path uint8

// The paths.
const (
	// PathUnknown: the session has not been up.
	PathUnknown Path = iota
	// PathUp: packets go both ways.
	PathUp
	// PathLost: they did, and do not any more.
	PathLost
	// PathOff: the neighbour has switched BFD off, and since then it has not been up.
	PathOff
)

// String is the path in one word.
func (p Path) String() string { return [...]string{"unknown", "up", "lost", "off"}[p&3] }

// Speaker holds the sessions with all neighbours.
type Speaker struct {
	changed   func(netip.Addr, Path)
	log       *slog.Logger
	ends      []*end
	byLocal   map[uint32]*end
	byAddress map[address][]*end
	receivers []*receiver
	tellEnd   atomic.Bool
	// limit is for what a neighbour can cause.
	limit loglimit.Limit

	mu    sync.Mutex
	drops map[Drop]uint64
}

// address is what a packet without our discriminator is for (RFC 5881 section 3,
// RFC 5883 section 4). Neighbours on several links may have one link-local address.
type address struct {
	neighbor netip.Addr
	multihop bool
}

// New checks the peers and does no I/O.
func New(cfg Config, log *slog.Logger) (*Speaker, error) {
	s := &Speaker{changed: cfg.Changed, log: log, byLocal: map[uint32]*end{}, byAddress: map[address][]*end{}, drops: map[Drop]uint64{}}
	kinds := map[kind]*receiver{}
	for _, p := range cfg.Peers {
		p.Neighbor, p.Local = p.Neighbor.Unmap(), p.Local.Unmap()
		if err := p.validate(); err != nil {
			return nil, fmt.Errorf("BFD with %s: %w", p.Neighbor, err)
		}
		at := address{p.Neighbor.WithZone(""), p.Multihop}
		if slices.ContainsFunc(s.byAddress[at], func(e *end) bool { return e.peer.Neighbor == p.Neighbor }) {
			return nil, fmt.Errorf("BFD with %s: there are two such neighbours", p.Neighbor)
		}
		k := kind{ipv6: p.Neighbor.Is6(), multihop: p.Multihop}
		if kinds[k] == nil {
			kinds[k] = &receiver{kind: k, speaker: s}
			s.receivers = append(s.receivers, kinds[k])
		}
		e := &end{peer: p, speaker: s, receiver: kinds[k], discriminator: s.newDiscriminator(), wake: loop.NewSignal()}
		e.log = log.With(slog.String("neighbor", p.Neighbor.String()))
		s.ends = append(s.ends, e)
		s.byAddress[at], s.byLocal[e.discriminator] = append(s.byAddress[at], e), e
	}
	return s, nil
}

func (p Peer) validate() error {
	switch {
	case !p.Neighbor.IsValid() || p.Neighbor.IsUnspecified() || p.Neighbor.IsMulticast():
		return errors.New("want the neighbour's unicast address")
	case p.Neighbor.Is6() && p.Neighbor.IsLinkLocalUnicast() && p.Neighbor.Zone() == "":
		return errors.New("a link-local address needs its interface, as in fe80::1%eth0")
	case p.Multihop && p.Neighbor.IsLinkLocalUnicast():
		return errors.New("a link-local address is never several hops away")
	case p.Local.IsValid() && p.Local.Is4() != p.Neighbor.Is4():
		return fmt.Errorf("the local address %s is of the other family", p.Local)
	case p.Multiplier == 0:
		return errors.New("the multiplier is 0")
	case p.MinTx < time.Millisecond || p.MinTx > maxInterval || p.MinRx < time.Millisecond || p.MinRx > maxInterval:
		return fmt.Errorf("intervals %s and %s: want %s to %s", p.MinTx, p.MinRx, time.Millisecond, maxInterval)
	}
	return nil
}

// maxInterval fits into 32 bits of microseconds.
const maxInterval = time.Hour

// newDiscriminator is random, so that packets of an earlier process, or made up
// by somebody who does not see ours, name no session.
func (s *Speaker) newDiscriminator() uint32 {
	for {
		if d := rand.Uint32(); d != 0 && s.byLocal[d] == nil {
			return d
		}
	}
}

// Run holds the sessions until ctx ends, and returns nil. It is called once.
func (s *Speaker) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range s.receivers {
		group.Go(func() error { return r.run(ctx) })
	}
	for _, e := range s.ends {
		group.Go(func() error { return e.run(ctx) })
	}
	return group.Wait()
}

// TellEnd makes the end of Run tell the neighbours that BFD is switched off, by
// AdminDown. Without it they find out by the detection time, when they have seen
// their BGP session end and may keep its routes over a restart: see doc.go.
func (s *Speaker) TellEnd() { s.tellEnd.Store(true) }

// take finds the session that a received packet is for.
func (s *Speaker) take(now time.Time, b []byte, from origin) {
	p, drop := Parse(b)
	e := s.at(from)
	if drop == dropNone && p.Yours != 0 {
		e = s.byLocal[p.Yours]
	}
	switch {
	case drop == DropAuthentication && e != nil && e.meant(from) && from.ttl >= e.minTTL():
		e.refuse("the neighbour authenticates with " + authType(b) + ", which is not supported")
	case drop != dropNone:
	case e == nil:
		drop = DropUnknown
	case !e.meant(from):
		drop = DropSource
	case from.ttl < e.minTTL():
		drop = DropTTL
		e.refuse(fmt.Sprintf("the neighbour's packets arrive with TTL %d, and at least %d is required", from.ttl, e.minTTL()))
	default:
		drop = e.receive(now, p)
	}
	if drop != dropNone {
		s.mu.Lock()
		s.drops[drop]++
		s.mu.Unlock()
	}
}

// at is the session with an address on the link of a packet, or with that address on another
// link; nil: there is none.
func (s *Speaker) at(from origin) *end {
	ends := s.byAddress[address{from.neighbor, from.multihop}]
	if i := slices.IndexFunc(ends, func(e *end) bool { return e.meant(from) }); i >= 0 {
		return ends[i]
	}
	if len(ends) > 0 {
		return ends[0]
	}
	return nil
}

// Status is the speaker's state, for people and for a metrics collector.
type Status struct {
	Sessions []SessionStatus
	// Drops counts received packets that were not used.
	Drops map[Drop]uint64
}

// SessionStatus is one session.
type SessionStatus struct {
	Neighbor netip.Addr
	Multihop bool
	Path     Path
	State    State
	// RemoteState and RemoteDiagnostic are what the neighbour last said. While it is
	// not heard RemoteState is Down.
	RemoteState                  State
	Diagnostic, RemoteDiagnostic Diagnostic
	// Since is when the state was last changed. Zero: not since the start.
	Since time.Time
	// Flaps counts how often the session left Up since the start.
	Flaps uint32
	// TxInterval is the agreed interval of our packets, before jitter, and Detection
	// the agreed time of silence after which the path is lost; 0: none now.
	TxInterval, Detection time.Duration
	Local, Remote         uint32
	In, Out               uint64
	// Problem is what is in the way of the session, as far as it is seen here. "":
	// nothing.
	Problem string
}

// Status reads the present state. Before Run the sessions are down.
func (s *Speaker) Status() Status {
	st := Status{Drops: map[Drop]uint64{}}
	for _, e := range s.ends {
		st.Sessions = append(st.Sessions, e.status())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range Drops() {
		st.Drops[d] = s.drops[d]
	}
	return st
}
