package reconcile

import (
	"maps"
	"testing"
)

// lingering is a table whose rows linger while used has them.
func lingering(rows map[string]int) (d *memory, table *Table[string, int], p *Pipeline, used map[string]bool) {
	used = map[string]bool{}
	d = newMemory("d", nil)
	maps.Copy(d.rows, rows)
	table = NewTable("t", d, TableOptions[string, int]{Linger: func(k string, _ int) bool { return used[k] }})
	return d, table, NewPipeline(PipelineOptions{Log: quiet()}, table), used
}

// A row that is used stays as it was, and is no difference; it is mended like any other,
// and goes when it is used no longer.
func TestRowsLinger(t *testing.T) {
	d, table, p, used := lingering(map[string]int{"found": 3, "left": 4})
	used["found"], used["b"] = true, true
	p.Update(func() { table.Set(map[string]int{"a": 1, "b": 2}) })
	p.Pass(t.Context())
	p.Update(func() { table.Set(nil) })
	see := func(what string, want map[string]int) {
		t.Helper()
		p.Pass(t.Context())
		if !maps.Equal(d.rows, want) {
			t.Errorf("%s: rows %v, want %v", what, d.rows, want)
		}
		s := table.Stats()
		if s.Wanted != len(want) || s.Late != len(want) || s.Pending != 0 || !table.Settled() {
			t.Errorf("%s: %+v", what, s)
		}
		if changes := table.Changes(); len(changes) > 0 {
			t.Errorf("%s: differences %+v", what, changes)
		}
	}
	see("none is wanted", map[string]int{"found": 3, "b": 2})
	delete(d.rows, "b")
	d.rows["found"] = 7
	p.RelistAll()
	see("one was lost, and one is another", map[string]int{"found": 3, "b": 2})
	p.Update(func() { table.Set(nil) })
	see("none is wanted, again", map[string]int{"found": 3, "b": 2})
	used["found"] = false
	see("one is used no longer", map[string]int{"b": 2})
	used["b"] = false
	see("the other is not, either", map[string]int{})
}

// A row that lingers and is wanted again is like any other.
func TestRowsAreWantedAgain(t *testing.T) {
	d, table, p, used := lingering(map[string]int{"a": 1})
	used["a"] = true
	p.Update(func() { table.Set(nil) })
	p.Pass(t.Context())
	p.Update(func() { table.Update(map[string]int{"a": 2}, nil) })
	used["a"] = false
	p.Pass(t.Context())
	if s := table.Stats(); d.rows["a"] != 2 || s.Late != 0 || s.Wanted != 1 {
		t.Errorf("rows %v, %+v", d.rows, s)
	}
	p.Update(func() { table.Update(nil, []string{"a"}) })
	p.Pass(t.Context())
	if len(d.rows) > 0 {
		t.Errorf("rows %v", d.rows)
	}
}

// What would linger is no difference of a pipeline that only compares, either.
func TestRowsLingerDry(t *testing.T) {
	_, table, p, used := lingering(map[string]int{"a": 1, "b": 1})
	used["a"] = true
	p.Update(func() { table.Set(nil) })
	changes, err := p.Compare(t.Context())
	if err != nil || len(changes) != 1 || changes[0].Key != "b" {
		t.Errorf("%+v, %v", changes, err)
	}
}
