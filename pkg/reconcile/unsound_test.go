package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// parts is a row that takes several writes.
type parts [3]int

// unsound is a driver that fails at random points, after any part of its work.
type unsound struct {
	mu     sync.Mutex
	r      *rand.Rand
	sound  bool
	rows   map[string]parts
	calls  int
	called func() // before each part of the work
	pause  func() // holds a call up
}

var errUnsound = errors.New("cut off")

func (d *unsound) fails() bool { return !d.sound && d.r.IntN(4) == 0 }

func (d *unsound) List(context.Context) (map[string]parts, error) {
	d.pause()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails() {
		return map[string]parts{"nonsense": {1}}, errUnsound
	}
	return maps.Clone(d.rows), nil
}

func (d *unsound) Apply(_ context.Context, rows []Row[string, parts]) []error {
	errs := make([]error, len(rows))
	for i, r := range rows {
		d.step(func() {
			if !d.sound && d.r.IntN(8) == 0 {
				d.rows[r.Key] = parts{} // as a driver does that silences what it could not finish
			}
		})
		for part := range r.Value {
			if errs[i] != nil {
				break
			}
			d.step(func() {
				if d.fails() {
					errs[i] = errUnsound
					return
				}
				there := d.rows[r.Key]
				there[part] = r.Value[part]
				d.rows[r.Key] = there
			})
		}
		d.step(func() { // it is done, and the answer is lost
			if errs[i] == nil && d.fails() {
				errs[i] = errUnsound
			}
		})
	}
	return Results(errs)
}

func (d *unsound) Delete(_ context.Context, keys []string) []error {
	errs := make([]error, len(keys))
	for i, k := range keys {
		d.step(func() {
			if d.fails() {
				d.rows[k] = parts{}
				errs[i] = errUnsound
				return
			}
			delete(d.rows, k)
			if d.fails() {
				errs[i] = errUnsound
			}
		})
	}
	return Results(errs)
}

// step is one part of the work; in between anybody may look.
func (d *unsound) step(do func()) {
	d.pause()
	d.mu.Lock()
	d.calls++
	do()
	d.mu.Unlock()
	d.called()
}

// unsoundPair is a table with an unsound driver and one behind its gate.
type unsoundPair struct {
	t           *testing.T
	what        string
	d, gated    *unsound
	table, last *Table[string, parts]
	p           *Pipeline
}

func newUnsoundPair(t *testing.T, seed uint64, pause func(*rand.Rand)) *unsoundPair {
	u := &unsoundPair{t: t, what: fmt.Sprintf("seed %d", seed)}
	driver := func(n uint64) *unsound {
		d := &unsound{r: rand.New(rand.NewPCG(seed, n)), rows: map[string]parts{}, called: u.look}
		sometimes := rand.New(rand.NewPCG(seed, n+10))
		d.pause = func() { pause(sometimes) }
		return d
	}
	u.d, u.gated = driver(1), driver(2)
	opts := TableOptions[string, parts]{Backoff: time.Nanosecond, MaxBackoff: time.Nanosecond, BatchSize: 3,
		Observe: func(events []Event[string]) {
			u.p.Update(func() {
				for _, e := range events {
					u.last.Touch(e.Key)
				}
			})
		}}
	u.table = NewTable("table", u.d, opts)
	opts.Observe, opts.Gate = nil, func(k string, _ parts) error {
		u.check(k)
		if !u.table.ProgrammedLocked(k) {
			return ErrNotReady
		}
		return nil
	}
	u.last = NewTable("last", u.gated, opts)
	u.p = NewPipeline(PipelineOptions{Log: quiet(), Grace: time.Millisecond}, u.table, u.last)
	return u
}

// check compares what a gate is told of a row with what is there. The pipeline is locked.
func (u *unsoundPair) check(k string) {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	w, wanted := u.table.LookupLocked(k)
	a, there := u.d.rows[k]
	if u.table.ProgrammedLocked(k) && (!wanted || !there || a != w) {
		u.t.Errorf("%s: %s is programmed as %v, there is %v, %t", u.what, k, w, a, there)
	}
	if v, known := u.table.ActualLocked(k); known && (!there || a != v) {
		u.t.Errorf("%s: %s is known to be %v, there is %v, %t", u.what, k, v, a, there)
	}
}

// look checks all keys, from wherever it is called.
func (u *unsoundPair) look() {
	u.p.View(func() {
		for i := range 6 {
			u.check(fmt.Sprint(i))
		}
	})
}

// Wanted values flip to and fro while a driver fails at random points, having done any
// part of its work, and lists or does not. No gate is ever told that a row is programmed
// that is not there, and in the end all is as wanted.
func TestUnsoundDriver(t *testing.T) {
	for seed := range uint64(60) {
		testUnsound(t, seed, func(*rand.Rand) {})
	}
}

func testUnsound(t *testing.T, seed uint64, pause func(*rand.Rand)) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	u := newUnsoundPair(t, seed, pause)
	wanted := map[string]parts{}
	u.p.Update(func() { u.table.Set(nil); u.last.Set(nil) })
	for range 120 {
		k := fmt.Sprint(r.IntN(6))
		switch r.IntN(8) {
		case 0, 1, 2: // of few values, so that what was is wanted again
			v := r.IntN(2)
			wanted[k] = parts{v, 1, v}
		case 3:
			delete(wanted, k)
		case 4:
			u.p.RelistAll()
		default:
			u.p.Pass(t.Context())
			u.look()
			continue
		}
		u.p.Update(func() {
			set, gone := map[string]parts{}, []string{k}
			if v, ok := wanted[k]; ok {
				set[k], gone = v, nil
			}
			u.table.Update(set, gone)
			u.last.Update(set, gone)
		})
	}
	for _, d := range []*unsound{u.d, u.gated} {
		d.mu.Lock()
		d.sound = true
		d.mu.Unlock()
	}
	settled := func() bool {
		for _, d := range []*unsound{u.d, u.gated} {
			d.mu.Lock()
			same := maps.Equal(d.rows, wanted)
			d.mu.Unlock()
			if !same {
				return false
			}
		}
		s, last := u.table.Stats(), u.last.Stats()
		return s.Unknown+s.Pending+s.Failed+last.Unknown+last.Pending+last.Failed == 0
	}
	deadline := time.Now().Add(20 * time.Second)
	for !settled() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: actual %v and %v, wanted %v; %+v, %+v", u.what, u.d.rows, u.gated.rows, wanted, u.table.Stats(), u.last.Stats())
		}
		u.p.Pass(t.Context())
	}
	u.look()
}
