package ovn

import "iter"

// index finds rows by a key. A set is kept per key since a name may be carried by
// two rows for a moment, between a deletion and an insertion in one batch.
type index[K comparable] map[K]members

// members are rows of one key. Most keys have one: it needs no map, which would
// take ten times the room.
type members struct {
	one  UUID
	more map[UUID]struct{} // all of them, when there are several
}

func (x index[K]) add(k K, id UUID) {
	m := x[k]
	switch {
	case m.more != nil:
		m.more[id] = struct{}{}
	case m.one == "" || m.one == id:
		x[k] = members{one: id}
	default:
		x[k] = members{more: map[UUID]struct{}{m.one: {}, id: {}}}
	}
}

func (x index[K]) del(k K, id UUID) {
	m := x[k]
	delete(m.more, id)
	if m.one == id || m.more != nil && len(m.more) == 0 {
		delete(x, k)
	}
}

func (x index[K]) has(k K) bool { _, ok := x[k]; return ok }

func (x index[K]) count(k K) int {
	m, ok := x[k]
	if !ok {
		return 0
	}
	return max(1, len(m.more))
}

// all lists the members in any order. Those that are added or deleted meanwhile
// may be listed or not.
func (x index[K]) all(k K) iter.Seq[UUID] {
	return func(yield func(UUID) bool) {
		m := x[k]
		if m.one != "" {
			yield(m.one)
			return
		}
		for id := range m.more {
			if !yield(id) {
				return
			}
		}
	}
}

// first is the smallest member, so that the answer never depends on history.
func (x index[K]) first(k K) (UUID, bool) {
	var best UUID
	for id := range x.all(k) {
		if best == "" || id < best {
			best = id
		}
	}
	return best, best != ""
}
