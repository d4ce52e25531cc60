package bgp

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	api "github.com/osrg/gobgp/v3/api"
)

type listing struct {
	paths
	asked []string
}

func (l *listing) ListPeer(_ context.Context, r *api.ListPeerRequest, fn func(*api.Peer)) error {
	l.asked = append(l.asked, r.GetAddress())
	fn(&api.Peer{State: &api.PeerState{Messages: &api.Messages{Received: &api.Message{Update: 7}, Sent: &api.Message{}}}})
	return nil
}

// The server's list of neighbours reads what a session under negotiation writes.
func TestStatusAsksEstablishedOnly(t *testing.T) {
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::2")
	s, err := New(Config{
		ASN: 64512, RouterID: netip.MustParseAddr("192.0.2.9"), VTEP4: netip.MustParseAddr("192.0.2.9"), RouterMAC: RouterMAC("a"),
		Neighbors: []Neighbor{{Address: one, ASN: 64512}, {Address: two, ASN: 64512}},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := &listing{}
	s.server = server
	tell := func(a netip.Addr, state api.PeerState_SessionState) {
		s.event(&api.WatchEventResponse{Event: &api.WatchEventResponse_Peer{Peer: &api.WatchEventResponse_PeerEvent{
			Peer: &api.Peer{State: &api.PeerState{NeighborAddress: a.String(), SessionState: state, PeerAsn: 64512}},
		}}})
	}
	status := func() map[netip.Addr]NeighborStatus {
		st, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := map[netip.Addr]NeighborStatus{}
		for _, n := range st.Neighbors {
			out[n.Address] = n
		}
		return out
	}
	tell(one, api.PeerState_ESTABLISHED)
	tell(two, api.PeerState_OPENSENT)
	got := status()
	if len(server.asked) != 1 || server.asked[0] != one.String() {
		t.Errorf("the server was asked for %v, want only %v", server.asked, one)
	}
	if n := got[one]; n.State != stateEstablished || n.MessagesIn != 7 || n.Since.IsZero() {
		t.Errorf("%v is %+v", one, n)
	}
	if n := got[two]; n.State != "opensent" || !n.Since.IsZero() {
		t.Errorf("%v is %+v", two, n)
	}
	tell(one, api.PeerState_IDLE)
	if n := status()[one]; n.State != "idle" || n.MessagesIn != 7 || n.Flaps != 1 || len(server.asked) != 1 {
		t.Errorf("after its end %v is %+v; asked %v", one, n, server.asked)
	}
}

// The status says whether the server dials.
func TestDialsIsTold(t *testing.T) {
	s, err := New(nodeConfig(1), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, dials := range []bool{false, true} {
		s.dials = dials
		if st, err := s.Status(t.Context()); err != nil || st.Dials != dials {
			t.Errorf("dials: %t, %v", st.Dials, err)
		}
	}
}
