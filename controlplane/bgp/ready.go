package bgp

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	api "github.com/osrg/gobgp/v3/api"
)

// signal is something that happens once.
type signal struct {
	once sync.Once
	done chan struct{}
}

func newSignal() *signal { return &signal{done: make(chan struct{})} }

func (g *signal) give() { g.once.Do(func() { close(g.done) }) }

func (g *signal) given() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// Ready tells a restarting speaker (Config.Restarting) that what it announced
// before is announced again, so that all neighbours may have its End-of-RIB.
func (s *GoBGP) Ready() {
	s.unicastReady.give()
	s.ready.give()
}

// UnicastReady tells a restarting speaker the same of its plain unicast routes alone:
// neighbours without EVPN may have its End-of-RIB.
func (s *GoBGP) UnicastReady() { s.unicastReady.give() }

// PoliciesComplete tells that SetPolicies has been called with all there are. Before,
// imports do not count as complete, whatever the neighbours have sent: of a VRF whose
// policy is still to come nothing is imported.
func (s *GoBGP) PoliciesComplete() {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.policiesComplete.give()
	s.syncedLocked()
}

// awaitReady waits until a neighbour may have this node's End-of-RIB; false when ctx ends
// first. A neighbour drops what it kept of a restarting node at its End-of-RIB, and
// routes announced after that would be a hole in its traffic. But a neighbour with plain
// unicast that restarts too may send its routes only after that End-of-RIB, and the caller
// may need them to find out what to announce: that one is waited with for DeferralTime at
// most (RFC 4724 section 4.1, the Selection_Deferral_Timer).
func (s *GoBGP) awaitReady(ctx context.Context, n Neighbor) bool {
	if !s.cfg.Restarting {
		return true
	}
	ready, over := s.ready.done, (<-chan time.Time)(nil)
	if n.Families.unicast() != 0 {
		deadline := time.NewTimer(s.cfg.DeferralTime)
		defer deadline.Stop()
		over = deadline.C
	}
	if !n.Families.Has(FamilyEVPN) {
		ready = s.unicastReady.done
	}
	select {
	case <-ready:
	case <-over:
		s.log.Warn("End-of-RIB is sent before all routes are announced again", slog.String("neighbor", n.Name()), slog.Duration("waited", s.cfg.DeferralTime))
	case <-ctx.Done():
		return false
	}
	return true
}

// finish lets a neighbour have this node's End-of-RIB.
func (s *GoBGP) finish(n Neighbor) {
	s.in.mu.Lock()
	s.finished[n.Name()] = struct{}{}
	a := n.Address
	if l := s.links[n.Interface]; l != nil {
		a = l.address
	}
	s.in.mu.Unlock()
	s.connections.Finish(a)
	s.endings.Send()
}

// endWithheld notes that the server has sent its End-of-RIB before the routes.
func (s *GoBGP) endWithheld(neighbor netip.Addr) {
	s.in.mu.Lock()
	if n := s.sync[neighbor]; n != nil {
		n.withheld = true
	}
	s.in.mu.Unlock()
	s.endings.Send()
}

// sendEnds has the server send its routes and End-of-RIB once more to the neighbours from
// which it was withheld, when they may have it. The server has no End-of-RIB alone, and one
// that package wire sent could overtake routes in the server's queue.
func (s *GoBGP) sendEnds(ctx context.Context, srv resetter) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.endings:
		}
		var may []netip.Addr
		var names []string
		s.in.mu.Lock()
		for _, n := range s.sync {
			if _, finished := s.finished[n.config.Name()]; finished && n.withheld {
				n.withheld = false
				may = append(may, n.config.Address)
				names = append(names, n.name())
			}
		}
		s.in.mu.Unlock()
		for i, name := range names {
			s.connections.Finish(may[i]) // finish may be about to, or was before the neighbour was added
			if err := srv.ResetPeer(ctx, &api.ResetPeerRequest{Address: name, Soft: true, Direction: api.ResetPeerRequest_OUT}); err != nil && ctx.Err() == nil {
				s.log.Warn("cannot send End-of-RIB", slog.String("neighbor", s.handles.Name(name)), slog.Any("error", err))
			}
		}
	}
}

// resetter is the BGP server as far as ends of sessions, and of what they announce, need it.
type resetter interface {
	ResetPeer(context.Context, *api.ResetPeerRequest) error
}
