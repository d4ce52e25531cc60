package bgp

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// awaitPort waits until the port of Config is listened on; false when ctx ends first.
// While the port is taken there are no sessions: imports count as complete when the
// neighbours would have forgotten this node, too.
func (s *GoBGP) awaitPort(ctx context.Context) bool {
	giveUp := time.NewTimer(s.cfg.RestartTime + s.cfg.DeferralTime)
	defer giveUp.Stop()
	for {
		err := s.listen(ctx)
		if ctx.Err() != nil {
			return false
		}
		s.noteProblem(err)
		if err == nil {
			return true
		}
		again := time.NewTimer(portRetry)
		select {
		case <-ctx.Done():
		case <-again.C:
		case <-giveUp.C:
			s.giveUpWaiting(s.cfg.Neighbors...)
		}
		again.Stop()
	}
}

// portRetry is how often a port that is taken is tried.
const portRetry = time.Second

// listen takes connections at each of the addresses.
func (s *GoBGP) listen(ctx context.Context) error {
	if s.cfg.ListenPort == NoListen {
		return nil
	}
	addrs := s.cfg.ListenAddresses
	if len(addrs) == 0 {
		addrs = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	at := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		at[i] = netip.AddrPortFrom(a, uint16(s.cfg.ListenPort))
	}
	if err := s.connections.Listen(ctx, at...); err != nil {
		return fmt.Errorf("no BGP sessions: %w", err)
	}
	return nil
}

// noteProblem keeps why there is no BGP server for Status, and logs it once.
func (s *GoBGP) noteProblem(err error) {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	was := s.problem
	if s.problem = ""; err != nil {
		s.problem = err.Error()
	}
	if err != nil && s.problem != was {
		s.log.Error("cannot listen for BGP; trying again", slog.Any("error", err))
	}
}
