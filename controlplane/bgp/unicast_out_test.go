package bgp

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"testing"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// unicastServer holds the plain prefixes that neighbours would have, and with how
// many attributes.
type unicastServer struct {
	held map[string]int
	fail bool
}

func (u *unicastServer) AddPath(_ context.Context, r *api.AddPathRequest) (*api.AddPathResponse, error) {
	if u.fail {
		return nil, errRefused
	}
	u.held[prefixOf(r.Path)] = len(r.Path.Pattrs)
	return &api.AddPathResponse{}, nil
}

func (u *unicastServer) DeletePath(_ context.Context, r *api.DeletePathRequest) error {
	if u.fail {
		return errRefused
	}
	delete(u.held, prefixOf(r.Path))
	return nil
}

func (u *unicastServer) ListPeer(context.Context, *api.ListPeerRequest, func(*api.Peer)) error {
	return nil
}

func prefixOf(p *api.Path) string {
	var nlri api.IPAddressPrefix
	if err := p.Nlri.UnmarshalTo(&nlri); err != nil {
		return err.Error()
	}
	return nlri.Prefix
}

// Addresses of the default VRF are plain prefixes, beside those of the underlay: each
// table sees its own, a prefix that both want goes with the last, and a drain is said
// of what is only exposed.
func TestExposedAddressesAreUnicast(t *testing.T) {
	s, err := New(nodeConfig(1), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, u := t.Context(), &unicastServer{held: map[string]int{}}
	s.server = u
	exposed, underlay := s.Announcements(), s.UnicastAnnouncements()
	key := func(a string) intent.RouteKey {
		return intent.NewHostKey(intent.DefaultVRF, netip.MustParseAddr(a))
	}
	row := func(a string) reconcile.Row[intent.RouteKey, intent.Announcement] {
		return reconcile.Row[intent.RouteKey, intent.Announcement]{Key: key(a), Value: intent.Announcement{Key: key(a)}}
	}
	const plain, drained = 2, 4 // attributes
	check := func(when string, want map[string]int) {
		t.Helper()
		if n, own := s.Announced(), boolean(want["192.0.2.7"] != 0); n != len(want)-own {
			t.Errorf("%s: a drain has %d routes to take back, of %v", when, n, want)
		}
		if !maps.Equal(u.held, want) {
			t.Errorf("%s: neighbours have %v, want %v", when, u.held, want)
		}
	}
	both := netip.MustParsePrefix("192.0.2.7/32")
	errs := underlay.Apply(ctx, []reconcile.Row[netip.Prefix, intent.UnderlayAnnouncement]{{Key: both, Value: intent.UnderlayAnnouncement{Prefix: both}}})
	errs = append(errs, exposed.Apply(ctx, []reconcile.Row[intent.RouteKey, intent.Announcement]{row("192.0.2.7"), row("203.0.113.1"), row("2001:db8::1")})...)
	if errs != nil {
		t.Fatal(errs)
	}
	check("announced", map[string]int{"192.0.2.7": plain, "203.0.113.1": plain, "2001:db8::1": plain})
	if rows, err := exposed.List(ctx); err != nil || len(rows) != 3 {
		t.Errorf("the table of announcements has %v, %v", rows, err)
	}
	if rows, err := underlay.List(ctx); err != nil || len(rows) != 1 {
		t.Errorf("the table of the underlay has %v, %v", rows, err)
	}
	if err := s.GracefulShutdown(ctx, true); err != nil {
		t.Fatal(err)
	}
	check("drained", map[string]int{"192.0.2.7": plain, "203.0.113.1": drained, "2001:db8::1": drained})
	if err := s.GracefulShutdown(ctx, false); err != nil {
		t.Fatal(err)
	}
	check("in service again", map[string]int{"192.0.2.7": plain, "203.0.113.1": plain, "2001:db8::1": plain})
	if errs := exposed.Delete(ctx, []intent.RouteKey{key("192.0.2.7"), key("2001:db8::1")}); errs != nil {
		t.Fatal(errs)
	}
	check("withdrawn", map[string]int{"192.0.2.7": plain, "203.0.113.1": plain})
	if errs := underlay.Delete(ctx, []netip.Prefix{both}); errs != nil {
		t.Fatal(errs)
	}
	check("withdrawn by both", map[string]int{"203.0.113.1": plain})
	u.fail = true
	if errs := exposed.Delete(ctx, []intent.RouteKey{key("203.0.113.1")}); len(errs) != 1 || errs[0] == nil || s.Announced() != 1 {
		t.Errorf("a withdrawal that is refused: %v, %d announced", errs, s.Announced())
	}
	errs = exposed.Apply(ctx, []reconcile.Row[intent.RouteKey, intent.Announcement]{row("203.0.113.1"), row("203.0.113.2")})
	if len(errs) != 2 || errs[0] != nil || errs[1] == nil {
		t.Errorf("refused: %v", errs)
	}
	if rows, _ := exposed.List(ctx); len(rows) != 2 || rows[key("203.0.113.2")] != (intent.Announcement{}) {
		t.Errorf("listed as announced although it was refused: %v", rows)
	}
}
