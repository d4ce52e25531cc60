package bgp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// startNeighbors adds the sessions. A speaker that restarts connects at once, too; its
// End-of-RIB follows when it has announced what it is to.
func (s *GoBGP) startNeighbors(ctx context.Context, srv *server.BgpServer) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range s.cfg.Neighbors {
		group.Go(func() error {
			group.Go(func() error {
				s.giveUpLater(ctx, n)
				return nil
			})
			group.Go(func() error {
				if s.awaitReady(ctx, n) {
					s.finish(n)
				}
				return nil
			})
			if l := s.links[n.Interface]; l != nil {
				return s.discover(ctx, srv, l)
			}
			s.addNeighbor(ctx, srv, n)
			return nil
		})
	}
	return group.Wait()
}

// giveUpLater ends the wait for a neighbour that sends no End-of-RIB within the
// restart time.
func (s *GoBGP) giveUpLater(ctx context.Context, n Neighbor) {
	if loop.Sleep(ctx, s.cfg.RestartTime) {
		s.giveUpWaiting(n)
	}
}

// giveUpWaiting ends the wait for neighbours, as configured, that sent no End-of-RIB
// in time.
func (s *GoBGP) giveUpWaiting(neighbors ...Neighbor) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for _, c := range neighbors {
		a := c.Address
		if l := s.links[c.Interface]; l != nil {
			l.gaveUp, a = true, l.address
		}
		n := s.sync[a]
		if n == nil {
			continue // its router has not been heard
		}
		if n.config.Families.Has(FamilyEVPN) && !n.done || n.config.Families.unicast() != 0 && !n.unicastDone {
			s.log.Warn("no End-of-RIB within the restart time; imports count as complete", slog.String("neighbor", n.config.Address.String()))
		}
		n.done, n.unicastDone = true, true
	}
	s.syncedLocked()
}

// peers are the neighbours of the BGP server.
type peers interface {
	AddPeer(context.Context, *api.AddPeerRequest) error
	DeletePeer(context.Context, *api.DeletePeerRequest) error
}

// addNeighbor starts a session. A neighbour that cannot be added, such as a
// link-local one whose interface is not there yet, is tried again and stops no
// other.
func (s *GoBGP) addNeighbor(ctx context.Context, srv peers, n Neighbor) {
	a := n.Address
	handle, known, err := s.connect(n)
	if !known {
		return // another router has come to its link meanwhile
	}
	if err == nil {
		if err = srv.AddPeer(ctx, &api.AddPeerRequest{Peer: peerConfig(s.cfg, n, handle)}); err != nil {
			s.connections.Remove(n.Address)
		}
	}
	if first := s.ends.setUp(a, err); first {
		s.log.Error("cannot set up a BGP session; trying again", slog.String("neighbor", n.Address.String()), slog.Any("error", err))
	}
	if s.noteAdded(n, err) || err != nil {
		return
	}
	// Another router has come to its link meanwhile, and nobody would end this session.
	s.removeNeighbor(ctx, srv, n.Address, handle)
}

// connect begins with the connections of a neighbour, if it is one still.
func (s *GoBGP) connect(n Neighbor) (handle netip.AddrPort, known bool, err error) {
	a := n.Address
	s.in.mu.Lock()
	sync := s.sync[a]
	if sync == nil {
		s.in.mu.Unlock()
		return handle, false, nil
	}
	if s.cfg.Restarting && !n.NoGracefulRestart && sync.restarted.IsZero() {
		sync.restarted = s.now().Add(s.cfg.RestartTime)
	}
	out := wireNeighbor(s.cfg, n)
	out.Restarted, out.Held = sync.restarted, sync.held()
	_, finished := s.finished[n.Name()]
	out.Unfinished = s.cfg.Restarting && !finished
	sync.disabled = out.Held
	s.in.mu.Unlock()
	if err := onLink(n.Address); err != nil {
		return handle, true, err
	}
	if handle, err = s.connections.Add(out); err != nil {
		return handle, true, err
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.handles.Add(handle.Addr(), a)
	sync.handle = handle
	return handle, true, nil
}

// removeNeighbor ends a session for good.
func (s *GoBGP) removeNeighbor(ctx context.Context, srv peers, a netip.Addr, handle netip.AddrPort) {
	if err := srv.DeletePeer(ctx, &api.DeletePeerRequest{Address: handle.Addr().String()}); err != nil {
		s.log.Warn("cannot remove a BGP session", slog.String("neighbor", a.String()), slog.Any("error", err))
	}
	s.connections.Remove(a)
}

// name is the neighbour's at the server.
func (n *neighborSync) name() string {
	if n.handle.IsValid() {
		return n.handle.Addr().String()
	}
	return n.config.Address.String()
}

// noteAdded notes whether the server has taken a neighbour, and tells whether it is
// one still.
func (s *GoBGP) noteAdded(n Neighbor, err error) (known bool) {
	a := n.Address
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	sync := s.sync[a]
	if sync == nil {
		return false
	}
	sync.added = err == nil
	s.paths.wake.Send() // what holds it may be over since connect
	if err != nil {
		s.retry[a] = s.now().Add(n.ConnectRetry)
	}
	return true
}

// forgetStrangersLocked drops what is counted of routers that have gone from their
// links, once nothing is left of their routes.
func (s *GoBGP) forgetStrangersLocked() {
	r := s.in.rib
	gone := func(a netip.Addr) bool {
		c := r.neighbors[a]
		return s.sync[a] == nil && (c == nil || c.received == 0)
	}
	maps.DeleteFunc(r.away, func(a netip.Addr, _ struct{}) bool { return gone(a) })
	maps.DeleteFunc(r.neighbors, func(a netip.Addr, _ *pathCounts) bool { return gone(a) })
	s.handles.Forget(gone)
}

// onLink fails while the interface of a link-local address is not there: the server
// would take such a neighbour and connect without an interface, for an error that
// does not name what is missing.
func onLink(a netip.Addr) error {
	if a.Zone() == "" {
		return nil
	}
	if _, err := net.InterfaceByName(a.Zone()); err != nil {
		return fmt.Errorf("interface %s: %w", a.Zone(), err)
	}
	return nil
}

// retryDue tries sessions again whose time it is.
func (s *GoBGP) retryDue(ctx context.Context, srv *server.BgpServer) {
	now := s.now()
	var add []Neighbor
	enable := map[string]Neighbor{} // by the server's name
	s.in.mu.Lock()
	for a, at := range s.retry {
		n := s.sync[a]
		if n == nil { // the router has gone from its link
			delete(s.retry, a)
			continue
		}
		if now.Before(at) || n.added && n.held() {
			continue
		}
		delete(s.retry, a)
		if n.added {
			n.session.overLimit = false
			enable[n.name()] = n.config
		} else {
			add = append(add, n.config)
		}
	}
	s.in.mu.Unlock()
	for _, n := range add {
		s.addNeighbor(ctx, srv, n)
	}
	for name, n := range enable {
		if err := srv.EnablePeer(ctx, &api.EnablePeerRequest{Address: name}); err != nil {
			s.log.Warn("cannot retry a BGP session after its prefix limit", slog.String("neighbor", n.Address.String()), slog.Any("error", err))
			s.in.mu.Lock()
			s.retry[n.Address] = now.Add(s.cfg.PrefixLimitRetry)
			s.in.mu.Unlock()
		}
	}
}

func (s *GoBGP) endOfRIBLocked(p *api.Path) {
	a, err := netip.ParseAddr(p.GetNeighborIp())
	n := s.sync[a.Unmap()]
	if err != nil || n == nil {
		return
	}
	switch f := familyOf(p.GetFamily()); f {
	case FamilyEVPN:
		n.endOfRIB, n.done = true, true
	case FamilyIPv4, FamilyIPv6:
		n.unicastEnds |= f
		n.unicastDone = n.unicastDone || n.unicastEnds.Has(n.config.Families.unicast())
	default:
		return
	}
	s.syncedLocked()
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
	if state.GetSessionState() == api.PeerState_ACTIVE && s.accepted != nil {
		s.connections.Offer(n.config.Address, s.accepted)
	}
	n.session.state, n.session.overLimit = state.GetSessionState(), state.GetAdminState() == api.PeerState_PFX_CT
	if asn := state.GetPeerAsn(); asn != 0 {
		n.session.asn = asn
	}
	if n.session.overLimit {
		s.ends.overLimit(a)
		if _, waiting := s.retry[a]; !waiting {
			s.retry[a] = s.now().Add(s.cfg.PrefixLimitRetry)
			s.log.Error("BGP session ended by its prefix limit", slog.String("neighbor", n.config.Address.String()), slog.Duration("retry", s.cfg.PrefixLimitRetry))
		}
	}
	established := state.GetSessionState() == api.PeerState_ESTABLISHED
	if established == n.established {
		return
	}
	if established {
		s.restLocked(n) // before the session counts as one on another link
		if n.held() {
			s.paths.wake.Send()
		}
	}
	n.established, n.session.since, n.lostLink, n.lostPath = established, s.now(), "", false
	if established {
		delete(s.in.rib.away, a)
		n.wrongAS = n.config.External && state.GetPeerAsn() == s.cfg.ASN
		s.log.Info("BGP session established", slog.String("neighbor", n.config.Address.String()))
		return
	}
	s.in.rib.away[a] = struct{}{}
	n.endOfRIB, n.unicastEnds = false, 0
	n.flaps++ // connection has logged it
}

// syncedLocked notices that the last neighbour has become complete.
func (s *GoBGP) syncedLocked() {
	evpn, unicast := true, true
	for _, n := range s.sync {
		evpn = evpn && (n.done || !n.config.Families.Has(FamilyEVPN))
		unicast = unicast && (n.unicastDone || n.config.Families.unicast() == 0)
	}
	for _, l := range s.links {
		// Its router, which has not been heard yet, may have routes.
		waits := !l.address.IsValid() && !l.gaveUp
		evpn = evpn && !(waits && l.config.Families.Has(FamilyEVPN))
		unicast = unicast && !(waits && l.config.Families.unicast() != 0)
	}
	if evpn && s.policiesComplete.given() && !s.in.inSync {
		s.in.inSync = true
		s.in.publish(nil, nil)
	}
	if unicast && !s.unicastIn.inSync {
		s.unicastIn.inSync = true
		s.unicastIn.changed.Send()
	}
}
