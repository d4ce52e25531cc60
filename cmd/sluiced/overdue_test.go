package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/metadata"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// waiting is a driver whose rows wait until what they wait for is there.
type waiting[K, V comparable] struct {
	reconcile.Unseen[K, V]
	there atomic.Bool
}

func (w *waiting[K, V]) Apply(_ context.Context, rows []reconcile.Row[K, V]) []error {
	if w.there.Load() {
		return nil
	}
	return slices.Repeat([]error{fmt.Errorf("for the port: %w", reconcile.ErrNotReady)}, len(rows))
}

func (w *waiting[K, V]) Delete(context.Context, []K) []error { return nil }

// Rows that wait for longer than the patience make one problem for their table, which names what
// one of them waits for and goes when they are there.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := idleDaemon()
		d.sync(ovn.InSync{SB: true, VSwitch: true, NB: true})
		networks := &waiting[string, intent.MetadataNetwork]{}
		w := tables.NewMetadata(metadata.Drivers(networks, reconcile.ReadOnly(reconcile.Unseen[string, intent.MetadataPort]{})), d.steps.OVNInSync, nil, tables.Options{Status: d.reg, Log: d.log})
		w.Pipeline.Update(func() {
			tables.Of(w, intent.MetadataNetworks).Set(map[string]intent.MetadataNetwork{"red": {}, "blue": {}})
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go func() { _ = w.Pipeline.Run(ctx) }()
		go func() {
			_ = watchOverdue(ctx, d.reg, func(before time.Time) []reconcile.Wait {
				if !d.steps.OVNInSync() {
					return nil
				}
				return w.Pipeline.Waited(before)
			})
		}()
		told := func(what string, wants ...string) {
			t.Helper()
			synctest.Wait()
			problems := d.reg.Problems()
			if len(problems) != len(wants) {
				t.Fatalf("%s: problems %+v", what, problems)
			}
			for i, o := range problems {
				if o.Kind != "table" || o.Key != "metadata-networks" || o.State != status.Warning || o.Reason != reason.Overdue || o.Error != wants[i] {
					t.Errorf("%s: %+v", what, o)
				}
			}
		}
		time.Sleep(overduePatience - time.Millisecond)
		told("a wait within the patience")
		time.Sleep(2*overdueLook + time.Second)
		const text = "2 rows wait for more than 30s, such as blue: for the port: waiting"
		told("a long wait", text)
		d.sync(ovn.InSync{SB: true, NB: true})
		time.Sleep(overdueLook)
		told("while a database is not in sync")
		d.sync(ovn.InSync{SB: true, VSwitch: true})
		time.Sleep(overdueLook)
		told("since it is again: the rows may be in place soon")
		time.Sleep(overdueLook)
		told("and they are not", text)
		networks.there.Store(true)
		time.Sleep(2 * overduePatience)
		told("when the port is there")
	})
}

// The tables of a node are not asked while they wait by order, or for what a component tells.
func TestNodeWaitsByOrder(t *testing.T) {
	d := idleDaemon()
	n := deadNode(d)
	for _, k := range []string{"10.0.0.0/24", "fd00::/64"} {
		key := intent.NewRouteKey(1001, prefix(k))
		n.tables.Pipeline.Update(func() {
			tables.Of(n.tables, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{key: {Key: key}})
		})
		n.tables.Pipeline.Pass(t.Context())
		broken := "sluice-vxlan is another one"
		for _, c := range []struct {
			what     string
			sync     ovn.InSync
			drained  bool
			broken   string
			programs bool
			rows     int
		}{
			{"at work", ovn.InSync{SB: true, VSwitch: true}, false, "", true, 1},
			{"Southbound is away", ovn.InSync{VSwitch: true}, false, "", true, 0},
			{"drained", ovn.InSync{SB: true, VSwitch: true}, true, "", true, 0},
			{"the fabric device is broken", ovn.InSync{SB: true, VSwitch: true}, false, broken, true, 0},
			{"programs of another build", ovn.InSync{SB: true, VSwitch: true}, false, "", false, 0},
			{"at work again", ovn.InSync{SB: true, VSwitch: true}, false, "", true, 1},
		} {
			d.sync(c.sync)
			n.withdrawn.Store(c.drained)
			n.fabricBroken.Store(&c.broken)
			waited := n.waited(time.Now(), c.programs)
			if len(waited) != c.rows || c.rows == 1 && (waited[0].Table != "announcements" || waited[0].Rows != 1 || waited[0].Key != key.String()) {
				t.Errorf("%s: %+v", c.what, waited)
			}
		}
	}
}
