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

// beside is a driver during whose calls something else happens.
type beside struct {
	*memory
	during func()
}

func (d *beside) Apply(ctx context.Context, rows []Row[string, int]) []error {
	d.during()
	defer d.during()
	return d.memory.Apply(ctx, rows)
}

func (d *beside) Delete(ctx context.Context, keys []string) []error {
	d.during()
	defer d.during()
	return d.memory.Delete(ctx, keys)
}

var errShut = fmt.Errorf("%w for the gate", ErrNotReady)

// atRest makes passes until none is due and no call of a driver runs.
func atRest(t *testing.T, p *Pipeline) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		drain(p)
		next := p.Pass(t.Context())
		p.calls.Wait()
		if len(p.kick) == 0 && next == idle {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no rest: a pass is due in %s", next)
		}
	}
}

// twenty are as many rows of a table with a gate, in batches of four.
func twenty(shut *bool, during func()) (d *beside, tab *Table[string, int], p *Pipeline, rows map[string]int) {
	d = &beside{newMemory("a", nil), during}
	tab = NewTable("a", d, TableOptions[string, int]{BatchSize: 4, Gate: func(string, int) error {
		if *shut {
			return errShut
		}
		return nil
	}})
	rows = map[string]int{}
	for i := range 20 {
		rows[fmt.Sprint(i)] = 1
	}
	return d, tab, NewPipeline(PipelineOptions{Log: quiet()}, tab), rows
}

// A gate that closes while rows are written takes back those that the driver writes just then,
// and keeps the later ones out.
func TestGateClosesBetweenBatches(t *testing.T) {
	var p *Pipeline
	var tab *Table[string, int]
	var rows map[string]int
	var d *beside
	shut, written := false, 0
	told := map[string]Event[string]{}
	d, tab, p, rows = twenty(&shut, func() {
		if written = max(written, len(d.rows)); shut {
			return
		}
		p.Update(func() {
			shut = true
			tab.TouchWhere(func(string, int) bool { return true })
		})
	})
	tab.opts.Observe = func(events []Event[string]) {
		for _, e := range events {
			if e.Programmed {
				t.Errorf("%s is told to be programmed behind a closed gate", e.Key)
			}
			told[e.Key] = e
		}
	}
	p.Update(func() { tab.Set(rows) })
	atRest(t, p)
	if len(d.rows) > 0 || written > 4 {
		t.Errorf("%d rows behind a closed gate, %d were written", len(d.rows), written)
	}
	for k := range rows {
		if ok, err := tab.State(k); ok || !errors.Is(err, errShut) || !errors.Is(told[k].Err, errShut) {
			t.Errorf("%s: programmed %t, %v; told %+v", k, ok, err, told[k])
		}
	}
}

// A gate that is not touched is asked once for each row that is written, whatever the number of
// calls; one that is, is not asked for the other rows again.
func TestGateIsAskedOnce(t *testing.T) {
	const rows = 20000
	asked, calls := 0, 0
	var p *Pipeline
	var tab *Table[string, int]
	d := &beside{newMemory("a", nil), func() {
		if calls++; calls == 1 {
			p.Update(func() { tab.Touch("1", "2", "3") })
		}
	}}
	tab = NewTable("a", d, TableOptions[string, int]{Gate: func(string, int) error { asked++; return nil }})
	p = NewPipeline(PipelineOptions{Log: quiet()}, tab)
	wanted := map[string]int{}
	for i := range rows {
		wanted[fmt.Sprint(i)] = i
	}
	p.Update(func() { tab.Set(wanted) })
	atRest(t, p)
	// A key that is touched is looked at by what adds and by what removes.
	if len(d.rows) != rows || asked > rows+3*3 {
		t.Errorf("%d rows, the gate was asked %d times", len(d.rows), asked)
	}
}

// A row that fails while its gate closes is looked at again at once: it may be there.
func TestGateClosesDuringAFailure(t *testing.T) {
	shut := false
	var tab *Table[string, int]
	var p *Pipeline
	d, tab, p, _ := twenty(&shut, func() {
		p.Update(func() { shut = true; tab.Touch("x") })
	})
	tab.opts.Backoff, tab.opts.MaxBackoff = time.Hour, time.Hour
	d.fail["x"], d.partly = errors.New("half of it"), true
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	if len(d.rows) != 1 {
		t.Fatal("the call took no effect")
	}
	delete(d.fail, "x")
	p.Pass(t.Context())
	if len(d.rows) > 0 {
		t.Errorf("%v is behind a closed gate until it is tried again", d.rows)
	}
}

// A row that begins to be held, or to linger, while others are deleted stays.
func TestKeptSinceItWasPicked(t *testing.T) {
	for _, what := range []string{"held", "lingering"} {
		kept, calls := false, 0
		keeps := func(string, int) bool { return kept }
		var d *beside
		d, tab, p, rows := twenty(new(bool), func() {})
		if what == "held" {
			tab.opts.Hold = keeps
		} else {
			tab.opts.Linger = keeps
		}
		p.Update(func() { tab.Set(rows) })
		atRest(t, p)
		d.during = func() {
			calls++
			kept = true
		}
		p.Update(func() { tab.Set(nil) })
		p.Pass(t.Context())
		if len(d.rows) != 16 || calls != 2 {
			t.Errorf("%s: %d rows are left, %d calls", what, len(d.rows), calls)
		}
	}
}

// A row that nobody wants, and that is wanted and unwanted once more while others are deleted, goes in the
// next pass: what comes in its place comes first.
func TestRowThatGoesAgainGoesInTheNextPass(t *testing.T) {
	var journal []string
	first := newMemory("first", &journal)
	d := &beside{newMemory("last", &journal), func() {}}
	tfirst := NewTable("first", first, TableOptions[string, int]{})
	tab := NewTable("last", d, TableOptions[string, int]{BatchSize: 1})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tfirst, tab)
	p.Update(func() { tab.Set(map[string]int{"a": 1, "b": 1}); tfirst.Set(nil) })
	atRest(t, p)
	var again string
	d.during = func() {
		if again != "" {
			return
		}
		for again = range d.rows { // the last that is left
		}
		p.Update(func() { tab.Set(map[string]int{"a": 1, "b": 1}) })
		p.Update(func() { tab.Set(nil); tfirst.Set(map[string]int{"instead": 1}) })
	}
	journal = nil
	p.Update(func() { tab.Set(nil) })
	atRest(t, p)
	if len(journal) != 3 || journal[1] != "+first/instead" || len(d.rows) > 0 {
		t.Errorf("journal %v, left %v", journal, d.rows)
	}
}

// shutting are a table whose gates open and close at random while its driver is at work, and
// one whose gates say whether rows of the first are programmed.
type shutting struct {
	t           *testing.T
	what        string
	keys        int
	mu          sync.Mutex
	r           *rand.Rand
	wild        bool // things happen beside calls
	d, after    *beside
	table, last *Table[string, int]
	p           *Pipeline
	// Guarded by the pipeline.
	open   map[string]bool
	wanted map[string]int
	// told is what was told last of a row of table. Guarded by mu.
	told map[string]Event[string]
}

func newShutting(t *testing.T, seed uint64) *shutting {
	s := &shutting{
		t: t, what: fmt.Sprintf("seed %d", seed), r: rand.New(rand.NewPCG(seed, 5)), wild: true,
		open: map[string]bool{}, wanted: map[string]int{}, told: map[string]Event[string]{},
	}
	s.keys = 1 + s.r.IntN(24)
	s.d, s.after = &beside{newMemory("table", nil), s.happen}, &beside{newMemory("last", nil), s.happen}
	s.d.partly, s.after.partly = true, true
	opts := TableOptions[string, int]{
		BatchSize: 1 + s.r.IntN(7), Backoff: time.Nanosecond, MaxBackoff: time.Nanosecond,
		Gate: func(k string, _ int) error {
			if !s.open[k] {
				return errShut
			}
			return nil
		},
		Early: func(k string) bool { return len(k) == 1 },
		Observe: func(events []Event[string]) {
			s.mu.Lock()
			for _, e := range events {
				s.told[e.Key] = e
			}
			s.mu.Unlock()
			s.p.Update(func() {
				for _, e := range events {
					s.last.Touch(e.Key)
				}
			})
		},
	}
	s.table = NewTable("table", s.d, opts)
	opts.Observe, opts.Early, opts.Gate = nil, nil, func(k string, _ int) error {
		if !s.table.ProgrammedLocked(k) {
			return ErrNotReady
		}
		return nil
	}
	s.last = NewTable("last", s.after, opts)
	s.p = NewPipeline(PipelineOptions{Log: quiet(), Grace: time.Millisecond}, s.table.Early(), s.table, s.last)
	s.p.Update(func() { s.table.Set(nil); s.last.Set(nil) })
	return s
}

// calm has nothing happen beside calls, from the end of those that run.
func (s *shutting) calm(yes bool) {
	s.mu.Lock()
	s.wild = !yes
	s.mu.Unlock()
	s.p.calls.Wait()
}

// draw is a random number below n.
func (s *shutting) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

// happen is what happens beside a call.
func (s *shutting) happen() {
	s.mu.Lock()
	wild := s.wild
	s.mu.Unlock()
	if !wild {
		return
	}
	switch s.draw(30) {
	case 0:
		time.Sleep(3 * time.Millisecond) // it outlasts its grace
	case 1, 2, 3, 4, 5, 6, 7, 8:
		s.change()
	}
}

// change opens or closes gates, has a row wanted or not, or has a driver fail, or not.
func (s *shutting) change() {
	k, v, what := fmt.Sprint(s.draw(s.keys)), s.draw(3), s.draw(12)
	switch what {
	case 0:
		m := []*beside{s.d, s.after}[s.draw(2)]
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.fail[k] = errors.New("broken"); v > 0 {
			clear(m.fail)
		}
		return
	case 1:
		s.p.RelistAll()
		return
	}
	s.p.Update(func() {
		switch {
		case what == 2: // all of them, as a drain does it
			for i := range s.keys {
				s.open[fmt.Sprint(i)] = v > 0
			}
			s.table.TouchWhere(func(string, int) bool { return true })
		case what < 8:
			s.open[k] = !s.open[k]
			s.table.Touch(k)
		case v == 0:
			delete(s.wanted, k)
			s.table.Update(nil, []string{k})
			s.last.Update(nil, []string{k})
		default:
			s.wanted[k] = v
			s.table.Update(map[string]int{k: v}, nil)
			s.last.Update(map[string]int{k: v}, nil)
		}
	})
}

// check is at rest: nothing is behind a closed gate, and nothing waits behind an open one.
func (s *shutting) check() {
	open := map[string]int{}
	for k, v := range s.wanted {
		if s.open[k] {
			open[k] = v
		}
		if ok, err := s.table.State(k); ok != s.open[k] || !ok && !errors.Is(err, errShut) {
			s.t.Errorf("%s: %s: open %t, programmed %t, %v", s.what, k, s.open[k], ok, err)
		}
		if e := s.told[k]; e.Programmed != s.open[k] {
			s.t.Errorf("%s: %s: open %t, and the last that was told is %+v", s.what, k, s.open[k], e)
		}
	}
	for _, d := range []*beside{s.d, s.after} {
		if !maps.Equal(d.rows, open) {
			s.t.Errorf("%s: %s has %v, wanted behind open gates %v", s.what, d.name, d.rows, open)
		}
	}
	for _, tab := range []*Table[string, int]{s.table, s.last} {
		if st := tab.Stats(); st.Pending+st.Unknown+st.Failed > 0 {
			s.t.Errorf("%s: %s: %+v", s.what, tab.Name(), st)
		}
	}
}

// Gates open and close at random, among other things, while rows are written and deleted in calls
// that take their time, and fail. At rest nothing is programmed behind a closed gate, and
// nothing waits behind an open one.
func TestGatesAtRandom(t *testing.T) {
	for seed := range uint64(40) {
		s := newShutting(t, seed)
		for range 8 {
			for range 12 {
				s.change()
				s.p.Pass(t.Context())
			}
			s.calm(true)
			clear(s.d.fail)
			clear(s.after.fail)
			atRest(t, s.p)
			s.check()
			s.calm(false)
		}
		if t.Failed() {
			return
		}
	}
}
