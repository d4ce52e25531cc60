package main

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/evpn/vrfindex"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// followingDaemon is a daemon that is told events by the test.
func followingDaemon(t *testing.T, change func(*config.Config)) *daemon {
	t.Helper()
	cfg := config.Default()
	dir := t.TempDir()
	cfg.StateDir, cfg.OVN.VSwitch, cfg.Dataplane.BPFFS = dir, "unix:"+filepath.Join(dir, "db.sock"), filepath.Join(dir, "bpffs")
	if change != nil {
		change(cfg)
	}
	d, err := newFollowing(cfg, slog.New(slog.DiscardHandler), following{indices: vrfindex.Open})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var allInSync = ovn.InSync{SB: true, VSwitch: true, NB: true}

func event(s ovn.InSync) ovn.Event {
	return ovn.Event{Rows: ovn.NewRows(), Dirty: ovn.Dirty{All: true}, InSync: s}
}

// A system-id that is away for a moment makes the node nobody else.
func TestFactsOfRowsThatAreNotAllThereAreNoFacts(t *testing.T) {
	d := followingDaemon(t, func(c *config.Config) { c.OVN.SystemID, c.Roles = "a1", config.RoleGateway })
	d.steps.Take(event(allInSync))
	if f := <-d.facts; !f.gateway || f.systemID != "a1" {
		t.Fatalf("facts %+v", f)
	}
	d.cfg.OVN.SystemID = ""
	d.steps.Take(event(ovn.InSync{VSwitch: true, NB: true}))
	select {
	case f := <-d.facts:
		t.Errorf("facts %+v", f)
	default:
	}
	if d.latest.systemID != "a1" {
		t.Errorf("latest %+v", d.latest)
	}
}

func TestPendingVRFs(t *testing.T) {
	var p pendingVRFs
	if p.has(1) {
		t.Error("at first")
	}
	p.become(map[intent.VNI]intent.VRF{1: {}})
	p.widen(map[intent.VNI]intent.VRF{2: {}})
	if !p.has(1) || !p.has(2) || p.has(3) {
		t.Errorf("widened: %v", p.all())
	}
	p.become(map[intent.VNI]intent.VRF{2: {}})
	if p.has(1) || !p.has(2) {
		t.Errorf("then: %v", p.all())
	}
}

func TestAnnounceDelayIsObservedOnce(t *testing.T) {
	var d delays
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
	d.changed(set(a, b), now.Add(-time.Hour))
	d.changed(set(a), now)
	d.changed(wanted.Delta[intent.RouteKey, intent.Announcement]{Delete: []intent.RouteKey{b}}, now)
	var seen []time.Duration
	tell := func(events ...reconcile.Event[intent.RouteKey]) {
		d.announced(events, func(delay time.Duration) { seen = append(seen, delay) })
	}
	tell(reconcile.Event[intent.RouteKey]{Key: a, Err: reconcile.ErrNotReady})
	tell(reconcile.Event[intent.RouteKey]{Key: a, Programmed: true}, reconcile.Event[intent.RouteKey]{Key: b, Programmed: true})
	tell(reconcile.Event[intent.RouteKey]{Key: a, Programmed: true})
	if len(seen) != 1 || seen[0] < time.Hour || len(d.since) != 0 {
		t.Errorf("delays %v, waiting %v", seen, d.since)
	}
}
