package reconcile

import (
	"maps"
	"slices"
)

// sides are the wanted and the actual rows of a table. Nearly all are equal, so
// an actual row that is as wanted is one bit and no second copy.
type sides[K, V comparable] struct {
	want map[K]wish[V]
	// other are the actual rows that are not wanted, or not like this.
	other  map[K]V
	placed int // actual rows that are as wanted
	// unknown are the keys of which it is not known whether a row is there: a call of
	// the driver has failed. The values are those that it may have. Such a key has no
	// actual row.
	unknown map[K][]V
}

// wish is a wanted row, and whether the actual one equals it.
type wish[V comparable] struct {
	value  V
	placed bool
}

func newSides[K, V comparable]() sides[K, V] {
	return sides[K, V]{want: map[K]wish[V]{}, other: map[K]V{}, unknown: map[K][]V{}}
}

func (s *sides[K, V]) wanted(k K) (V, bool) {
	w, ok := s.want[k]
	return w.value, ok
}

func (s *sides[K, V]) actual(k K) (V, bool) {
	if w := s.want[k]; w.placed {
		return w.value, true
	}
	v, ok := s.other[k]
	return v, ok
}

func (s *sides[K, V]) actualLen() int { return s.placed + len(s.other) }

// possible are the values that a row may have that is there, or may be there.
func (s *sides[K, V]) possible(k K) []V {
	if v, there := s.actual(k); there {
		return []V{v}
	}
	return s.unknown[k]
}

// doubt makes a key unknown: what may be there so far stays so, and tried may be there, too.
func (s *sides[K, V]) doubt(k K, tried ...V) {
	values := slices.Clip(s.possible(k))
	for _, v := range tried {
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	s.forget(k)
	s.unknown[k] = values
}

// setWanted wants a row, whatever the actual one is.
func (s *sides[K, V]) setWanted(k K, v V) {
	a, there := s.actual(k)
	s.unplace(k)
	s.want[k] = wish[V]{value: v}
	if there {
		s.setActual(k, a)
	}
}

func (s *sides[K, V]) unwant(k K) {
	a, there := s.actual(k)
	s.unplace(k)
	delete(s.want, k)
	if there {
		s.other[k] = a
	}
}

func (s *sides[K, V]) setActual(k K, v V) {
	s.forget(k)
	if w, ok := s.want[k]; ok && w.value == v {
		s.want[k] = wish[V]{v, true}
		s.placed++
		return
	}
	s.other[k] = v
}

// forget has no row be there.
func (s *sides[K, V]) forget(k K) {
	delete(s.unknown, k)
	s.unplace(k)
}

// unplace takes an actual row away.
func (s *sides[K, V]) unplace(k K) {
	delete(s.other, k)
	if w := s.want[k]; w.placed {
		s.want[k] = wish[V]{value: w.value}
		s.placed--
	}
}

// setAllActual replaces the actual rows: all keys are known.
func (s *sides[K, V]) setAllActual(rows map[K]V) {
	s.other, s.unknown = map[K]V{}, map[K][]V{}
	for k, w := range s.want {
		if w.placed {
			s.unplace(k)
		}
	}
	for k, v := range rows {
		s.setActual(k, v)
	}
}

// copies are both sides as maps.
func (s *sides[K, V]) copies() (wanted, actual map[K]V) {
	wanted, actual = make(map[K]V, len(s.want)), make(map[K]V, s.actualLen())
	maps.Copy(actual, s.other)
	for k, w := range s.want {
		wanted[k] = w.value
		if w.placed {
			actual[k] = w.value
		}
	}
	return wanted, actual
}
