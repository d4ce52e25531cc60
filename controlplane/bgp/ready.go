package bgp

import (
	"context"
	"log/slog"
	"sync"
	"time"
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
// before is announced again, so that all sessions may start.
func (s *GoBGP) Ready() {
	s.unicastReady.give()
	s.ready.give()
}

// UnicastReady tells a restarting speaker the same of its plain unicast routes alone:
// sessions without EVPN may start.
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

// awaitReady waits until the session with a neighbour may start; false when ctx ends
// first. A neighbour drops what it kept of a restarting node at its End-of-RIB, and
// routes announced after that would be a hole in its traffic. But the caller may need
// the routes of a neighbour with plain unicast to find out what to announce: that one
// is waited with for DeferralTime at most (RFC 4724 section 4.1, the
// Selection_Deferral_Timer).
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
		s.log.Warn("a BGP session starts before all that was announced is announced again", slog.String("neighbor", n.Name()), slog.Duration("waited", s.cfg.DeferralTime))
	case <-ctx.Done():
		return false
	}
	return true
}
