package wanted

import (
	"maps"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Difference is the difference of any tables between two steps.
type Difference struct{ tables map[any]delta } // by the address of an intent.Table

// delta is that of one table.
type delta interface {
	empty() bool
	merge(later delta) delta
	apply(to Set)
}

type tableDelta[K, V comparable] struct {
	of *intent.Table[K, V]
	Delta[K, V]
}

func (d tableDelta[K, V]) empty() bool { return d.Empty() }

func (d tableDelta[K, V]) merge(later delta) delta {
	o, _ := later.(tableDelta[K, V])
	return tableDelta[K, V]{d.of, d.Merge(o.Delta)}
}

func (d tableDelta[K, V]) apply(to Set) {
	rows := Edit(to, d.of)
	for _, k := range d.Delete {
		delete(rows, k)
	}
	maps.Copy(rows, d.Set)
}

// Of is a difference's part that is a table's.
func Of[K, V comparable](d Difference, t *intent.Table[K, V]) Delta[K, V] {
	of, _ := d.tables[t].(tableDelta[K, V])
	return of.Delta
}

// With is a difference with another part for one table.
func With[K, V comparable](d Difference, t *intent.Table[K, V], part Delta[K, V]) Difference {
	out := Difference{maps.Clone(d.tables)}
	if out.tables == nil {
		out.tables = map[any]delta{}
	}
	out.tables[t] = tableDelta[K, V]{t, part}
	return out
}

// Empty tells whether no table differs.
func (d Difference) Empty() bool {
	for _, of := range d.tables {
		if !of.empty() {
			return false
		}
	}
	return true
}

// Diff compares two sets.
func Diff(old, next Set) Difference {
	d := Difference{map[any]delta{}}
	note := func(table any, of delta) {
		if !of.empty() {
			d.tables[table] = of
		}
	}
	for table, rows := range next.tables {
		note(table, rows.since(old.tables[table]))
	}
	for table, rows := range old.tables {
		if _, there := next.tables[table]; !there {
			note(table, rows.gone())
		}
	}
	return d
}

// Merge is the difference of two translations' steps as one. They never want a row at the same
// time: o leaves those alone that the first one has, and was made after it. A row that goes from
// the one to the other changes, and is never deleted.
func (d Difference) Merge(o Difference) Difference {
	out := Difference{maps.Clone(d.tables)}
	if out.tables == nil {
		return o
	}
	for table, later := range o.tables {
		if of, both := out.tables[table]; both {
			later = of.merge(later)
		}
		out.tables[table] = later
	}
	return out
}
