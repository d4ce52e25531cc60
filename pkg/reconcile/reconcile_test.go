package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a driver over a map that writes a journal and fails on request.
type memory struct {
	name    string
	mu      sync.Mutex
	rows    map[string]int
	journal *[]string
	fail    map[string]error
	listErr error
	onApply func()
	// partly: a call that fails has done a part of its work.
	partly bool
}

func (m *memory) List(context.Context) (map[string]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.rows), m.listErr
}

func (m *memory) Apply(_ context.Context, rows []Row[string, int]) []error {
	if m.onApply != nil {
		m.onApply()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make([]error, len(rows))
	for i, r := range rows {
		if errs[i] = m.fail[r.Key]; errs[i] == nil {
			m.rows[r.Key] = r.Value
			m.note("+", r.Key)
		} else if m.partly {
			m.rows[r.Key] = -r.Value
		}
	}
	return errs
}

func (m *memory) Delete(_ context.Context, keys []string) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	errs := make([]error, len(keys))
	for i, k := range keys {
		if errs[i] = m.fail[k]; errs[i] == nil {
			delete(m.rows, k)
			m.note("-", k)
		}
	}
	return errs
}

func (m *memory) note(op, key string) {
	if m.journal != nil {
		*m.journal = append(*m.journal, op+m.name+"/"+key)
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newMemory(name string, journal *[]string) *memory {
	return &memory{name: name, rows: map[string]int{}, journal: journal, fail: map[string]error{}}
}

func TestAdditionsRunForwardAndRemovalsBackward(t *testing.T) {
	var journal []string
	a, b := newMemory("a", &journal), newMemory("b", &journal)
	ta := NewTable("a", a, TableOptions[string, int]{})
	tb := NewTable("b", b, TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, ta, tb)
	p.Update(func() { ta.Set(map[string]int{"x": 1}); tb.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	p.Update(func() { ta.Set(map[string]int{"y": 1}); tb.Set(map[string]int{"y": 1}) })
	p.Pass(t.Context())
	want := []string{"+a/x", "+b/x", "+a/y", "+b/y", "-b/x", "-a/x"}
	if !slices.Equal(journal, want) {
		t.Errorf("journal %v, want %v", journal, want)
	}
}

func TestForeignRowsAreRemovedOnlyWhenListed(t *testing.T) {
	m := newMemory("a", nil)
	m.rows["old"] = 7
	tab := NewTable("a", m, TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(nil) })
	p.Pass(t.Context())
	if len(m.rows) != 0 {
		t.Errorf("a listed row that nobody wants is still there: %v", m.rows)
	}
}

func TestListFailureTouchesNothingAndKeepsState(t *testing.T) {
	m := newMemory("a", nil)
	tab := NewTable("a", m, TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	m.listErr = errors.New("away")
	p.RelistAll()
	p.Update(func() { tab.Set(nil) })
	if next := p.Pass(t.Context()); next > time.Second {
		t.Errorf("next pass in %v", next)
	}
	if m.rows["x"] != 1 {
		t.Error("a row was deleted from a table that could not be read back")
	}
	if p.ListError("a") == nil {
		t.Error("the list error is not shown")
	}
	m.listErr = nil
	p.Pass(t.Context())
	if len(m.rows) != 0 {
		t.Error("the row stays after the table can be read again")
	}
}

func TestFailureIsRetriedAndStopsNobody(t *testing.T) {
	m := newMemory("a", nil)
	m.fail["bad"] = errors.New("no room")
	tab := NewTable("a", m, TableOptions[string, int]{Backoff: time.Minute})
	now := time.Now()
	tab.now = func() time.Time { return now }
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"bad": 1, "good": 2}) })
	next := p.Pass(t.Context())
	if m.rows["good"] != 2 {
		t.Error("the good row was not written")
	}
	if next > time.Minute {
		t.Errorf("retry in %v, want within the backoff", next)
	}
	if ok, err := tab.State("bad"); ok || err == nil || err.Error() != "no room" {
		t.Errorf("state of bad: %v, %v", ok, err)
	}
	delete(m.fail, "bad")
	p.Pass(t.Context())
	if _, ok := m.rows["bad"]; ok {
		t.Error("retried before its time")
	}
	now = now.Add(2 * time.Minute)
	p.Pass(t.Context())
	if ok, _ := tab.State("bad"); !ok || m.rows["bad"] != 1 {
		t.Error("not retried when due")
	}
}

// What has failed for long is tried again soon when something else has changed, and not in a
// loop where that is what trying it does.
func TestRelistRetries(t *testing.T) {
	m := newMemory("a", nil)
	m.fail["a"] = errors.New("not yet")
	tab := NewTable("a", m, TableOptions[string, int]{Backoff: time.Minute})
	now := time.Now()
	tab.now = func() time.Time { return now }
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"a": 1}) })
	p.Pass(t.Context())
	delete(m.fail, "a")
	p.Update(tab.Relist)
	if next := p.Pass(t.Context()); m.rows["a"] == 1 || next > time.Second {
		t.Errorf("at once it is tried: %v; retry in %v", m.rows, next)
	}
	now = now.Add(time.Second)
	p.Pass(t.Context())
	if m.rows["a"] != 1 {
		t.Error("not retried")
	}
}

func TestGateAddsAndWithdraws(t *testing.T) {
	var journal []string
	routes, announce := newMemory("routes", &journal), newMemory("announce", &journal)
	tr := NewTable("routes", routes, TableOptions[string, int]{})
	var p *Pipeline
	var ta *Table[string, int]
	tr.opts.Observe = func(ev []Event[string]) {
		p.Update(func() {
			for _, e := range ev {
				ta.Touch(e.Key)
			}
		})
	}
	ta = NewTable("announce", announce, TableOptions[string, int]{Gate: func(k string, _ int) error {
		if !tr.ProgrammedLocked(k) {
			return fmt.Errorf("%w for the route", ErrNotReady)
		}
		return nil
	}})
	p = NewPipeline(PipelineOptions{Log: quiet()}, tr, ta)
	routes.fail["x"] = errors.New("full")
	p.Update(func() { tr.Set(map[string]int{"x": 1}); ta.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	if len(announce.rows) != 0 {
		t.Fatal("announced without a route")
	}
	if c := ta.Changes(); len(c) != 1 || !c[0].Held || c[0].Why == "" {
		t.Errorf("changes: %+v", c)
	}
	delete(routes.fail, "x")
	p.Update(func() { tr.Touch("x") })
	p.Pass(t.Context())
	p.Pass(t.Context())
	if len(announce.rows) != 1 {
		t.Fatal("not announced after the route came")
	}
	p.Update(func() { tr.Set(nil); ta.Set(nil) })
	p.Pass(t.Context())
	want := []string{"+routes/x", "+announce/x", "-announce/x", "-routes/x"}
	if !slices.Equal(journal, want) {
		t.Errorf("journal %v, want %v", journal, want)
	}
}

func TestHoldKeepsUntilReleased(t *testing.T) {
	held := true
	m := newMemory("a", nil)
	m.rows["x"] = 1
	tab := NewTable("a", m, TableOptions[string, int]{Hold: func(string, int) bool { return held }})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(nil) })
	p.Pass(t.Context())
	if len(m.rows) != 1 {
		t.Fatal("a held row was deleted")
	}
	held = false
	p.Pass(t.Context())
	if len(m.rows) != 0 {
		t.Fatal("a released row is still there")
	}
}

// A row that is wanted again while the pass runs must not blink.
func TestRowWantedAgainDuringPassStays(t *testing.T) {
	var journal []string
	a, b := newMemory("a", &journal), newMemory("b", &journal)
	a.rows["x"] = 1
	ta := NewTable("a", a, TableOptions[string, int]{})
	tb := NewTable("b", b, TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, ta, tb)
	b.onApply = func() { p.Update(func() { ta.Set(map[string]int{"x": 1}) }) }
	p.Update(func() { ta.Set(nil); tb.Set(map[string]int{"y": 1}) })
	p.Pass(t.Context())
	if slices.Contains(journal, "-a/x") {
		t.Errorf("the row blinked: %v", journal)
	}
}

func TestDryPipelineShowsAndWritesNothing(t *testing.T) {
	m := newMemory("a", nil)
	m.rows["gone"] = 1
	m.rows["other"] = 1
	tab := NewTable("a", m, TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet(), Dry: true}, tab)
	p.Update(func() { tab.Set(map[string]int{"new": 1, "other": 2}) })
	p.Pass(t.Context())
	if len(m.rows) != 2 {
		t.Error("a dry pass wrote")
	}
	var ops []Op
	for _, c := range tab.Changes() {
		ops = append(ops, c.Op)
	}
	if !slices.Equal(ops, []Op{OpDelete, OpAdd, OpChange}) {
		t.Errorf("changes %v", tab.Changes())
	}
}

// Any sequence of changes, failures and passes ends equal to what is wanted.
func TestRandomSequencesConverge(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newMemory("a", nil)
		tab := NewTable("a", m, TableOptions[string, int]{Backoff: time.Nanosecond, MaxBackoff: time.Nanosecond, BatchSize: 3})
		p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
		wanted := map[string]int{}
		p.Update(func() { tab.Set(nil) })
		for range 200 {
			k := fmt.Sprint(r.IntN(10))
			switch r.IntN(6) {
			case 0, 1:
				wanted[k] = r.IntN(3)
				p.Update(func() { tab.Update(map[string]int{k: wanted[k]}, nil) })
			case 2:
				delete(wanted, k)
				p.Update(func() { tab.Update(nil, []string{k}) })
			case 3:
				m.fail[k] = errors.New("broken")
			case 4:
				clear(m.fail)
				m.rows[k] = 99 // somebody else's doing
				p.RelistAll()
			case 5:
				p.Pass(t.Context())
			}
		}
		clear(m.fail)
		p.RelistAll()
		for range 3 {
			time.Sleep(time.Microsecond)
			p.Pass(t.Context())
		}
		if !maps.Equal(m.rows, wanted) {
			t.Fatalf("seed %d: actual %v, wanted %v", seed, m.rows, wanted)
		}
		if s := tab.Stats(); s.Pending != 0 || s.Failed != 0 {
			t.Fatalf("seed %d: %+v", seed, s)
		}
	}
}

func TestRun(t *testing.T) {
	m := newMemory("a", nil)
	told := make(chan struct{}, 1)
	tab := NewTable("a", m, TableOptions[string, int]{Observe: func([]Event[string]) { told <- struct{}{} }})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	<-told
	if ok, _ := tab.State("x"); !ok {
		t.Error("not programmed, and told that it is")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
