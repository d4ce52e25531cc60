package wanted

import (
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Set has rows of any tables. One goroutine fills it; whoever has it then only reads it.
type Set struct{ tables map[any]rows } // by the address of an intent.Table

// NewSet is one without rows.
func NewSet() Set { return Set{tables: map[any]rows{}} }

// rows are those of one table.
type rows interface {
	// addTo puts the rows into a set, but those whose keys it has.
	addTo(Set)
	// since is the difference from other rows of the table, which may be none.
	since(old rows) delta
	// gone is the difference of no rows from these.
	gone() delta
	// pack is the rows as a list, or nil for none.
	pack() packed
}

type tableRows[K, V comparable] struct {
	of   *intent.Table[K, V]
	rows map[K]V
}

// Rows are those of a table, which may be nil. They are not to be changed.
func Rows[K, V comparable](s Set, t *intent.Table[K, V]) map[K]V {
	if r, ok := s.tables[t].(tableRows[K, V]); ok {
		return r.rows
	}
	return nil
}

// Edit are the rows of a table, to be changed.
func Edit[K, V comparable](s Set, t *intent.Table[K, V]) map[K]V {
	if r, ok := s.tables[t].(tableRows[K, V]); ok {
		return r.rows
	}
	r := tableRows[K, V]{t, map[K]V{}}
	s.tables[t] = r
	return r.rows
}

// Put puts a row into a table, in place of another one with its key.
func Put[K, V comparable](s Set, t *intent.Table[K, V], row V) { Edit(s, t)[t.Key(row)] = row }

// Replace is the set with other rows of one table. All others are shared.
func Replace[K, V comparable](s Set, t *intent.Table[K, V], with map[K]V) Set {
	out := Set{maps.Clone(s.tables)}
	out.tables[t] = tableRows[K, V]{t, with}
	return out
}

// Apply makes the set what a difference from it says.
func (s Set) Apply(d Difference) {
	for _, of := range d.tables {
		of.apply(s)
	}
}

// Merge adds the rows of another set whose keys this one has not.
func (s Set) Merge(o Set) {
	for _, r := range o.tables {
		r.addTo(s)
	}
}

func (r tableRows[K, V]) addTo(s Set) {
	into := Edit(s, r.of)
	for k, v := range r.rows {
		if _, there := into[k]; !there {
			into[k] = v
		}
	}
}

func (r tableRows[K, V]) since(old rows) delta {
	before, _ := old.(tableRows[K, V])
	return tableDelta[K, V]{r.of, NewDelta(before.rows, r.rows)}
}

func (r tableRows[K, V]) gone() delta {
	return tableDelta[K, V]{r.of, NewDelta(r.rows, nil)}
}

func (r tableRows[K, V]) pack() packed {
	if len(r.rows) == 0 {
		return nil
	}
	return tableList[K, V]{r.of, slices.AppendSeq(make([]V, 0, len(r.rows)), maps.Values(r.rows))}
}

// Packed are rows of any tables to keep: a row has its key in itself, and a list has no room to
// spare. As maps the rows of a VRF take three times as much.
type Packed []packed

type packed interface{ addTo(Set) }

type tableList[K, V comparable] struct {
	of   *intent.Table[K, V]
	rows []V
}

// Pack is the set to keep.
func (s Set) Pack() Packed {
	var out Packed
	for _, r := range s.tables {
		if p := r.pack(); p != nil {
			out = append(out, p)
		}
	}
	return slices.Clip(out)
}

// AddTo puts the rows into a set, in place of others with their keys.
func (p Packed) AddTo(s Set) {
	for _, list := range p {
		list.addTo(s)
	}
}

// Set is the set again.
func (p Packed) Set() Set {
	s := NewSet()
	p.AddTo(s)
	return s
}

func (l tableList[K, V]) addTo(s Set) {
	into := Edit(s, l.of)
	for _, v := range l.rows {
		into[l.of.Key(v)] = v
	}
}

// List are the rows of a table, in no order. They are not to be changed.
func List[K, V comparable](p Packed, t *intent.Table[K, V]) []V {
	for _, list := range p {
		if l, ok := list.(tableList[K, V]); ok && l.of == t {
			return l.rows
		}
	}
	return nil
}
