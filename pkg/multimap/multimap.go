// Package multimap has maps with several values of a key, for many keys that have one.
package multimap

import (
	"cmp"
	"iter"
)

// Map has sets of values by key. The zero value is empty and takes none: make one.
type Map[K, V comparable] map[K]Set[V]

// Set are the values of one key. Most keys have one: it needs no map, which would take
// ten times the room.
type Set[V comparable] struct {
	one  V
	more map[V]struct{} // all of them, when there have been several
}

// Add adds a value, once.
func (m Map[K, V]) Add(k K, v V) {
	s, ok := m[k]
	switch {
	case s.more != nil:
		s.more[v] = struct{}{}
	case !ok || s.one == v:
		m[k] = Set[V]{one: v}
	default:
		m[k] = Set[V]{more: map[V]struct{}{s.one: {}, v: {}}}
	}
}

// Delete removes a value; a key with none is gone.
func (m Map[K, V]) Delete(k K, v V) {
	s, ok := m[k]
	if s.more != nil {
		if delete(s.more, v); len(s.more) > 0 {
			return
		}
	} else if !ok || s.one != v {
		return
	}
	delete(m, k)
}

// Has tells whether a key has any value.
func (m Map[K, V]) Has(k K) bool { _, ok := m[k]; return ok }

// Count is how many values a key has.
func (m Map[K, V]) Count(k K) int {
	s, ok := m[k]
	if !ok {
		return 0
	}
	return max(1, len(s.more))
}

// All lists the values of a key in any order. Those that are added or deleted meanwhile
// may be listed or not.
func (m Map[K, V]) All(k K) iter.Seq[V] {
	return func(yield func(V) bool) {
		s, ok := m[k]
		if ok && s.more == nil {
			yield(s.one)
			return
		}
		for v := range s.more {
			if !yield(v) {
				return
			}
		}
	}
}

// First is the smallest value of a key, so that the answer never depends on history; false
// if it has none.
func First[K comparable, V cmp.Ordered](m Map[K, V], k K) (first V, ok bool) {
	for v := range m.All(k) {
		if !ok || v < first {
			first, ok = v, true
		}
	}
	return first, ok
}
