package bgp

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	api "github.com/osrg/gobgp/v3/api"
)

// heldPeers is a BGP server that takes its time to add some.
type heldPeers struct {
	mu    sync.Mutex
	held  map[string]chan struct{}
	asked chan string
	has   []string
}

func (p *heldPeers) AddPeer(_ context.Context, r *api.AddPeerRequest) error {
	a := r.Peer.Conf.NeighborAddress
	if wait := p.held[a]; wait != nil {
		p.asked <- a
		<-wait
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has = append(p.has, a)
	return nil
}

func (p *heldPeers) DeletePeer(_ context.Context, r *api.DeletePeerRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has = slices.DeleteFunc(p.has, func(a string) bool { return a == r.Address })
	return nil
}

func linkSpeaker(t *testing.T) (*GoBGP, *linkNeighbor) {
	t.Helper()
	s, err := New(nodeConfig(1, Neighbor{Interface: "lo", External: true, Families: allFamilies}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, s.links["lo"]
}

// A router that goes from its link while the server still takes it leaves no session
// that nobody follows.
func TestRouterGoesWhileItIsAdded(t *testing.T) {
	s, l := linkSpeaker(t)
	t.Cleanup(func() { s.connections.Close(0) })
	// The server knows them by their handles.
	const first, second, firstHandle, secondHandle = "fe80::1%lo", "fe80::2%lo", "127.179.0.1", "127.179.0.2"
	srv := &heldPeers{held: map[string]chan struct{}{firstHandle: make(chan struct{})}, asked: make(chan string, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.heardRouter(t.Context(), srv, l, netip.MustParseAddr(first))
	}()
	<-srv.asked
	s.in.mu.Lock()
	l.heard = time.Time{} // it has been silent since
	s.in.mu.Unlock()
	s.heardRouter(t.Context(), srv, l, netip.MustParseAddr(second))
	close(srv.held[firstHandle])
	<-done
	if !slices.Equal(srv.has, []string{secondHandle}) {
		t.Errorf("the server has %v", srv.has)
	}
	if n := s.sync[netip.MustParseAddr(second)]; n == nil || !n.added {
		t.Errorf("the second one: %+v", n)
	}
}

// Whoever takes another address each time leaves nothing behind.
func TestStrangersAreForgotten(t *testing.T) {
	s, l := linkSpeaker(t)
	t.Cleanup(func() { s.connections.Close(0) })
	srv := &heldPeers{}
	a := netip.MustParseAddr("fe80::1%lo")
	route, err := encodeUnicast(netip.MustParsePrefix("192.0.2.0/24"), unicastForm{}, false)
	if err != nil {
		t.Fatal(err)
	}
	route.SourceId = "192.0.2.1"
	for range 100 {
		s.heardRouter(t.Context(), srv, l, a)
		s.in.mu.Lock()
		l.heard = time.Time{}
		from := a
		s.in.rib.away[from] = struct{}{}
		s.in.rib.counts(from).received = 1
		for _, withdraw := range []bool{false, true} {
			route.NeighborIp, route.IsWithdraw = from.String(), withdraw
			if err := s.unicastLocked(route); err != nil {
				t.Fatal(err)
			}
		}
		s.in.mu.Unlock()
		a = a.Next()
	}
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	s.forgetStrangersLocked()
	if len(s.in.rib.away) != 100 || len(s.in.rib.neighbors) != 100 {
		t.Errorf("with their routes: %d lost, %d counted", len(s.in.rib.away), len(s.in.rib.neighbors))
	}
	for _, c := range s.in.rib.neighbors {
		c.received = 0
	}
	s.forgetStrangersLocked()
	if len(s.in.rib.away) != 1 || len(s.in.rib.neighbors) != 1 || len(s.unicastIn.counts) != 0 || len(s.ends.last) != 1 || len(s.sync) != 1 {
		t.Errorf("%d lost, %d counted, %d with unicast, %d ends, %d in sync",
			len(s.in.rib.away), len(s.in.rib.neighbors), len(s.unicastIn.counts), len(s.ends.last), len(s.sync))
	}
}

// C2: a router that goes from its link between the time for its session and the session.
func TestRouterGoesBeforeItIsAdded(t *testing.T) {
	s, l := linkSpeaker(t)
	t.Cleanup(func() { s.connections.Close(0) })
	srv := &heldPeers{}
	n := l.config
	n.Address = netip.MustParseAddr("fe80::1%lo")
	s.addNeighbor(t.Context(), srv, n)
	if len(srv.has) != 0 || len(s.retry) != 0 {
		t.Errorf("the server has %v; %d are tried again", srv.has, len(s.retry))
	}
}
