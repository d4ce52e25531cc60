package bgp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"

	"github.com/ovn-sluice/sluice/controlplane/ra"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// silence is how long a router has to be silent before another one on its link
// takes its place; routers advertise themselves more often than that while they
// look for their neighbours.
const silence = 15 * time.Second

// linkNeighbor is a neighbour that is configured by its link. GoBGP.in.mu guards
// its fields.
type linkNeighbor struct {
	config Neighbor // without an address
	// address is that of the router that was heard, its zone the link; invalid
	// before.
	address netip.Addr
	heard   time.Time
	// gaveUp: the time for it to send its routes is over.
	gaveUp bool
	// problem is why there is no session to be had.
	problem string
	// on is the link as LinksChanged last told; changed that it is another one.
	on      sessionLink
	changed loop.Signal
}

func newLinkNeighbor(n Neighbor) *linkNeighbor {
	return &linkNeighbor{config: n, problem: "no router has advertised itself on the link", changed: loop.NewSignal()}
}

// Name is the neighbour for people: its link, or its address.
func (n Neighbor) Name() string {
	if n.Interface != "" {
		return n.Interface
	}
	return n.Address.String()
}

// neighborsLocked are the neighbours as configured, with the addresses of those
// that were found on their links.
func (s *GoBGP) neighborsLocked() []Neighbor {
	out := make([]Neighbor, 0, len(s.cfg.Neighbors))
	for _, n := range s.cfg.Neighbors {
		if l := s.links[n.Interface]; l != nil {
			n.Address = l.address
		}
		out = append(out, n)
	}
	return out
}

// discover follows the router on a link until ctx ends.
func (s *GoBGP) discover(ctx context.Context, srv *server.BgpServer, l *linkNeighbor) error {
	err := ra.Run(ctx, l.config.Interface, l.changed, func(a netip.Addr) { s.heardRouter(ctx, srv, l, a) }, func(err error) {
		s.in.mu.Lock()
		defer s.in.mu.Unlock()
		was := l.problem
		if l.problem = ""; err != nil {
			// Whoever is on the link when it comes back may be another router.
			l.problem, l.heard = err.Error(), time.Time{}
		}
		if l.problem != "" && l.problem != was {
			s.log.Warn("cannot look for the router on a link; trying again", slog.String("link", l.config.Interface), slog.Any("error", err))
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// heardRouter makes the router of a link the neighbour, in the place of one that
// has gone.
func (s *GoBGP) heardRouter(ctx context.Context, srv peers, l *linkNeighbor, a netip.Addr) {
	s.in.mu.Lock()
	old, now := l.address, s.now()
	if a == old {
		l.heard, l.problem = now, ""
		s.in.mu.Unlock()
		return
	}
	if why := s.keepsLocked(l, a, now); why != "" {
		fresh := l.problem != why
		l.problem = why
		s.in.mu.Unlock()
		if fresh {
			s.log.Warn("a router on a link is not accepted as the neighbour", slog.String("link", l.config.Interface),
				slog.String("router", a.String()), slog.String("reason", why))
		}
		return
	}
	n := l.config
	n.Address = a
	l.address, l.heard, l.problem = a, now, ""
	next := &neighborSync{config: n}
	var was netip.AddrPort
	if old.IsValid() {
		former := s.sync[old]
		next.done, next.unicastDone, next.flaps, next.restarted = former.done, former.unicastDone, former.flaps, former.restarted
		was = former.handle
		delete(s.sync, old)
		delete(s.retry, old)
	}
	s.restLocked(next)
	s.sync[a] = next
	s.ends.replace(old, n, s.cfg.ASN)
	s.in.mu.Unlock()
	s.log.Info("found the router on a link", slog.String("link", l.config.Interface), slog.String("neighbor", a.String()))
	if was.IsValid() {
		s.removeNeighbor(ctx, srv, old, was)
	}
	s.addNeighbor(ctx, srv, n)
}

// keepsLocked is why another router on the link is not taken; empty if it is.
func (s *GoBGP) keepsLocked(l *linkNeighbor, a netip.Addr, now time.Time) string {
	if other := s.sync[a]; other != nil {
		return "neighbour " + other.config.Name() + " has this address on this link"
	}
	for b, other := range s.sync {
		// The kernel keeps one key of TCP-MD5 for an address, whatever its interface.
		if b != l.address && b.WithZone("") == a.WithZone("") && other.config.Password != l.config.Password {
			return "neighbour " + other.config.Name() + " has the same address and another password; give both one password"
		}
	}
	if !l.address.IsValid() {
		return ""
	}
	if n := s.sync[l.address]; n != nil && n.established || now.Sub(l.heard) < silence {
		return "there is another router on the link, " + l.address.String()
	}
	return ""
}

// internalRetry is when a neighbour is tried again that was found in the node's own
// AS and is to be external.
const internalRetry = time.Minute

// refuseInternal ends sessions with neighbours that are to be external and are not.
// The server compares AS numbers only with one that is configured.
func (s *GoBGP) refuseInternal(ctx context.Context, srv *server.BgpServer) {
	wrong := map[string]Neighbor{} // by the server's name
	s.in.mu.Lock()
	for a, n := range s.sync {
		if n.wrongAS {
			n.wrongAS = false
			s.retry[a] = s.now().Add(internalRetry)
			wrong[n.name()] = n.config
		}
	}
	s.in.mu.Unlock()
	for name, n := range wrong {
		s.ends.byUs(n.Address, "the neighbour has the node's own AS, and bgp.neighbors[].external is set for it")
		s.log.Error("a neighbour with bgp.neighbors[].external is in the node's own AS", slog.String("neighbor", n.Name()))
		err := srv.DisablePeer(ctx, &api.DisablePeerRequest{Address: name, Communication: "an AS of your own is expected"})
		if err != nil {
			s.log.Error("cannot end a BGP session", slog.String("neighbor", n.Name()), slog.Any("error", err))
		}
	}
}
