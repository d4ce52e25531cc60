package moves

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

func TestPendingVRFs(t *testing.T) {
	var p Pending
	if p.Has(1) {
		t.Error("at first")
	}
	p.Become(map[intent.VNI]intent.VRF{1: {}})
	p.Widen(map[intent.VNI]intent.VRF{2: {}})
	if !p.Has(1) || !p.Has(2) || p.Has(3) {
		t.Errorf("widened: %v", p.all())
	}
	p.Become(map[intent.VNI]intent.VRF{2: {}})
	if p.Has(1) || !p.Has(2) {
		t.Errorf("then: %v", p.all())
	}
}

func TestAnnounceDelayIsObservedOnce(t *testing.T) {
	var d Delays
	key := func(s string) intent.RouteKey { return intent.NewRouteKey(1001, netip.MustParsePrefix(s)) }
	a, b := key("10.0.0.0/24"), key("fd00::/64")
	set := func(keys ...intent.RouteKey) (out wanted.Delta[intent.RouteKey, intent.Announcement]) {
		out.Set = map[intent.RouteKey]intent.Announcement{}
		for _, k := range keys {
			out.Set[k] = intent.Announcement{Key: k}
		}
		return out
	}
	now := time.Now()
	d.Changed(set(a, b), Asked{1, now.Add(-time.Hour)})
	d.Changed(set(a), Asked{2, now})
	d.Changed(wanted.Delta[intent.RouteKey, intent.Announcement]{Delete: []intent.RouteKey{b}}, Asked{3, now})
	var seen []time.Duration
	tell := func(events ...reconcile.Event[intent.RouteKey]) {
		d.Announced(events, func(_ intent.RouteKey, asked Asked) { seen = append(seen, time.Since(asked.Arrived)) })
	}
	tell(reconcile.Event[intent.RouteKey]{Key: a, Err: reconcile.ErrNotReady})
	tell(reconcile.Event[intent.RouteKey]{Key: a, Programmed: true}, reconcile.Event[intent.RouteKey]{Key: b, Programmed: true})
	tell(reconcile.Event[intent.RouteKey]{Key: a, Programmed: true})
	if len(seen) != 1 || seen[0] < time.Hour || len(d.since) != 0 {
		t.Errorf("delays %v, waiting %v", seen, d.since)
	}
}
