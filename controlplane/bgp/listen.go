package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// awaitPort waits until the port of Config can be listened on; false when ctx ends
// first. The BGP server's own attempt, when it fails, leaves goroutines behind that
// nothing can end. While the port is taken there are no sessions: imports count as
// complete when the neighbours would have forgotten this node, too.
func (s *GoBGP) awaitPort(ctx context.Context) bool {
	giveUp := time.NewTimer(s.cfg.RestartTime + s.cfg.DeferralTime)
	defer giveUp.Stop()
	for {
		err := s.tryPort(ctx)
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

// tryPort listens on each address for a moment, as the BGP server will.
func (s *GoBGP) tryPort(ctx context.Context) error {
	if s.cfg.ListenPort == NoListen {
		return nil
	}
	addrs := s.cfg.ListenAddresses
	if len(addrs) == 0 {
		addrs = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	var errs []error
	for _, a := range addrs {
		network := "tcp4"
		if a.Is6() {
			network = "tcp6"
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, network, net.JoinHostPort(a.String(), strconv.Itoa(s.cfg.ListenPort)))
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("no BGP sessions: %w", err))
		}
	}
	return errors.Join(errs...)
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
		s.log.Error("cannot listen for BGP, trying again", slog.Any("error", err))
	}
}
