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

	"github.com/ovn-sluice/sluice/controlplane/bgp/engine"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// start brings the BGP server up, without neighbours, holding what is announced
// so far. When that fails its sockets are closed again.
func (s *GoBGP) start(ctx, watching context.Context) (*server.BgpServer, error) {
	srv, accepted := engine.New(s.log, s.handles, &s.leaving)
	s.accepted = accepted
	go srv.Serve()
	if err := s.setUp(ctx, watching, srv); err != nil {
		return nil, errors.Join(err, srv.StopBgp(context.Background(), &api.StopBgpRequest{}))
	}
	s.outMu.Lock()
	defer s.outMu.Unlock()
	s.server, s.dials = srv, accepted == nil
	s.announceUnicastLocked(ctx)
	var keys []intent.RouteKey
	for vni, vrf := range s.out.wanted {
		for p := range vrf {
			keys = append(keys, intent.RouteKey{VNI: vni, Prefix: p})
		}
	}
	// One route that the server does not take stops no other; tick tries it again.
	for k, err := range s.sendLocked(ctx, keys) {
		s.log.Error("a route cannot be announced", slog.String("route", k.String()), slog.Any("error", err))
	}
	return srv, nil
}

func (s *GoBGP) setUp(ctx, watching context.Context, srv *server.BgpServer) error {
	if err := srv.StartBgp(ctx, &api.StartBgpRequest{Global: globalConfig(s.cfg)}); err != nil {
		return fmt.Errorf("start the BGP server: %w", err)
	}
	policy, assignment := noTransit()
	if err := srv.AddPolicy(ctx, &api.AddPolicyRequest{Policy: policy}); err != nil {
		return fmt.Errorf("add the export policy: %w", err)
	}
	if err := srv.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: assignment}); err != nil {
		return fmt.Errorf("set the export policy: %w", err)
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
		return fmt.Errorf("watch the BGP server: %w", err)
	}
	return nil
}

// tick ends what has its time, and tries again what failed: once a second, and
// sooner when a withdrawal settles.
func (s *GoBGP) tick(ctx context.Context, srv *server.BgpServer) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.rearm:
		case <-timer.C:
			s.refuseInternal(ctx, srv)
			s.retryDue(ctx, srv)
			s.sendFailed(ctx)
		}
		wait := beat.Until(time.Second)
		s.in.mu.Lock()
		s.publishLocked()
		s.forgetStrangersLocked()
		if at, ok := s.in.rib.nextSettle(); ok {
			wait = min(wait, at.Sub(s.now()))
		}
		s.in.mu.Unlock()
		timer.Reset(max(wait, time.Millisecond))
	}
}

// sendFailed tries the routes again that the server did not take. Whoever asked
// for them was told.
func (s *GoBGP) sendFailed(ctx context.Context) {
	s.reassert(ctx)
	s.outMu.Lock()
	defer s.outMu.Unlock()
	if len(s.out.failed) > 0 {
		s.sendLocked(ctx, nil)
	}
	s.sendUnicastLocked(ctx)
}

// stopPatience is how long the sessions have for their last messages.
const stopPatience = 3 * time.Second

// leave ends the sessions: a graceful end is one without a NOTIFICATION.
func (s *GoBGP) leave(srv *server.BgpServer, graceful bool) error {
	s.leaving.Store(true)
	s.outMu.Lock()
	s.server = nil
	s.outMu.Unlock()
	s.endIntake()
	if graceful {
		s.connections.Close(0)
		return nil
	}
	defer s.connections.Close(stopPatience)
	// Withdrawals first: with RFC 8538 a peer may keep routes over a CEASE.
	ctx := context.Background()
	for _, f := range (FamilyEVPN | FamilyIPv4 | FamilyIPv6).List() {
		if err := srv.DeletePath(ctx, &api.DeletePathRequest{Family: f.wire()}); err != nil {
			return fmt.Errorf("withdraw everything of family %s: %w", f, err)
		}
	}
	// Not StopBgp: it clears what the server reads for each UPDATE that still arrives.
	for _, name := range s.addedNeighbors() {
		if err := srv.DeletePeer(ctx, &api.DeletePeerRequest{Address: name}); err != nil {
			return fmt.Errorf("end the BGP session of %s: %w", name, err)
		}
	}
	return nil
}

// addedNeighbors are the server's names of its neighbours.
func (s *GoBGP) addedNeighbors() (names []string) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for _, n := range s.sync {
		if n.added {
			names = append(names, n.name())
		}
	}
	return names
}

// endIntake takes nothing of the neighbours any more: the server withdraws what each
// one sent as it ends the sessions, and that is no news of the fabric. Who takes over
// from here has to learn it anew, and what was learned leads the same ways until then.
func (s *GoBGP) endIntake() {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.in.ended = true
}

// sendLocked hands the changes of the keys to the BGP server, and those that
// failed before; without a server it leaves them for start.
func (s *GoBGP) sendLocked(ctx context.Context, keys []intent.RouteKey) map[intent.RouteKey]error {
	failed := map[intent.RouteKey]error{}
	if s.server == nil {
		return failed
	}
	keys = s.out.withFailed(keys)
	for _, st := range s.out.plan(keys) {
		if failed[st.key] != nil {
			continue // an old form stays until the new one is there
		}
		if err := s.sendOne(ctx, st); err != nil {
			failed[st.key] = err
			continue
		}
		s.out.done(st)
	}
	for _, k := range keys {
		if failed[k] == nil {
			delete(s.out.failed, k)
		} else {
			s.out.failed[k] = struct{}{}
		}
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
	if s.in.ended {
		return
	}
	s.in.events++
	if peer := r.GetPeer(); peer != nil {
		state := peer.GetPeer().GetState()
		state.NeighborAddress = s.handles.Name(state.GetNeighborAddress())
		s.sessionLocked(peer)
	}
	for _, p := range r.GetTable().GetPaths() {
		p.NeighborIp = s.handles.Name(p.GetNeighborIp())
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
	if f := familyOf(p.GetFamily()); f.unicast() != 0 {
		if err := s.unicastLocked(p); err != nil {
			s.log.Debug("unreadable route", slog.String("neighbor", p.GetNeighborIp()), slog.Any("error", err))
		}
		return
	}
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

// publishLocked settles the rib and tells the watchers.
func (s *GoBGP) publishLocked() {
	before := len(s.in.rib.ghosts.settling)
	if keys, vteps := s.in.rib.settle(s.now()); len(keys)+len(vteps) > 0 {
		s.in.events++
		s.in.publish(keys, vteps)
	}
	if len(s.in.rib.ghosts.settling) > before {
		s.rearm.Send()
	}
}
