package reconcile

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"testing"
)

// A row that has to wait leaves what is there as it is, and is written once what
// it waits for has come and it was touched.
func TestAwaitKeepsWhatIsThere(t *testing.T) {
	var journal []string
	ready := false
	d := &memory{name: "d", rows: map[string]int{"a": 1}, journal: &journal}
	table := NewTable("t", d, TableOptions[string, int]{
		Await: func(k string, wanted, actual int, there bool) error {
			if !there || actual > wanted || ready {
				return nil
			}
			return fmt.Errorf("%w for something", ErrNotReady)
		},
	})
	p := NewPipeline(PipelineOptions{Log: slog.New(slog.DiscardHandler)}, table)
	p.Update(func() { table.Set(map[string]int{"a": 2, "b": 2}) })
	p.Pass(t.Context())
	p.Pass(t.Context())
	if want := map[string]int{"a": 1, "b": 2}; !maps.Equal(d.rows, want) {
		t.Fatalf("rows %v, want %v", d.rows, want)
	}
	if ok, err := table.State("a"); ok || !errors.Is(err, ErrNotReady) {
		t.Errorf("state %t, %v", ok, err)
	}
	if _, found := table.UnplacedLocked(func(k string, _ int) bool { return k == "b" }); found {
		t.Error("b is not in place")
	}
	if k, found := table.UnplacedLocked(func(string, int) bool { return true }); !found || k != "a" {
		t.Errorf("not in place: %q, %t", k, found)
	}
	ready = true
	p.Update(func() { table.Touch("a") })
	p.Pass(t.Context())
	if ok, err := table.State("a"); !ok || d.rows["a"] != 2 {
		t.Errorf("state %t, %v; rows %v", ok, err, d.rows)
	}
}
