package bgp

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"

	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// BFD is what the path to a neighbour, as BFD sees it, means for the session.
type BFD uint8

// The meanings.
const (
	// BFDOff: nothing; PathChanged is not called.
	BFDOff BFD = iota
	// BFDFollow ends the session when the path is lost. It starts without BFD.
	BFDFollow
	// BFDStrict besides lets no session start while BFD is not up, unless the
	// neighbour has switched BFD off.
	BFDStrict
)

// pathChanges are what BFD has told and the sessions have not been told. They have
// a lock of their own: whoever tells them has packets to send.
type pathChanges struct {
	mu   sync.Mutex
	news map[netip.Addr]pathNews // by neighbour
	wake loop.Signal             // has followPaths look at paths and links
}

// pathNews is what has become of a path since the session was told: one for each
// neighbour, however often the path comes and goes while nobody asks.
type pathNews struct {
	path bfd.Path
	lost bool // meanwhile, or now
}

// PathChanged tells what BFD says of the path to a neighbour. It returns at once.
func (s *GoBGP) PathChanged(neighbor netip.Addr, path bfd.Path) {
	a := neighbor.Unmap()
	s.paths.mu.Lock()
	s.paths.news[a] = pathNews{path: path, lost: s.paths.news[a].lost || path == bfd.PathLost}
	s.paths.mu.Unlock()
	s.paths.wake.Send()
}

// takePathsLocked brings what is known of the paths up to date, and gives the
// neighbours whose session ends for it. One whose session is not there is left
// alone: a graceful restart under way is not aborted (RFC 5882 section 4.3.2: our
// BFD shares the fate of our control plane). The caller holds in.mu.
func (s *GoBGP) takePathsLocked() (lost []netip.Addr) {
	s.paths.mu.Lock()
	news := s.paths.news
	s.paths.news = map[netip.Addr]pathNews{}
	s.paths.mu.Unlock()
	for a, now := range news {
		n := s.sync[a]
		if n == nil || n.config.BFD == BFDOff {
			continue
		}
		n.path = now.path
		n.lostPath = n.lostPath || now.lost && n.established
	}
	for a, n := range s.sync {
		if n.lostPath {
			lost = append(lost, a)
		}
		n.lostPath = false
	}
	return lost
}

// held tells whether no session may start.
func (n *neighborSync) held() bool { return n.holds() != "" }

// holds tells why no session may start; empty if one may.
func (n *neighborSync) holds() string {
	switch {
	case n == nil:
		return ""
	case n.on.down() != "":
		return n.on.down()
	case n.config.BFD == BFDStrict && n.path != bfd.PathUp && n.path != bfd.PathOff:
		return "bfd.strict holds the session down until BFD is up"
	}
	return ""
}

// followPaths ends sessions whose path or link is lost, at once, and holds down those that
// have to wait for theirs.
func (s *GoBGP) followPaths(ctx context.Context, srv *server.BgpServer) error {
	for {
		var again <-chan time.Time
		if !s.endLost(ctx, srv) {
			again = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.paths.wake:
		case <-again:
		}
	}
}

// endLost ends the sessions that are to end now, and holds or lets go their neighbours. It tells
// whether all is done; what is not is kept for the next time.
func (s *GoBGP) endLost(ctx context.Context, srv resetter) (done bool) {
	s.in.mu.Lock()
	links, paths := s.takeLinksLocked(), s.takePathsLocked()
	s.in.mu.Unlock()
	done = true
	for a, link := range links {
		if s.endSession(ctx, srv, a, "its link "+link+" is down, or was replaced", "the link is down") != nil {
			done = false
			s.keepLost(a, func(n *neighborSync) { n.lostLink = link })
		}
	}
	for _, a := range paths {
		if _, ended := links[a]; ended {
			continue
		}
		if s.endSession(ctx, srv, a, bfdLost, "BFD: path lost") != nil {
			done = false
			s.keepLost(a, func(n *neighborSync) { n.lostPath = true })
		}
	}
	return s.hold(ctx, srv, append(slices.Collect(maps.Keys(links)), paths...)) && done
}

// keepLost notes what a session that could not be ended has lost, if it is there still.
func (s *GoBGP) keepLost(a netip.Addr, note func(*neighborSync)) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	if n := s.sync[a]; n != nil && n.established {
		note(n)
	}
}

// endSession resets a session: what the neighbour has sent goes with it, apart from
// the rows that linger. A neighbour that hears the notification may keep our routes
// (RFC 8538 section 3: it is no Hard Reset); it has a BFD session, or the link, to judge by.
func (s *GoBGP) endSession(ctx context.Context, srv resetter, a netip.Addr, why, told string) error {
	s.in.mu.Lock()
	n := s.sync[a]
	if n == nil {
		s.in.mu.Unlock()
		return nil // another router has come to its link meanwhile
	}
	name := n.name()
	s.in.mu.Unlock()
	s.ends.byUs(a, why)
	s.log.Warn("BGP session ends: the path to the neighbour is lost", slog.String("neighbor", a.String()), slog.String("reason", why))
	err := srv.ResetPeer(ctx, &api.ResetPeerRequest{Address: name, Communication: told})
	if err != nil {
		s.log.Error("cannot end a BGP session whose path is lost", slog.String("neighbor", a.String()), slog.Any("error", err))
	}
	return err
}

// hold lets no connection be made with neighbours whose path or link asks for that, and
// lets it again. ended are the sessions that end anyway. It tells whether all is done.
func (s *GoBGP) hold(ctx context.Context, srv resetter, ended []netip.Addr) (done bool) {
	changed, ends := map[netip.Addr]bool{}, map[netip.Addr]string{}
	s.in.mu.Lock()
	for a, n := range s.sync {
		held := n.held()
		if n.added && held != n.disabled {
			n.disabled, changed[a] = held, held
		}
		if held && n.established && !slices.Contains(ended, a) {
			ends[a] = n.holds()
		}
	}
	s.in.mu.Unlock()
	for a, held := range changed {
		s.connections.Hold(a, held)
	}
	done = true
	for a, why := range ends {
		done = s.endSession(ctx, srv, a, why, "the path is lost") == nil && done
	}
	return done
}
