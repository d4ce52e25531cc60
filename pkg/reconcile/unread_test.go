package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

var errAway = errors.New("away")

// away has the table in the middle be read back, which fails, until what it returns is called.
func (h *three) away() (back func()) {
	set := func(err error) {
		h.middle.mu.Lock()
		h.middle.listErr = err
		h.middle.mu.Unlock()
		h.p.Update(h.tmid.Relist)
	}
	set(errAway)
	return func() { set(nil) }
}

// As TestHungDriverDelaysNoOther: while a table cannot be read back, rows of all others come and go
// that have nothing to do with it.
func TestUnreadTableDelaysNoOther(t *testing.T) {
	h := newThree()
	h.place(t, map[string]int{"x": 1}, map[string]int{"a": 1})
	back := h.away()
	h.placeOthers(t, map[string]int{"x": 2}, map[string]int{"b": 1})
	if ok, err := h.tmid.State("x"); ok || !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "table middle cannot be read back: list middle: away") {
		t.Errorf("x: %t, %v", ok, err)
	}
	back()
	await(t, h.p, "x is 2", func() bool { ok, _ := h.tmid.State("x"); return ok })
}

// placeOthers has rows wanted, and makes passes until those of the first and the last table are there.
func (h *three) placeOthers(t *testing.T, middle, others map[string]int) {
	t.Helper()
	h.set(middle, others)
	await(t, h.p, "the others are as wanted", func() bool {
		return h.tfirst.Settled() && h.tlast.Settled() && h.tfirst.Stats().Actual == len(others) && h.tlast.Stats().Actual == len(others)
	})
}

// As TestOrderBesideAHungDriver: where rows belong together the order stays, however often the table
// cannot be read.
func TestOrderBesideAnUnreadTable(t *testing.T) {
	h := newThree()
	h.place(t, map[string]int{"x": 1}, map[string]int{"x": 1, "a": 1})
	back := h.away()
	h.set(nil, nil) // last/x goes, then middle/x, then first/x
	await(t, h.p, "the last are gone", func() bool { return h.tlast.Stats().Actual == 0 && h.tfirst.Stats().Actual == 1 })
	h.p.Pass(t.Context())
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"x": 1}) {
		t.Errorf("first %v", h.first.rows)
	}
	if c := h.tfirst.Changes(); len(c) != 1 || c[0].Op != OpDelete || !strings.Contains(c[0].Why, "table middle cannot be read back: list middle: away") {
		t.Errorf("changes %+v", c)
	}
	back()
	await(t, h.p, "all are gone", func() bool { return h.tfirst.Stats().Actual == 0 })

	h.place(t, map[string]int{"y": 1}, map[string]int{"y": 1})
	back = h.away()
	h.set(map[string]int{"y": 2, "z": 1}, map[string]int{"z": 1}) // last/z comes after middle/z, and then last/y goes
	await(t, h.p, "first/z is there", func() bool { ok, _ := h.tfirst.State("z"); return ok })
	h.p.Pass(t.Context())
	h.p.Pass(t.Context())
	if !maps.Equal(h.first.rows, map[string]int{"y": 1, "z": 1}) || !maps.Equal(h.last.rows, map[string]int{"y": 1}) {
		t.Errorf("first %v, last %v", h.first.rows, h.last.rows)
	}
	back()
	await(t, h.p, "y is gone", func() bool { return h.tfirst.Stats().Actual+h.tlast.Stats().Actual == 2 })
	want := []string{"+first/z", "+middle/y", "+middle/z", "+last/z", "-last/y", "-first/y"}
	got := h.journal[len(h.journal)-len(want):]
	slices.Sort(got[1:3])
	if !slices.Equal(got, want) {
		t.Errorf("journal %v, want %v", got, want)
	}
}

// A table that was never read back, and of which nothing is wanted, stops nobody; once something
// is, only what waits for it waits.
func TestTableThatWasNeverRead(t *testing.T) {
	h := newThree()
	h.middle.listErr = errAway
	h.placeOthers(t, nil, map[string]int{"x": 1, "a": 1})
	h.placeOthers(t, nil, map[string]int{"x": 2})
	h.set(map[string]int{"y": 1}, map[string]int{"x": 2, "y": 1, "z": 1})
	await(t, h.p, "what has nothing to do with y is there", func() bool {
		ok, _ := h.tlast.State("z")
		return ok && h.tfirst.Settled()
	})
	if ok, err := h.tlast.State("y"); ok || !strings.Contains(err.Error(), "table middle cannot be read back") {
		t.Errorf("last/y: %t, %v", ok, err)
	}
	h.middle.listErr = nil
	await(t, h.p, "all are there", func() bool { return h.tmid.Settled() && h.tlast.Settled() })
}

// A table that has a place of Early beside its own, and cannot be read back, is asked once in a pass.
func TestUnreadTableIsReadOnceInAPass(t *testing.T) {
	h := newThree()
	lists := 0
	early := NewTable("early", listed{h.middle, func() { lists++ }}, TableOptions[string, int]{Early: func(k string) bool { return k == "x" }})
	p := NewPipeline(PipelineOptions{Log: quiet()}, early.Early(), h.tfirst, early)
	h.middle.listErr = errAway
	p.Update(func() { early.Set(map[string]int{"x": 1, "y": 1}); h.tfirst.Set(map[string]int{"a": 1}) })
	p.Pass(t.Context())
	if lists != 1 || len(h.middle.rows) > 0 {
		t.Errorf("listed %d times, rows %v", lists, h.middle.rows)
	}
	h.middle.listErr = nil
	p.Pass(t.Context())
	if lists != 2 || len(h.middle.rows) != 2 {
		t.Errorf("listed %d times, rows %v", lists, h.middle.rows)
	}
}

// listed tells of each List.
type listed struct {
	*hanging
	told func()
}

func (l listed) List(ctx context.Context) (map[string]int, error) {
	l.told()
	return l.hanging.List(ctx)
}
