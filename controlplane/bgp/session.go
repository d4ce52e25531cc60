package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// start brings the BGP server up, without neighbours, holding what is announced
// so far.
func (s *GoBGP) start(ctx, watching context.Context) (*server.BgpServer, error) {
	srv := server.NewBgpServer(server.LoggerOption(serverLog{s.log, s.ends}))
	go srv.Serve()
	if err := srv.StartBgp(ctx, &api.StartBgpRequest{Global: globalConfig(s.cfg)}); err != nil {
		return nil, fmt.Errorf("start the BGP server: %w", err)
	}
	policy, assignment := noTransit()
	if err := srv.AddPolicy(ctx, &api.AddPolicyRequest{Policy: policy}); err != nil {
		return nil, fmt.Errorf("add the export policy: %w", err)
	}
	if err := srv.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: assignment}); err != nil {
		return nil, fmt.Errorf("set the export policy: %w", err)
	}
	// POST_POLICY reports every path of every neighbour; BEST would report one.
	events := &api.WatchEventRequest{
		Peer: &api.WatchEventRequest_Peer{},
		Table: &api.WatchEventRequest_Table{Filters: []*api.WatchEventRequest_Table_Filter{
			{Type: api.WatchEventRequest_Table_Filter_POST_POLICY},
			{Type: api.WatchEventRequest_Table_Filter_EOR},
		}},
	}
	if err := srv.WatchEvent(watching, events, s.event); err != nil {
		return nil, fmt.Errorf("watch the BGP server: %w", err)
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	s.server = srv
	var keys []intent.RouteKey
	for vni, vrf := range s.out.wanted {
		for p := range vrf {
			keys = append(keys, intent.RouteKey{VNI: vni, Prefix: p})
		}
	}
	var errs []error
	for _, err := range s.sendLocked(ctx, keys) {
		errs = append(errs, err)
	}
	return srv, errors.Join(errs...)
}

// startNeighbors adds the sessions. After a restart that kept forwarding it first
// waits for the first Set (or Ready): a neighbour drops what it kept of us at our
// End-of-RIB, and routes announced after that would be a hole in its traffic.
func (s *GoBGP) startNeighbors(ctx context.Context, srv *server.BgpServer) error {
	if s.cfg.Restarting {
		deadline := time.NewTimer(s.cfg.DeferralTime)
		defer deadline.Stop()
		select {
		case <-s.ready:
		case <-deadline.C:
			s.log.Warn("BGP sessions start before the first set of announcements", slog.Duration("waited", s.cfg.DeferralTime))
		case <-ctx.Done():
			return nil
		}
	}
	for _, n := range s.cfg.Neighbors {
		if err := srv.AddPeer(ctx, &api.AddPeerRequest{Peer: peerConfig(s.cfg, n)}); err != nil {
			return fmt.Errorf("add the BGP neighbour %s: %w", n.Address, err)
		}
	}
	deadline := time.NewTimer(s.cfg.RestartTime)
	defer deadline.Stop()
	select {
	case <-ctx.Done():
	case <-deadline.C:
		s.giveUpWaiting()
	}
	return nil
}

// giveUpWaiting ends the wait for neighbours that sent no End-of-RIB in time.
func (s *GoBGP) giveUpWaiting() {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for a, n := range s.sync {
		if !n.done {
			n.done = true
			s.log.Warn("no End-of-RIB within the restart time, imports count as complete", slog.String("neighbor", a.String()))
		}
	}
	s.syncedLocked()
}

// tick ends what has its time, and tries sessions again that hit their prefix
// limit: once a second, and sooner when a withdrawal settles.
func (s *GoBGP) tick(ctx context.Context, srv *server.BgpServer) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.rearm:
		case <-timer.C:
			s.retryDue(ctx, srv)
		}
		wait := time.Second
		s.in.mu.Lock()
		s.publishLocked()
		if at, ok := s.in.rib.nextSettle(); ok {
			wait = min(wait, at.Sub(s.now()))
		}
		s.in.mu.Unlock()
		timer.Reset(max(wait, time.Millisecond))
	}
}

func (s *GoBGP) retryDue(ctx context.Context, srv *server.BgpServer) {
	now := s.now()
	var due []netip.Addr
	s.in.mu.Lock()
	for a, at := range s.retry {
		if !now.Before(at) {
			due = append(due, a)
			delete(s.retry, a)
		}
	}
	s.in.mu.Unlock()
	for _, a := range due {
		if err := srv.EnablePeer(ctx, &api.EnablePeerRequest{Address: a.String()}); err != nil {
			s.log.Warn("cannot retry a BGP session after its prefix limit", slog.String("neighbor", a.String()), slog.Any("error", err))
		}
	}
}

// leave ends the sessions, unless they are left to the end of the process.
func (s *GoBGP) leave(srv *server.BgpServer, graceful bool) error {
	s.outMu.Lock()
	s.server = nil
	s.outMu.Unlock()
	if graceful {
		return nil
	}
	// Withdrawals first: with RFC 8538 a peer may keep routes over a CEASE.
	ctx := context.Background()
	if err := srv.DeletePath(ctx, &api.DeletePathRequest{Family: evpnFamily()}); err != nil {
		return fmt.Errorf("withdraw everything: %w", err)
	}
	if err := srv.StopBgp(ctx, &api.StopBgpRequest{}); err != nil {
		return fmt.Errorf("stop the BGP server: %w", err)
	}
	return nil
}

// sendLocked hands the changes of the keys to the BGP server; without one it
// leaves them for start.
func (s *GoBGP) sendLocked(ctx context.Context, keys []intent.RouteKey) map[intent.RouteKey]error {
	failed := map[intent.RouteKey]error{}
	if s.server == nil {
		return failed
	}
	for _, st := range s.out.plan(keys) {
		if err := s.sendOne(ctx, st); err != nil {
			failed[st.key] = err
			continue
		}
		s.out.done(st)
	}
	return failed
}

func (s *GoBGP) sendOne(ctx context.Context, st step) error {
	switch {
	case !s.out.needed(st):
		return nil
	case st.withdraw:
		if err := s.server.DeletePath(ctx, &api.DeletePathRequest{Path: encodePath(st.route, true)}); err != nil {
			return fmt.Errorf("withdraw %s: %w", st.key, err)
		}
	default:
		if _, err := s.server.AddPath(ctx, &api.AddPathRequest{Path: encodePath(st.route, false)}); err != nil {
			return fmt.Errorf("announce %s: %w", st.key, err)
		}
	}
	return nil
}

// event takes one report of the BGP server. The server calls it from one
// goroutine, in order, and queues without bound what comes meanwhile.
func (s *GoBGP) event(r *api.WatchEventResponse) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if peer := r.GetPeer(); peer != nil {
		s.sessionLocked(peer)
	}
	for _, p := range r.GetTable().GetPaths() {
		s.pathLocked(p)
	}
	s.publishLocked()
}

func (s *GoBGP) pathLocked(p *api.Path) {
	// Only End-of-RIB comes without a validation state.
	if p.GetNlri() == nil && p.GetValidation() == nil {
		s.endOfRIBLocked(p)
		return
	}
	neighbor, _ := netip.ParseAddr(p.GetNeighborIp())
	path, err := decodePath(p, s.cfg.ASN)
	switch {
	case errors.Is(err, errOtherRoute):
	case err != nil:
		s.in.rib.counts(neighbor.Unmap()).total[ReasonUnreadable]++
		s.log.Debug("unreadable route", slog.String("neighbor", p.GetNeighborIp()), slog.Any("error", err))
	default:
		s.in.rib.apply(path, s.now())
	}
}

func (s *GoBGP) endOfRIBLocked(p *api.Path) {
	a, err := netip.ParseAddr(p.GetNeighborIp())
	f := p.GetFamily()
	if err != nil || f.GetAfi() != api.Family_AFI_L2VPN || f.GetSafi() != api.Family_SAFI_EVPN {
		return
	}
	if n := s.sync[a.Unmap()]; n != nil {
		n.endOfRIB, n.done = true, true
		s.syncedLocked()
	}
}

// sessionLocked follows a neighbour's session.
func (s *GoBGP) sessionLocked(e *api.WatchEventResponse_PeerEvent) {
	state := e.GetPeer().GetState()
	a, err := netip.ParseAddr(state.GetNeighborAddress())
	a = a.Unmap()
	n := s.sync[a]
	if err != nil || n == nil {
		return
	}
	if state.GetAdminState() == api.PeerState_PFX_CT {
		if _, waiting := s.retry[a]; !waiting {
			s.retry[a] = s.now().Add(s.cfg.PrefixLimitRetry)
			s.log.Error("BGP session ended by its prefix limit", slog.String("neighbor", a.String()), slog.Duration("retry", s.cfg.PrefixLimitRetry))
		}
	}
	established := state.GetSessionState() == api.PeerState_ESTABLISHED
	if established == n.established {
		return
	}
	n.established = established
	if established {
		s.log.Info("BGP session established", slog.String("neighbor", a.String()))
		return
	}
	n.endOfRIB = false
	s.log.Warn("BGP session lost", slog.String("neighbor", a.String()))
}

// syncedLocked notices that the last neighbour has become complete.
func (s *GoBGP) syncedLocked() {
	for _, n := range s.sync {
		if !n.done {
			return
		}
	}
	if !s.in.inSync {
		s.in.inSync = true
		s.in.publish(nil, nil)
	}
}

// publishLocked settles the rib and tells the watchers.
func (s *GoBGP) publishLocked() {
	before := len(s.in.rib.ghosts.settling)
	if keys, vteps := s.in.rib.settle(s.now()); len(keys)+len(vteps) > 0 {
		s.in.publish(keys, vteps)
	}
	if len(s.in.rib.ghosts.settling) > before {
		select {
		case s.rearm <- struct{}{}:
		default:
		}
	}
}
