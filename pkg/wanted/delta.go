package wanted

import (
	"maps"
	"slices"
)

// Delta is the difference of one table: rows to put and keys to remove.
type Delta[K, V comparable] struct {
	Set    map[K]V
	Delete []K
}

// Empty tells whether nothing differs.
func (d Delta[K, V]) Empty() bool { return len(d.Set) == 0 && len(d.Delete) == 0 }

// NewDelta is the difference between two states of one table.
func NewDelta[K, V comparable](old, next map[K]V) Delta[K, V] {
	var d Delta[K, V]
	for k, v := range next {
		if o, ok := old[k]; !ok || o != v {
			if d.Set == nil {
				d.Set = map[K]V{}
			}
			d.Set[k] = v
		}
	}
	for k := range old {
		if _, ok := next[k]; !ok {
			d.Delete = append(d.Delete, k)
		}
	}
	return d
}

// Then is the difference of a step and of another one of the same source behind it.
func (d Delta[K, V]) Then(next Delta[K, V]) Delta[K, V] {
	out := Delta[K, V]{Set: maps.Clone(d.Set)}
	if out.Set == nil {
		out.Set = map[K]V{}
	}
	for _, k := range next.Delete {
		delete(out.Set, k)
	}
	maps.Copy(out.Set, next.Set)
	for _, k := range slices.Concat(d.Delete, next.Delete) {
		if _, set := out.Set[k]; !set {
			out.Delete = append(out.Delete, k)
		}
	}
	return out
}

// Merge is two differences as one, of translations that never want a row at the same time: o was
// made after d. A row that goes from the one to the other changes, and is never deleted.
func (d Delta[K, V]) Merge(o Delta[K, V]) Delta[K, V] {
	if o.Empty() {
		return d
	}
	var out Delta[K, V]
	out.Set = maps.Clone(o.Set)
	if out.Set == nil {
		out.Set = map[K]V{}
	}
	maps.Copy(out.Set, d.Set)
	for _, k := range slices.Concat(d.Delete, o.Delete) {
		if _, set := out.Set[k]; !set {
			out.Delete = append(out.Delete, k)
		}
	}
	return out
}
