package reconcile

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
)

// behindOnly has rows wait for the rows of one table of the same key.
func behindOnly(of **Table[string, int]) TableOptions[string, int] {
	return TableOptions[string, int]{Behind: func(late Stage, _ bool) func(string, int) bool {
		return func(k string, _ int) (waits bool) {
			if late == Stage(*of) {
				(*of).EachPendingLocked(func(other string, _ int) { waits = waits || k == other })
			}
			return waits
		}
	}}
}

// A row that goes and waits for a table that is late has its own table be late, too: what goes
// after it waits as well.
func TestRemovalsWaitInAChain(t *testing.T) {
	h := newThree()
	h.tfirst.opts, h.tlast.opts = behindOnly(&h.tlast), behindOnly(&h.tmid)
	h.tfirst.opts.BatchSize, h.tlast.opts.BatchSize = 8, 8
	h.place(t, map[string]int{"x": 1}, map[string]int{"x": 1})
	release := h.middle.hold()
	h.set(map[string]int{"x": 2}, nil)
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"x": 1}) || !maps.Equal(h.last.rows, map[string]int{"x": 1}) {
		t.Errorf("first %v, last %v", h.first.rows, h.last.rows)
	}
	release()
	await(t, h.p, "all are gone", func() bool { return h.tfirst.Stats().Actual+h.tlast.Stats().Actual == 0 })
}

// A row whose retry is due, and that waits for the call of another driver or is kept, has no
// pass be made: the end of the call does, and whoever changes what it is kept for.
func TestNoPassIsDueForARowThatWaits(t *testing.T) {
	h := newThree()
	h.tlast.opts = behindOnly(&h.tmid)
	h.tlast.opts.BatchSize, h.tlast.opts.Backoff, h.tlast.opts.MaxBackoff = 8, time.Minute, time.Minute
	kept := false
	h.tlast.opts.Hold = func(string, int) bool { return kept }
	now := time.Now()
	h.tlast.now = func() time.Time { return now }
	h.last.fail = map[string]error{"x": errors.New("no")}
	h.set(map[string]int{"x": 1}, map[string]int{"x": 1})
	if next := h.p.Pass(t.Context()); next == idle {
		t.Fatal("what has failed is not tried again")
	}
	release := h.middle.hold()
	h.set(map[string]int{"x": 2}, map[string]int{"x": 1})
	h.p.Pass(t.Context())
	now = now.Add(2 * time.Minute)
	for range 3 {
		if next := h.p.Pass(t.Context()); next != idle {
			t.Fatalf("a pass is due in %s while a row waits for a call", next)
		}
	}
	drain(h.p)
	release()
	<-h.p.kick // a pass follows the call
	h.last.fail = map[string]error{}
	await(t, h.p, "x is there", func() bool { ok, _ := h.tlast.State("x"); return ok })

	h.last.fail["x"] = errors.New("no")
	h.set(map[string]int{"x": 2}, nil)
	h.p.Pass(t.Context())
	now, kept = now.Add(2*time.Minute), true
	if next := h.p.Pass(t.Context()); next != idle {
		t.Fatalf("a pass is due in %s while a row is kept", next)
	}
	h.last.fail, kept = map[string]error{}, false
	await(t, h.p, "x is gone", func() bool { return h.tlast.Stats().Actual == 0 })
}

func drain(p *Pipeline) {
	select {
	case <-p.kick:
	default:
	}
}

// A row that waited for a call by which a table is compared has a pass follow it.
func TestAPassFollowsACompareThatSomeRowWaitedFor(t *testing.T) {
	h := newThree()
	h.tfirst.opts = behindOnly(&h.tmid)
	h.tfirst.opts.BatchSize = 8
	h.middle.fail = map[string]error{"x": errors.New("no")}
	h.set(map[string]int{"x": 1}, map[string]int{"x": 1, "z": 1})
	h.p.Pass(t.Context())
	var release func()
	compared := make(chan error, 1)
	h.tlast.opts.Observe = func([]Event[string]) { // between the turns of the middle and the first
		if release != nil {
			return
		}
		release = h.middle.hold()
		go func() { compared <- h.tmid.readBack(t.Context()) }()
		for h.middle.hung.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	h.p.Update(func() { h.tfirst.Set(nil); h.tlast.Set(map[string]int{"x": 1}) })
	drain(h.p)
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"x": 1}) {
		t.Fatalf("first %v: nothing waited", h.first.rows)
	}
	drain(h.p)
	release()
	if err := <-compared; err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.p.kick:
	default:
		t.Error("no pass follows")
	}
}

// A row that waits tells for whose driver, also at the end of a chain.
func TestARowTellsWhoseDriverItWaitsFor(t *testing.T) {
	h := newThree()
	end := newMemory("end", nil)
	tend := NewTable("end", end, behindOnly(&h.tlast))
	h.tlast.opts.Behind = behindOnly(&h.tmid).Behind
	h.p = NewPipeline(PipelineOptions{Log: quiet(), Grace: patientGrace}, h.tfirst, h.tmid, h.tlast, tend)
	set := func(v int) {
		h.p.Update(func() {
			for _, tab := range []*Table[string, int]{h.tmid, h.tlast, tend} {
				tab.Set(map[string]int{"x": v})
			}
		})
		h.p.Pass(t.Context())
	}
	set(1)
	release := h.middle.hold()
	set(2)
	for _, tab := range []*Table[string, int]{h.tmid, h.tlast, tend} {
		ok, err := tab.State("x")
		if ok || !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "the driver of table middle has not returned for ") {
			t.Errorf("%s: %t, %v", tab.Name(), ok, err)
		}
	}
	if c := tend.Changes(); len(c) != 1 || !strings.Contains(c[0].Why, "table middle") {
		t.Errorf("%+v", c)
	}
	release()
	await(t, h.p, "all are there", func() bool { ok, _ := tend.State("x"); return ok })
	if c := tend.Changes(); len(c) > 0 {
		t.Errorf("%+v", c)
	}
}
