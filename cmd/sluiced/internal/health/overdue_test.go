package health

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/metadata"

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
		log := slog.New(slog.DiscardHandler)
		reg, inSync := status.NewRegistry(log), atomic.Bool{}
		inSync.Store(true)
		networks := &waiting[string, intent.MetadataNetwork]{}
		w := tables.NewMetadata(metadata.Drivers(networks, reconcile.ReadOnly(reconcile.Unseen[string, intent.MetadataPort]{})), inSync.Load, nil, tables.Options{Status: reg, Log: log})
		w.Pipeline.Update(func() {
			tables.Of(w, intent.MetadataNetworks).Set(map[string]intent.MetadataNetwork{"red": {}, "blue": {}})
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go func() { _ = w.Pipeline.Run(ctx) }()
		go func() {
			_ = WatchOverdue(ctx, reg, func(before time.Time) []reconcile.Wait {
				if !inSync.Load() {
					return nil
				}
				return w.Pipeline.Waited(before)
			})
		}()
		told := func(what string, wants ...string) {
			t.Helper()
			synctest.Wait()
			problems := reg.Problems()
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
		inSync.Store(false)
		time.Sleep(overdueLook)
		told("while a database is not in sync")
		inSync.Store(true)
		time.Sleep(overdueLook)
		told("since it is again: the rows may be in place soon")
		time.Sleep(overdueLook)
		told("and they are not", text)
		networks.there.Store(true)
		time.Sleep(2 * overduePatience)
		told("when the port is there")
	})
}
