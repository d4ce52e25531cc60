package bgp

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"
)

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
		s.addNeighbor(ctx, srv, n)
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
	for _, n := range s.sync {
		if !n.done {
			n.done = true
			s.log.Warn("no End-of-RIB within the restart time, imports count as complete", slog.String("neighbor", n.config.Address.String()))
		}
	}
	s.syncedLocked()
}

// addNeighbor starts a session. A neighbour that cannot be added, such as a
// link-local one whose interface is not there yet, is tried again and stops no
// other.
func (s *GoBGP) addNeighbor(ctx context.Context, srv *server.BgpServer, n Neighbor) {
	a := n.Address.WithZone("")
	peer := peerConfig(s.cfg, n)
	s.in.mu.Lock()
	peer.Conf.AdminDown = s.sync[a].held()
	s.in.mu.Unlock()
	err := srv.AddPeer(ctx, &api.AddPeerRequest{Peer: peer})
	if first := s.ends.setUp(a, err); first {
		s.log.Error("cannot set up a BGP session, trying again", slog.String("neighbor", n.Address.String()), slog.Any("error", err))
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.sync[a].added = err == nil
	if err != nil {
		s.retry[a] = s.now().Add(n.ConnectRetry)
	}
}

// retryDue tries sessions again whose time it is.
func (s *GoBGP) retryDue(ctx context.Context, srv *server.BgpServer) {
	now := s.now()
	var add, enable []Neighbor
	s.in.mu.Lock()
	for a, at := range s.retry {
		n := s.sync[a]
		if now.Before(at) || n.added && n.held() {
			continue
		}
		delete(s.retry, a)
		if n.added {
			enable = append(enable, n.config)
		} else {
			add = append(add, n.config)
		}
	}
	s.in.mu.Unlock()
	for _, n := range add {
		s.addNeighbor(ctx, srv, n)
	}
	for _, n := range enable {
		// The server knows its neighbours by their address with the zone.
		if err := srv.EnablePeer(ctx, &api.EnablePeerRequest{Address: n.Address.String()}); err != nil {
			s.log.Warn("cannot retry a BGP session after its prefix limit", slog.String("neighbor", n.Address.String()), slog.Any("error", err))
			s.in.mu.Lock()
			s.retry[n.Address.WithZone("")] = now.Add(s.cfg.PrefixLimitRetry)
			s.in.mu.Unlock()
		}
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
			s.log.Error("BGP session ended by its prefix limit", slog.String("neighbor", n.config.Address.String()), slog.Duration("retry", s.cfg.PrefixLimitRetry))
		}
	}
	established := state.GetSessionState() == api.PeerState_ESTABLISHED
	if established == n.established {
		return
	}
	n.established = established
	if established {
		s.log.Info("BGP session established", slog.String("neighbor", n.config.Address.String()))
		return
	}
	n.endOfRIB = false
	n.flaps++
	s.log.Warn("BGP session lost", slog.String("neighbor", n.config.Address.String()))
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
