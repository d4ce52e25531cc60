package reconcile

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Rows of a table that have an earlier place than the others are added before what comes in
// between, and removed after it; the table is one all the same.
func TestEarlyRows(t *testing.T) {
	var journal []string
	a, b := newMemory("a", &journal), newMemory("b", &journal)
	ta := NewTable("a", a, TableOptions[string, int]{Early: func(k string) bool { return strings.HasPrefix(k, "early") }})
	tb := NewTable("b", b, TableOptions[string, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, ta.Early(), tb, ta)
	set := func(rows ...string) {
		all := map[string]int{}
		for _, k := range rows {
			all[k] = 1
		}
		p.Update(func() { ta.Set(all) })
	}
	set("early", "late")
	p.Update(func() { tb.Set(map[string]int{"x": 1}) })
	if changes, err := p.Compare(t.Context()); err != nil || len(changes) != 3 || len(p.Stages()) != 2 {
		t.Errorf("%+v, %v; stages %v", changes, err, p.Stages())
	}
	p.Pass(t.Context())
	set()
	p.Update(func() { tb.Set(nil) })
	p.Pass(t.Context())
	want := []string{"+a/early", "+b/x", "+a/late", "-a/late", "-b/x", "-a/early"}
	if !slices.Equal(journal, want) || !ta.Settled() {
		t.Errorf("journal %v, want %v", journal, want)
	}
	a.fail["early"] = errors.New("full")
	set("early", "late")
	p.Pass(t.Context())
	if s := ta.Stats(); s.Failed != 1 || s.Wanted != 2 || s.Actual != 1 {
		t.Errorf("%+v", s)
	}
}
