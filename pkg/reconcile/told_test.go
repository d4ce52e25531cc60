package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// After a restart the actual side is full and the wanted one empty, until
// somebody says what is wanted.
func TestNothingIsDeletedBeforeTheTableWasTold(t *testing.T) {
	m := newMemory("a", nil)
	m.rows["kept"], m.rows["old"] = 1, 1
	tab := NewTable("a", m, TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Pass(t.Context())
	p.Update(func() { tab.Update(map[string]int{"new": 1}, []string{"old"}) })
	p.Pass(t.Context())
	if len(m.rows) != 3 {
		t.Fatalf("rows %v", m.rows)
	}
	if c := tab.Changes(); len(c) != 2 || !c[0].Held || !c[1].Held {
		t.Errorf("changes %+v", c)
	}
	p.Update(func() { tab.Set(map[string]int{"kept": 1}) })
	p.Pass(t.Context())
	if len(m.rows) != 1 || m.rows["kept"] != 1 {
		t.Errorf("rows %v after the first Set", m.rows)
	}
}

// Hold is for rows that nobody wants: one that is wanted and gated goes.
func TestGateIsStrongerThanHold(t *testing.T) {
	m := newMemory("a", nil)
	var gate error
	tab := NewTable("a", m, TableOptions[string, int]{
		Gate: func(string, int) error { return gate }, Hold: func(string, int) bool { return true },
	})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	gate = fmt.Errorf("%w for the gateway", ErrNotReady)
	p.Update(func() { tab.Touch("x") })
	if c := tab.Changes(); len(c) != 1 || c[0].Op != OpDelete || c[0].Held {
		t.Errorf("changes %+v", c)
	}
	p.Pass(t.Context())
	if len(m.rows) != 0 {
		t.Errorf("rows %v behind a closed gate", m.rows)
	}
}

func TestFailureOfARowThatIsNotWantedAnyMoreIsOver(t *testing.T) {
	m := newMemory("a", nil)
	m.fail["x"] = errors.New("full")
	problems := map[string]error{}
	tab := NewTable("a", m, TableOptions[string, int]{Observe: func(events []Event[string]) {
		for _, e := range events {
			problems[e.Key] = e.Err
		}
	}})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	if problems["x"] == nil {
		t.Fatal("the failure is not told")
	}
	delete(m.fail, "x")
	p.Update(func() { tab.Set(nil) })
	p.Pass(t.Context())
	if err := problems["x"]; err != nil {
		t.Errorf("%v is still the last word on a row that nobody wants", err)
	}
}

// A pass that is ended half way says nothing of the rows that it did not do.
func TestEndedPassFailsNoRow(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	m := newMemory("a", nil)
	m.rows["old1"], m.rows["old2"] = 1, 1
	var events []Event[string]
	tab := NewTable("a", m, TableOptions[string, int]{BatchSize: 1, Observe: func(e []Event[string]) { events = append(events, e...) }})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	m.onApply = func() {
		stop()
		m.fail["new1"], m.fail["new2"] = ctx.Err(), ctx.Err()
	}
	p.Update(func() { tab.Set(map[string]int{"new1": 1, "new2": 1}) })
	p.Pass(ctx)
	for _, e := range events {
		t.Errorf("told: %+v", e)
	}
	if s := tab.Stats(); s.Failed != 0 || s.ApplyErrors != 0 || s.DeleteErrors != 0 {
		t.Errorf("%+v", s)
	}
	if len(m.rows) != 2 {
		t.Errorf("removals ran on: %v", m.rows)
	}
	m.listErr = context.Canceled
	p.RelistAll()
	p.Pass(ctx)
	if err := p.ListError("a"); err != nil {
		t.Errorf("reading back counts as failed: %v", err)
	}
}

func TestSettled(t *testing.T) {
	m := newMemory("a", nil)
	closed := fmt.Errorf("%w for something", ErrNotReady)
	gate := closed
	tab := NewTable("a", m, TableOptions[string, int]{Gate: func(string, int) error { return gate }})
	passes := 0
	p := NewPipeline(PipelineOptions{Log: quiet(), Passed: func(time.Duration) { passes++ }}, tab)
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	m.listErr = errors.New("away")
	p.Pass(t.Context())
	if tab.Settled() {
		t.Error("settled before it was read back")
	}
	m.listErr = nil
	p.Pass(t.Context())
	if tab.Settled() {
		t.Error("settled while a row waits for its gate")
	}
	gate, m.fail["x"] = nil, errors.New("full")
	p.Update(func() { tab.Touch("x") })
	p.Pass(t.Context())
	if !tab.Settled() {
		t.Error("a row that failed is waited for")
	}
	if passes != 3 {
		t.Errorf("%d passes were told", passes)
	}
}
