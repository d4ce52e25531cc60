package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// A row has waited since it first failed for something that is not there: retries, touches and
// other values are no break; another error, its removal and its success are.
func TestWaited(t *testing.T) {
	waits, missing := Unchanged(fmt.Errorf("%w for a", ErrNotReady)), fmt.Errorf("bridge: %w", ErrMissing)
	m := newMemory("rows", nil)
	var shut error
	tab := NewTable("rows", m, TableOptions[string, int]{
		Gate: func(string, int) error { return shut },
		Hold: func(_ string, v int) bool { return v == 3 },
	})
	begun := time.Now()
	now := begun
	tab.now = func() time.Time { return now }
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	set := func(rows map[string]int) func() { return func() { tab.Set(rows) } }
	for _, step := range []struct {
		what    string
		fail    error
		shut    error
		do      func()
		rows    int
		key     string
		err     error
		expects string // the key whose wait is expected
	}{
		{what: "it begins", fail: waits, do: set(map[string]int{"a": 1})},
		{what: "it has lasted", fail: waits, rows: 1, key: "a", err: waits},
		{what: "touched", fail: waits, do: func() { tab.Touch("a") }, rows: 1, key: "a", err: waits},
		{what: "another value", fail: waits, do: set(map[string]int{"a": 2}), rows: 1, key: "a", err: waits},
		{what: "the gate says why", fail: waits, shut: missing, do: func() { tab.Touch("a") }},
		{what: "the gate opens", fail: waits, do: func() { tab.Touch("a") }, rows: 1, key: "a", err: waits},
		{what: "a second row", fail: waits, do: set(map[string]int{"a": 2, "0": 2, "1": 2}), rows: 1, key: "a", err: waits},
		{what: "has waited, too", fail: waits, rows: 3, key: "a", err: waits},
		{what: "the first is expected", fail: waits, rows: 2, key: "0", err: waits, expects: "a"},
		{what: "it is there, alone", do: set(map[string]int{"a": 2})},
		{what: "and waits anew", fail: waits, do: set(map[string]int{"a": 1})},
		{what: "for long", fail: waits, rows: 1, key: "a", err: waits},
		{what: "and fails", fail: errors.New("no"), do: func() { tab.Touch("a") }},
		{what: "and waits again", fail: waits, do: func() { tab.Touch("a") }},
		{what: "for long", fail: waits, rows: 1, key: "a", err: waits},
		{what: "not wanted", fail: waits, do: set(nil)}, // its deletion waits
		{what: "and not deleted for long", fail: waits, rows: 1, key: "a", err: waits},
		{what: "and gone", do: func() { tab.Touch("a") }},
		{what: "shut out", shut: waits, do: set(map[string]int{"a": 3})},
		{what: "for long", shut: waits, do: func() { tab.Touch("a") }, rows: 1, key: "a", err: waits},
		{what: "let in", do: func() { tab.Touch("a") }},
		{what: "to be deleted, which waits", fail: waits, shut: waits, do: func() { tab.Touch("a") }},
		{what: "held", fail: waits, do: set(nil)},
		{what: "for long", fail: waits},
	} {
		now = now.Add(time.Minute)
		for _, k := range []string{"a", "0", "1"} {
			delete(m.fail, k)
			if step.fail != nil {
				m.fail[k] = step.fail
			}
		}
		shut = step.shut
		p.Update(func() {
			if step.do != nil {
				step.do()
			}
		})
		p.Pass(t.Context())
		var w Wait
		p.View(func() {
			w = tab.WaitedLocked(now.Add(-time.Second), func(k string, _ int) bool { return k == step.expects })
		})
		if want := (Wait{"rows", step.rows, step.key, step.err}); w != want {
			t.Errorf("%s: %+v, want %+v", step.what, w, want)
		}
	}
	if w := tab.Waited(begun); w.Rows != 0 {
		t.Errorf("before it was made: %+v", w)
	}
}

// A table whose rows are in place is not walked, and costs nothing to ask.
func TestWaitedCostsNothing(t *testing.T) {
	tab := NewTable("rows", newMemory("rows", nil), TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"a": 1, "b": 2}) })
	p.Pass(t.Context())
	before := time.Now()
	if n := testing.AllocsPerRun(100, func() { tab.Waited(before) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
