package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// hanging is a driver whose calls hang while it is held up.
type hanging struct {
	*memory
	held    atomic.Pointer[chan struct{}]
	running atomic.Int32
	most    atomic.Int32
	hung    atomic.Int32
}

func newHanging(name string, journal *[]string) *hanging {
	return &hanging{memory: newMemory(name, journal)}
}

// hold has calls hang until what it returns is called.
func (h *hanging) hold() (release func()) {
	c := make(chan struct{})
	h.held.Store(&c)
	return func() { h.held.Store(nil); close(c) }
}

func (h *hanging) call(ctx context.Context) error {
	h.most.Store(max(h.most.Load(), h.running.Add(1)))
	defer h.running.Add(-1)
	if c := h.held.Load(); c != nil {
		h.hung.Add(1)
		select {
		case <-*c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (h *hanging) List(ctx context.Context) (map[string]int, error) {
	if err := h.call(ctx); err != nil {
		return nil, err
	}
	return h.memory.List(ctx)
}

func (h *hanging) Apply(ctx context.Context, rows []Row[string, int]) []error {
	if err := h.call(ctx); err != nil {
		return slices.Repeat([]error{err}, len(rows))
	}
	return h.memory.Apply(ctx, rows)
}

func (h *hanging) Delete(ctx context.Context, keys []string) []error {
	if err := h.call(ctx); err != nil {
		return slices.Repeat([]error{err}, len(keys))
	}
	return h.memory.Delete(ctx, keys)
}

// patientGrace is what a call of a driver that does not hang takes on no machine, however busy.
const patientGrace = 50 * time.Millisecond

// three are tables in order, of which the one in the middle hangs; the others' rows wait for
// rows of it of the same key alone.
type three struct {
	journal             []string
	first, last         *memory
	middle              *hanging
	tfirst, tmid, tlast *Table[string, int]
	p                   *Pipeline
}

func newThree() *three {
	h := &three{}
	h.first, h.middle, h.last = newMemory("first", &h.journal), newHanging("middle", &h.journal), newMemory("last", &h.journal)
	opts := TableOptions[string, int]{Behind: func(late Stage, _ bool) func(string, int) bool {
		return func(k string, _ int) (waits bool) {
			h.tmid.EachPendingLocked(func(other string, _ int) { waits = waits || k == other })
			return waits || late != Stage(h.tmid)
		}
	}}
	h.tfirst = NewTable("first", h.first, opts)
	h.tmid = NewTable("middle", h.middle, TableOptions[string, int]{})
	h.tlast = NewTable("last", h.last, opts)
	h.p = NewPipeline(PipelineOptions{Log: quiet(), Grace: patientGrace}, h.tfirst, h.tmid, h.tlast)
	return h
}

func (h *three) set(middle map[string]int, others map[string]int) {
	h.p.Update(func() { h.tfirst.Set(others); h.tmid.Set(middle); h.tlast.Set(others) })
}

// place has rows wanted, and makes passes until they are there: a busy machine may take two.
func (h *three) place(t *testing.T, middle, others map[string]int) {
	t.Helper()
	h.set(middle, others)
	await(t, h.p, "all is as wanted", func() bool {
		for _, tab := range []*Table[string, int]{h.tfirst, h.tmid, h.tlast} {
			if s := tab.Stats(); s.Actual != s.Wanted || !tab.Settled() {
				return false
			}
		}
		return true
	})
}

// await makes passes until something is so.
func await(t *testing.T, p *Pipeline, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		p.Pass(t.Context())
	}
}

// While a call of one driver hangs, rows of all other tables come and go that have nothing to
// do with it. Its result is used when it comes.
func TestHungDriverDelaysNoOther(t *testing.T) {
	h := newThree()
	h.place(t, map[string]int{"x": 1}, map[string]int{"a": 1})
	release := h.middle.hold()
	h.set(map[string]int{"x": 2}, map[string]int{"b": 1})
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"b": 1}) || !maps.Equal(h.last.rows, map[string]int{"b": 1}) {
		t.Errorf("first %v, last %v", h.first.rows, h.last.rows)
	}
	h.p.View(func() {
		if _, known := h.tmid.ActualLocked("x"); known || h.tmid.ProgrammedLocked("x") {
			t.Error("a row is known that is being written")
		}
		for v, want := range []bool{false, true, true} {
			if may := h.tmid.MayBeLocked("x", func(is int) bool { return is == v }); may != want {
				t.Errorf("there may be %d: %t", v, may)
			}
		}
	})
	if h.tmid.Busy().IsZero() || !h.tlast.Busy().IsZero() {
		t.Error("it is not told which driver hangs")
	}
	began := time.Now()
	h.set(map[string]int{"x": 3}, map[string]int{"c": 1})
	h.p.Pass(t.Context())
	t.Logf("a pass beside a call that hangs took %s", time.Since(began))
	if h.middle.hung.Load() != 1 {
		t.Errorf("%d calls hang", h.middle.hung.Load())
	}
	release()
	await(t, h.p, "x is 3", func() bool { ok, _ := h.tmid.State("x"); return ok })
	if h.middle.rows["x"] != 3 || h.middle.most.Load() != 1 || !maps.Equal(h.last.rows, map[string]int{"c": 1}) {
		t.Errorf("%v, %d calls at once, last %v", h.middle.rows, h.middle.most.Load(), h.last.rows)
	}
}

// Nor does a driver that hangs when it is read back.
func TestHungListDelaysNoOther(t *testing.T) {
	h := newThree()
	h.place(t, map[string]int{"x": 1}, map[string]int{"a": 1})
	release := h.middle.hold()
	h.p.RelistAll()
	h.set(map[string]int{"x": 1}, map[string]int{"b": 1})
	h.p.Pass(t.Context())
	if ok, err := h.tmid.State("x"); !ok {
		t.Errorf("a row is not known while it is read back: %v", err)
	}
	if !maps.Equal(h.first.rows, map[string]int{"b": 1}) || !maps.Equal(h.last.rows, map[string]int{"b": 1}) {
		t.Errorf("first %v, last %v", h.first.rows, h.last.rows)
	}
	release()
}

// Where rows belong together the order stays: what goes does not overtake what comes, and
// what refers goes first.
func TestOrderBesideAHungDriver(t *testing.T) {
	h := newThree()
	h.place(t, map[string]int{"x": 1}, map[string]int{"x": 1, "a": 1})
	release := h.middle.hold()
	h.set(nil, nil) // last/x goes, then middle/x, then first/x
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"x": 1}) || len(h.last.rows) > 0 {
		t.Errorf("first %v, last %v", h.first.rows, h.last.rows)
	}
	release()
	await(t, h.p, "all are gone", func() bool { rows, _ := h.first.List(t.Context()); return len(rows) == 0 })

	h.place(t, map[string]int{"y": 1}, map[string]int{"y": 1})
	release = h.middle.hold()
	h.set(map[string]int{"y": 2, "z": 1}, map[string]int{"z": 1}) // last/z comes after middle/z, and then last/y goes
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"y": 1, "z": 1}) || !maps.Equal(h.last.rows, map[string]int{"y": 1}) {
		t.Errorf("first %v, last %v", h.first.rows, h.last.rows)
	}
	release()
	await(t, h.p, "y is gone", func() bool { rows, _ := h.last.List(t.Context()); return maps.Equal(rows, map[string]int{"z": 1}) })
	want := []string{"+first/z", "+middle/y", "+middle/z", "+last/z", "-last/y", "-first/y"}
	got := h.journal[len(h.journal)-len(want):]
	slices.Sort(got[1:3])
	if !slices.Equal(got, want) {
		t.Errorf("journal %v, want %v", got, want)
	}
}

// Without a word of what belongs together all of it does.
func TestNothingOvertakesByDefault(t *testing.T) {
	h := newThree()
	h.tfirst.opts.Behind = nil
	h.place(t, nil, map[string]int{"a": 1})
	defer h.middle.hold()()
	h.set(map[string]int{"x": 1}, map[string]int{"b": 1})
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"a": 1, "b": 1}) || !maps.Equal(h.last.rows, map[string]int{"b": 1}) {
		t.Errorf("first %v, last %v", h.first.rows, h.last.rows)
	}
}

// When the process ends during a call nothing becomes unknown, nobody is told of anything,
// and the call is waited for.
func TestEndDuringACall(t *testing.T) {
	h := newThree()
	var events atomic.Int32
	h.tmid.opts.Observe = func(e []Event[string]) { events.Add(int32(len(e))) }
	h.place(t, map[string]int{"x": 1, "y": 1}, nil)
	h.middle.hold()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.p.Run(ctx) }()
	before := events.Load()
	h.set(map[string]int{"x": 2}, nil)
	for h.middle.hung.Load() == 0 || h.tmid.Busy().IsZero() {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if h.middle.running.Load() != 0 {
		t.Error("a call runs still")
	}
	if s := h.tmid.Stats(); s.Unknown+s.Failed > 0 || events.Load() != before {
		t.Errorf("%+v, %d events", s, events.Load()-before)
	}
	h.p.View(func() {
		if v, known := h.tmid.ActualLocked("x"); !known || v != 1 {
			t.Errorf("x is known: %t, %d", known, v)
		}
	})
}

// A difference is told of all tables but the one that cannot be read.
func TestCompareBesideAHungDriver(t *testing.T) {
	h := newThree()
	h.middle.listErr = errors.New("away")
	h.set(map[string]int{"x": 1}, map[string]int{"a": 1})
	changes, err := h.p.Compare(t.Context())
	if err == nil || len(changes) != 2 {
		t.Errorf("%+v, %v", changes, err)
	}
	h.middle.listErr = nil
	h.p.Pass(t.Context())
	release := h.middle.hold()
	h.p.Update(h.tmid.Relist)
	h.p.Pass(t.Context())
	if _, err = h.p.Compare(t.Context()); err == nil {
		t.Error("a driver that hangs was read")
	}
	release()
	if changes, err := h.p.Compare(t.Context()); err != nil || len(changes) > 0 {
		t.Errorf("%+v, %v", changes, err)
	}
}

// As TestUnsoundDriver, and calls take longer than anybody waits, too.
func TestUnsoundDriverThatHangs(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testUnsound(t, seed, func(r *rand.Rand) {
				if r.IntN(40) == 0 {
					time.Sleep(3 * time.Millisecond)
				}
			})
		})
	}
}
