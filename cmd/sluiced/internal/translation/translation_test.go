package translation

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vrfindex"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var allInSync = ovn.InSync{SB: true, VSwitch: true, NB: true}

func event(s ovn.InSync) ovn.Event {
	return ovn.Event{Rows: ovn.NewRows(), Dirty: ovn.Dirty{All: true}, InSync: s}
}

// start makes a translation whose VRF indices are in a file, with some of them seeded.
func start(t *testing.T, retain bool, seed map[intent.VNI]uint16) (tr *Translation, indices *vrfindex.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "vrf-indices.json")
	log := slog.New(slog.DiscardHandler)
	reg := status.NewRegistry(log)
	indices, err := OpenIndices(vrfindex.Open, filepath.Dir(path), seed, reg)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Retain: retain}, indices, reg, log), indices, path
}

// Indices of VRFs that went while no sluiced ran are freed when all is known.
func TestIndicesOfVRFsThatAreGoneAreFreed(t *testing.T) {
	for _, retain := range []bool{true, false} {
		tr, indices, path := start(t, retain, map[intent.VNI]uint16{1001: 7})
		tr.Take(event(ovn.InSync{SB: true, VSwitch: true}))
		if err := indices.Commit(); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), `"indices":{"1001":7}`) {
			t.Errorf("freed before all was known: %s, %v", b, err)
		}
		tr.Take(event(allInSync))
		if err := indices.Commit(); err != nil {
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
	tr, indices, _ := start(t, true, nil)
	hung, goOn := make(chan struct{}), make(chan struct{})
	hang := sync.OnceFunc(func() { close(hung) })
	indices.WriteBy(func(string, []byte) error { hang(); <-goOn; return nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- tr.RunIndices(ctx) }()
	if _, err := indices.Index(1001); err != nil {
		t.Fatal(err)
	}
	<-hung
	done := make(chan error)
	go func() {
		tr.Take(event(allInSync)) // with an index to be freed
		_, err := indices.Index(1002)
		done <- errors.Join(err, tr.Alive(ctx))
	}()
	select {
	case err := <-done:
		if err != nil || indices.Kept(1002) {
			t.Errorf("%v, kept: %t", err, indices.Kept(1002))
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

// A daemon that is stuck says so, and each question leaves nothing behind.
func TestStuckIsNotAlive(t *testing.T) {
	tr, _, _ := start(t, false, nil)
	if err := tr.Alive(t.Context()); err != nil {
		t.Errorf("at rest: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr.turn.Lock()
	defer tr.turn.Unlock()
	before := runtime.NumGoroutine()
	for range 10 {
		if err := tr.Alive(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("stuck: %v", err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before the questions", after, before)
	}
}

// calls notes who is called, in which order, and what is in sync then.
type calls struct {
	tr  *Translation
	log []string
}

func (c *calls) add(what string) {
	s, _ := c.tr.InSync()
	if s.SB {
		what += " SB"
	}
	if s.NB {
		what += " NB"
	}
	c.log = append(c.log, what)
}

func (c *calls) Begin(wanted.Set, []netip.Addr) { c.add("begin") }
func (c *calls) Step(Step)                      { c.add("step") }
func (c *calls) Synced()                        { c.add("synced") }
func (c *calls) ChangePaths(wanted.Difference)  { c.add("paths") }
func (c *calls) IndicesKept()                   { c.add("kept") }
func (c *calls) Take(ovn.Event)                 { c.add("take") }

// What is not in sync any more is told before the change, and what has come into sync after it.
// The gateway is first, and hears of what came into sync when all others have taken the event.
func TestOrderOfAnEvent(t *testing.T) {
	tr, _, _ := start(t, false, nil)
	c := &calls{tr: tr}
	tr.Consume(c)
	tr.Take(event(ovn.InSync{VSwitch: true, NB: true}))
	tr.Attach(c)
	tr.Take(event(ovn.InSync{VSwitch: true, SB: true}))
	tr.SetFacts(c, evpn.PathFacts{})
	tr.indicesKept(nil)
	tr.Detach()
	tr.SetFacts(c, evpn.PathFacts{})
	tr.indicesKept(nil)
	tr.Take(event(allInSync))
	if want := []string{"take NB", "begin NB", "step", "take SB", "synced SB", "paths SB", "kept SB", "take SB NB"}; !slices.Equal(c.log, want) {
		t.Errorf("%q", c.log)
	}
}
