package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	d, err := newFollowing(cfg, slog.New(slog.DiscardHandler), vrfindex.Open, nil, "")
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
	d.takeOVN(event(allInSync))
	if f := <-d.facts; !f.gateway || f.systemID != "a1" {
		t.Fatalf("facts %+v", f)
	}
	d.cfg.OVN.SystemID = ""
	d.takeOVN(event(ovn.InSync{VSwitch: true, NB: true}))
	select {
	case f := <-d.facts:
		t.Errorf("facts %+v", f)
	default:
	}
	if d.latest.systemID != "a1" {
		t.Errorf("latest %+v", d.latest)
	}
}

// Indices of VRFs that went while no sluiced ran are freed when all is known.
func TestIndicesOfVRFsThatAreGoneAreFreed(t *testing.T) {
	for _, retain := range []bool{true, false} {
		d := followingDaemon(t, nil)
		path := filepath.Join(d.cfg.StateDir, "vrf-indices.json")
		var err error
		if d.indices, err = vrfindex.Open(path, map[intent.VNI]uint16{1001: 7}); err != nil {
			t.Fatal(err)
		}
		d.retain = retain
		d.takeOVN(event(ovn.InSync{SB: true, VSwitch: true}))
		if err := d.indices.Commit(); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), `"indices":{"1001":7}`) {
			t.Errorf("freed before all was known: %s, %v", b, err)
		}
		d.takeOVN(event(allInSync))
		if err := d.indices.Commit(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if freed := err == nil && strings.Contains(string(b), `"indices":{}`); freed != retain {
			t.Errorf("retain %v: %s, %v", retain, b, err)
		}
	}
}

// While the state directory's disk hangs, events of OVN are taken, and the daemon is alive.
func TestEventsBesideAHungDisk(t *testing.T) {
	d := followingDaemon(t, nil)
	hung, goOn := make(chan struct{}), make(chan struct{})
	hang := sync.OnceFunc(func() { close(hung) })
	d.indices.WriteBy(func(string, []byte) error { hang(); <-goOn; return nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.indices.Run(ctx, d.indicesKept) }()
	if _, err := d.indices.Index(1001); err != nil {
		t.Fatal(err)
	}
	<-hung
	done := make(chan error)
	go func() {
		d.takeOVN(event(allInSync)) // with an index to be freed
		_, err := d.indices.Index(1002)
		done <- errors.Join(err, d.alive(ctx))
	}()
	select {
	case err := <-done:
		if err != nil || d.indices.Kept(1002) {
			t.Errorf("%v, kept: %t", err, d.indices.Kept(1002))
		}
	case <-time.After(30 * time.Second):
		t.Fatal("an event waits for the disk")
	}
	stop()
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatCameIntoSyncIsToldAfterTheChange(t *testing.T) {
	d := idleDaemon()
	if s := d.lessInSync(allInSync); s.SB || s.VSwitch || s.NB {
		t.Errorf("at first: %+v", s)
	}
	d.inSyncNow.Store(&ovn.InSync{VSwitch: true, NB: true})
	if s := d.lessInSync(ovn.InSync{SB: true, VSwitch: true}); s.SB || !s.VSwitch || s.NB {
		t.Errorf("SB came, NB went: %+v", s)
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
