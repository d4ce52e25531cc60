package bgp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/controlplane/underlay"
)

// failing is a BGP server that fails to reset a session so often, and calls meanwhile when it is
// to add a neighbour.
type failing struct {
	peers
	failures  int
	asked     []string
	meanwhile func()
}

func (f *failing) ResetPeer(_ context.Context, r *api.ResetPeerRequest) error {
	f.asked = append(f.asked, r.Communication)
	if f.failures--; f.failures >= 0 {
		return errors.New("not now")
	}
	return nil
}

func (f *failing) AddPeer(context.Context, *api.AddPeerRequest) error {
	f.meanwhile()
	return nil
}

func heldSpeaker(t *testing.T, list ...Neighbor) *GoBGP {
	t.Helper()
	s, err := New(nodeConfig(1, list...), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.connections.Close(0) })
	return s
}

// A link that comes back while the server adds the neighbour lets it go.
func TestLinkComesBackDuringAddPeer(t *testing.T) {
	a := netip.MustParseAddr("fe80::1%lo")
	n := Neighbor{Address: a, ASN: 65001}
	s := heldSpeaker(t, n)
	s.LinksChanged([]underlay.Link{{Name: "lo", Index: 1}})
	srv := &failing{}
	srv.meanwhile = func() {
		s.LinksChanged([]underlay.Link{{Name: "lo", Index: 1, Carrier: true}})
		<-s.paths.wake
		s.endLost(t.Context(), srv)
		if !s.sync[a].disabled {
			t.Error("the neighbour was not held")
		}
	}
	s.addNeighbor(t.Context(), srv, n)
	select {
	case <-s.paths.wake:
	default:
		t.Fatal("nobody is woken")
	}
	if s.endLost(t.Context(), srv); s.sync[a].disabled {
		t.Error("the neighbour is still held")
	}
}

// A session whose link or path was lost ends although the server fails at first, but not when
// it is another one by then.
func TestSessionsThatCouldNotBeEnded(t *testing.T) {
	link, path := netip.MustParseAddr("fe80::1%lo"), netip.MustParseAddr("2001:db8::1")
	for _, again := range []bool{false, true} {
		s := heldSpeaker(t, Neighbor{Address: link, ASN: 65001}, Neighbor{Address: path, ASN: 65001, BFD: BFDFollow})
		up := []underlay.Link{{Name: "lo", Index: 1, Carrier: true}}
		s.LinksChanged(up)
		s.sync[link].established, s.sync[path].established = true, true
		s.LinksChanged([]underlay.Link{})
		s.LinksChanged(up) // the link is back: only what is kept ends the session
		s.PathChanged(path, bfd.PathLost)
		srv := &failing{failures: 2}
		if s.endLost(t.Context(), srv) {
			t.Error("all is done although the server fails")
		}
		want := []string{"BFD: path lost", "BFD: path lost", "the link is down", "the link is down"}
		if again {
			want = []string{"BFD: path lost", "the link is down"}
			for _, a := range []netip.Addr{link, path} {
				for _, state := range []api.PeerState_SessionState{api.PeerState_IDLE, api.PeerState_ESTABLISHED} {
					s.in.mu.Lock()
					s.sessionLocked(&api.WatchEventResponse_PeerEvent{Peer: &api.Peer{State: &api.PeerState{NeighborAddress: a.String(), SessionState: state}}})
					s.in.mu.Unlock()
				}
			}
		}
		for range 2 {
			if !s.endLost(t.Context(), srv) {
				t.Error("not all is done")
			}
		}
		if slices.Sort(srv.asked); !slices.Equal(srv.asked, want) {
			t.Errorf("another session: %v: the server was asked %q", again, srv.asked)
		}
	}
}
