package reconcile

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A call that fails after it has done a part of its work leaves neither what was there nor
// what was to be: the row is written again also when what was there is wanted again.
func TestRowIsWrittenAgainAfterAFailure(t *testing.T) {
	var journal []string
	m := newMemory("a", &journal)
	tab := NewTable("a", m, TableOptions[string, int]{Backoff: time.Hour})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	want := func(v int) {
		p.Update(func() { tab.Set(map[string]int{"x": v}) })
		p.Pass(t.Context())
	}
	want(1)
	m.fail["x"], m.partly = errors.New("half of it"), true
	want(2)
	if m.rows["x"] == 1 {
		t.Fatal("the driver has not done a part of its work")
	}
	want(1)
	if ok, err := tab.State("x"); ok {
		t.Errorf("programmed, %v; there is %d", err, m.rows["x"])
	}
	m.fail = map[string]error{}
	want(2)
	want(1)
	if ok, err := tab.State("x"); !ok || m.rows["x"] != 1 {
		t.Errorf("state %t, %v; there is %d; %v", ok, err, m.rows["x"], journal)
	}
}

// A row whose first call took effect and was cut off is deleted when nobody wants it.
func TestRowOfACallThatWasCutOffIsDeleted(t *testing.T) {
	m := newMemory("a", nil)
	m.fail["x"], m.partly = errors.New("timed out"), true
	tab := NewTable("a", m, TableOptions[string, int]{Backoff: time.Hour})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	if len(m.rows) != 1 {
		t.Fatal("the call took no effect")
	}
	m.fail = map[string]error{}
	p.Update(func() { tab.Set(nil) })
	p.Pass(t.Context())
	if len(m.rows) != 0 {
		t.Errorf("%v is left", m.rows)
	}
	if s := tab.Stats(); s.Pending != 0 || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
}

// A row that may be there is kept by what keeps any of the values that it may have.
func TestUnknownRowIsHeldForAnyOfItsValues(t *testing.T) {
	for _, keeps := range []int{1, 2} {
		for name, opts := range map[string]TableOptions[string, int]{
			"hold":   {Hold: func(_ string, v int) bool { return v == keeps }},
			"linger": {Linger: func(_ string, v int) bool { return v == keeps }},
		} {
			m := newMemory("a", nil)
			tab := NewTable("a", m, opts)
			p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
			p.Update(func() { tab.Set(map[string]int{"x": 1}) })
			p.Pass(t.Context())
			m.fail["x"], m.partly = errors.New("half of it"), true
			p.Update(func() { tab.Set(map[string]int{"x": 2}) })
			p.Pass(t.Context())
			var may []int
			p.View(func() { tab.MayBeLocked("x", func(v int) bool { may = append(may, v); return false }) })
			if !slices.Equal(may, []int{1, 2}) {
				t.Errorf("%s: there may be %v", name, may)
			}
			m.fail = map[string]error{}
			p.Update(func() { tab.Set(nil) })
			p.Pass(t.Context())
			p.Pass(t.Context())
			if _, there := m.rows["x"]; !there {
				t.Errorf("%s %d: the row is gone", name, keeps)
			}
			if name == "linger" && m.rows["x"] != keeps {
				t.Errorf("there is %d, and %d lingers", m.rows["x"], keeps)
			}
		}
	}
}

// What is there over any of the values that it may have is awaited.
func TestUnknownRowAwaitsForAnyOfItsValues(t *testing.T) {
	m := newMemory("a", nil)
	var asked []int
	var wait error
	tab := NewTable("a", m, TableOptions[string, int]{Await: func(_ string, _, actual int, there bool) error {
		if !there {
			return nil
		}
		asked = append(asked, actual)
		return wait
	}})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"x": 1}) })
	p.Pass(t.Context())
	m.fail["x"], m.partly = errors.New("half of it"), true
	p.Update(func() { tab.Set(map[string]int{"x": 2}) })
	p.Pass(t.Context())
	m.fail, asked, wait = map[string]error{}, nil, ErrNotReady
	p.Update(func() { tab.Set(map[string]int{"x": 3}) })
	p.Pass(t.Context())
	if !slices.Equal(asked, []int{1}) || m.rows["x"] == 3 {
		t.Errorf("asked for %v, there is %v", asked, m.rows)
	}
	asked, wait = nil, nil
	p.Update(func() { tab.Touch("x") })
	p.Pass(t.Context())
	if !slices.Equal(asked, []int{1, 2}) || m.rows["x"] != 3 {
		t.Errorf("asked for %v, there is %v", asked, m.rows)
	}
}

// Reading back says what is there; a reading that fails says nothing.
func TestListResolvesUnknownRows(t *testing.T) {
	m := newMemory("a", nil)
	tab := NewTable("a", m, TableOptions[string, int]{Backoff: time.Hour})
	p := NewPipeline(PipelineOptions{Log: quiet()}, tab)
	p.Update(func() { tab.Set(map[string]int{"x": 1, "y": 1}) })
	p.Pass(t.Context())
	m.fail["x"], m.fail["y"], m.partly = errors.New("half of it"), errors.New("half of it"), true
	p.Update(func() { tab.Set(map[string]int{"x": 2, "y": 2}) })
	p.Pass(t.Context())
	m.rows["x"], m.listErr = 2, errors.New("away")
	p.Update(tab.Relist)
	p.Pass(t.Context())
	if s := tab.Stats(); s.Unknown != 2 {
		t.Errorf("after a reading that failed: %+v", s)
	}
	m.listErr = nil
	p.Pass(t.Context())
	if s := tab.Stats(); s.Unknown != 0 {
		t.Errorf("after a reading: %+v", s)
	}
	if ok, err := tab.State("x"); !ok {
		t.Errorf("x is not programmed: %v", err)
	}
	if ok, _ := tab.State("y"); ok || len(tab.Changes()) != 1 {
		t.Errorf("y is programmed, %+v", tab.Changes())
	}
}
