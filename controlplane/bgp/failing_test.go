package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// flaky is a BGP server that refuses some changes. It holds what the neighbours
// would have: routes by their NLRI.
type flaky struct {
	held map[string]bool
	// addFails and withdrawFails refuse every change of the kind.
	addFails, withdrawFails bool
}

var errRefused = errors.New("refused")

func (f *flaky) AddPath(_ context.Context, r *api.AddPathRequest) (*api.AddPathResponse, error) {
	if f.addFails {
		return nil, errRefused
	}
	f.held[identity(r.Path.NlriBinary)] = true
	return &api.AddPathResponse{}, nil
}

func (f *flaky) DeletePath(_ context.Context, r *api.DeletePathRequest) error {
	if f.withdrawFails {
		return errRefused
	}
	delete(f.held, identity(r.Path.NlriBinary))
	return nil
}

// identity is an NLRI without its label, which is no part of the key (RFC 9136
// section 3.1).
func identity(nlri []byte) string { return string(nlri[:len(nlri)-3]) }

func (f *flaky) ListPeer(context.Context, *api.ListPeerRequest, func(*api.Peer)) error { return nil }

// has checks the routes that neighbours have: "index prefix" each.
func (f *flaky) has(t *testing.T, s *GoBGP, when string, want ...string) {
	t.Helper()
	var nlris, texts []string
	for n := range f.held {
		nlris = append(nlris, n)
	}
	for _, w := range want {
		var index uint16
		var vni intent.VNI
		var prefix string
		if _, err := fmt.Sscan(w, &index, &vni, &prefix); err != nil {
			t.Fatal(err)
		}
		r := s.out.node
		r.index, r.label, r.prefix = index, vni, key(1, prefix).Prefix
		texts = append(texts, identity(encodeNLRI(r)))
	}
	slices.Sort(nlris)
	slices.Sort(texts)
	if !slices.Equal(nlris, texts) {
		t.Errorf("%s: the neighbours have %q, want %q", when, nlris, texts)
	}
}

func withServer(t *testing.T) (*GoBGP, *flaky) {
	t.Helper()
	s, err := New(testConfig(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f := &flaky{held: map[string]bool{}}
	s.server = f
	return s, f
}

// A route whose distinguisher changes: the old one stays until the new one is
// there, and goes in the end, whatever fails in between.
func TestFailedSteps(t *testing.T) {
	ctx, k := context.Background(), key(1001, "10.0.0.0/24")
	s, f := withServer(t)
	d := s.Policies()
	set := func(index uint16) error {
		row := reconcile.Row[intent.VNI, intent.VRFPolicy]{Key: 1001, Value: intent.VRFPolicy{VNI: 1001, Index: index}}
		return errors.Join(d.Apply(ctx, []reconcile.Row[intent.VNI, intent.VRFPolicy]{row})...)
	}
	listed := func() int { m, _ := d.List(ctx); return len(m) }
	// A policy whose step has failed is listed as the zero value: it may be there in part.
	partly := func() bool { m, _ := d.List(ctx); p, there := m[1001]; return there && p == intent.VRFPolicy{} }
	if err := set(1); err != nil {
		t.Fatal(err)
	}
	s.Update(ctx, []Announcement{{Key: k}}, nil)
	f.has(t, s, "at first", "1 1001 10.0.0.0/24")

	f.addFails = true
	if err := set(2); !errors.Is(err, errRefused) || !partly() {
		t.Errorf("the failure of the route is not the policy's: %v, %d listed", err, listed())
	}
	f.has(t, s, "the new one is refused", "1 1001 10.0.0.0/24")

	f.addFails, f.withdrawFails = false, true
	if err := set(2); !errors.Is(err, errRefused) {
		t.Errorf("the withdrawal's failure: %v", err)
	}
	f.has(t, s, "the withdrawal is refused", "1 1001 10.0.0.0/24", "2 1001 10.0.0.0/24")

	if err := set(3); !errors.Is(err, errRefused) {
		t.Errorf("the withdrawals' failure: %v", err)
	}
	f.has(t, s, "again", "1 1001 10.0.0.0/24", "2 1001 10.0.0.0/24", "3 1001 10.0.0.0/24")

	f.withdrawFails = false
	if err := set(3); err != nil || listed() != 1 || partly() {
		t.Error(err)
	}
	f.has(t, s, "the same again", "3 1001 10.0.0.0/24")

	f.withdrawFails = true
	if failed := s.Update(ctx, nil, []intent.RouteKey{k}); !errors.Is(failed[k], errRefused) {
		t.Errorf("deleting: %v", failed)
	}
	if errs := d.Delete(ctx, []intent.VNI{1001}); len(errs) != 1 || !errors.Is(errs[0], errRefused) || listed() != 1 {
		t.Errorf("deleting the policy: %v", errs)
	}
	f.withdrawFails = false
	s.sendFailed(ctx)
	f.has(t, s, "tried again by itself")
	if errs := d.Delete(ctx, []intent.VNI{1001}); errs != nil || listed() != 0 {
		t.Errorf("deleting the policy: %v", errs)
	}
	if len(s.out.sent)+len(s.out.holder)+len(s.out.former)+len(s.out.failed) != 0 {
		t.Errorf("left over: %+v", s.out)
	}
}

// The driver lists announcements as they were applied.
func TestAnnouncementsAreListedAsApplied(t *testing.T) {
	ctx := context.Background()
	s, _ := withServer(t)
	if err := errors.Join(s.Policies().Apply(ctx, []reconcile.Row[intent.VNI, intent.VRFPolicy]{{Key: 1001, Value: intent.VRFPolicy{VNI: 1001, Index: 1}}})...); err != nil {
		t.Fatal(err)
	}
	d, gateway := s.Announcements(), intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2}}
	want := map[intent.RouteKey]intent.Announcement{}
	for i, text := range []string{"10.0.0.0/24", "10.99.0.1/32", "fd99::1/128"} {
		k := key(1001, text)
		want[k] = intent.Announcement{Key: k, Gateway: gateway, VIPs: i > 0}
	}
	var rows []reconcile.Row[intent.RouteKey, intent.Announcement]
	for k, a := range want {
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Announcement]{Key: k, Value: a})
	}
	if err := errors.Join(d.Apply(ctx, rows)...); err != nil {
		t.Fatal(err)
	}
	if got, err := d.List(ctx); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// The VRF that has an index keeps it, and the announcements of the other wait.
func TestIndexClash(t *testing.T) {
	ctx := context.Background()
	s, f := withServer(t)
	d := s.Policies()
	apply := func(list ...intent.VRFPolicy) map[intent.VNI]error {
		var rows []reconcile.Row[intent.VNI, intent.VRFPolicy]
		for _, p := range list {
			rows = append(rows, reconcile.Row[intent.VNI, intent.VRFPolicy]{Key: p.VNI, Value: p})
		}
		failed := map[intent.VNI]error{}
		for i, err := range d.Apply(ctx, rows) {
			if err != nil {
				failed[rows[i].Key] = err
			}
		}
		return failed
	}
	if failed := apply(intent.VRFPolicy{VNI: 1002, Index: 1}); len(failed) != 0 {
		t.Fatal(failed)
	}
	s.Update(ctx, []Announcement{{Key: key(1002, "10.0.0.0/24")}, {Key: key(1001, "10.0.0.0/24")}}, nil)
	// A lower VNI comes with the index of one in use.
	if failed := apply(intent.VRFPolicy{VNI: 1001, Index: 1}, intent.VRFPolicy{VNI: 1003, Index: 3}); len(failed) != 1 || failed[1001] == nil {
		t.Errorf("clash: %v", failed)
	}
	f.has(t, s, "clash", "1 1002 10.0.0.0/24")
	if list, _ := d.List(ctx); !slices.Equal(slices.Sorted(maps.Keys(list)), []intent.VNI{1001, 1002, 1003}) || list[1001] != (intent.VRFPolicy{}) {
		t.Errorf("listed: %v", list)
	}
	// They exchange their indices, then one goes.
	if failed := apply(intent.VRFPolicy{VNI: 1002, Index: 2}, intent.VRFPolicy{VNI: 1001, Index: 1}); len(failed) != 0 {
		t.Errorf("resolved: %v", failed)
	}
	f.has(t, s, "resolved", "2 1002 10.0.0.0/24", "1 1001 10.0.0.0/24")
	if failed := apply(intent.VRFPolicy{VNI: 1002, Index: 1}, intent.VRFPolicy{VNI: 1001, Index: 2}); len(failed) != 0 {
		t.Errorf("exchanged: %v", failed)
	}
	f.has(t, s, "exchanged", "1 1002 10.0.0.0/24", "2 1001 10.0.0.0/24")
}
