package taps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// feature notes what is asked of it, and fails as often as it has errors.
type feature struct {
	used   bool
	errs   []error
	asked  []string
	ctx    context.Context
	cancel context.CancelFunc
}

func (f *feature) ask(what string) error {
	f.asked = append(f.asked, what)
	if len(f.errs) == 0 {
		return nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return err
}

func (f *feature) Used() bool                   { return f.used }
func (f *feature) Start(context.Context) error  { return f.ask("start") }
func (f *feature) Retire(context.Context) error { return f.ask("retire") }
func (f *feature) Failed(err error)             { f.asked = append(f.asked, err.Error()) }

func (f *feature) Serve(ctx context.Context) error {
	f.asked = append(f.asked, "serve")
	f.cancel()
	<-ctx.Done()
	return ctx.Err()
}

// A feature is started until that succeeds, and serves; one that is not used is retired. What is not
// read yet is no failure, and is tried again sooner.
func TestRun(t *testing.T) {
	refused, early := errors.New("refused"), fmt.Errorf("the local database: %w", reconcile.ErrNotReady)
	for name, tt := range map[string]struct {
		used bool
		errs []error
		want []string
		took time.Duration
	}{
		"used":               {true, nil, []string{"start", "serve"}, 0},
		"used, after errors": {true, []error{refused, early, early}, []string{"start", "refused", "start", "start", "start", "serve"}, Retry + 2*soon},
		"not used":           {false, []error{early, refused}, []string{"retire", "retire", "refused", "retire"}, soon + Retry},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feature{used: tt.used, errs: tt.errs}
			f.ctx, f.cancel = context.WithCancel(t.Context())
			defer f.cancel()
			begin := time.Now()
			if err := Run(f.ctx, f); err != nil || !slices.Equal(f.asked, tt.want) || time.Since(begin) != tt.took {
				t.Errorf("%s: %q after %s, error %v", name, f.asked, time.Since(begin), err)
			}
		})
	}
}

// The end of the context ends the tries.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feature{used: true, errs: slices.Repeat([]error{errors.New("refused")}, 100)}
		ctx, cancel := context.WithTimeout(t.Context(), 2*Retry+time.Second)
		defer cancel()
		if err := Run(ctx, f); err != nil || len(f.asked) != 6 {
			t.Errorf("%q, error %v", f.asked, err)
		}
	})
}

// Devices that are others are told of once, with another number.
func TestSet(t *testing.T) {
	told := 0
	taps := New(func() { told++ }, slog.New(slog.DiscardHandler))
	one := map[string]intent.TapDevice{"tap0": {Name: "tap0", IfIndex: 7}}
	for i, want := range []struct {
		devices map[string]intent.TapDevice
		told    int
		number  uint64
	}{{one, 1, 1}, {one, 1, 1}, {map[string]intent.TapDevice{"tap0": {Name: "tap0", IfIndex: 8}}, 2, 2}, {nil, 3, 3}} {
		taps.Set(want.devices)
		if found := taps.Found(); told != want.told || found.Number != want.number || len(found.Devices) != len(want.devices) || !found.Complete {
			t.Errorf("step %d: told %d times, %+v", i, told, found)
		}
	}
}
