package ebpf

import (
	"maps"
	"slices"
)

// few is a set that mostly has one element, and may have thousands: a map for each of
// them takes 300 bytes.
type few[K comparable] struct {
	list []K            // while there are at most fewMax
	many map[K]struct{} // after that
}

const fewMax = 8

func (f *few[K]) add(k K) {
	switch {
	case f.many != nil:
		f.many[k] = struct{}{}
	case slices.Contains(f.list, k):
	case len(f.list) < fewMax:
		f.list = append(slices.Grow(f.list, 1), k)
	default:
		f.many = map[K]struct{}{k: {}}
		for _, o := range f.list {
			f.many[o] = struct{}{}
		}
		f.list = nil
	}
}

func (f *few[K]) remove(k K) {
	if f.many == nil {
		f.list = slices.DeleteFunc(f.list, func(o K) bool { return o == k })
		return
	}
	delete(f.many, k)
	if len(f.many) <= fewMax/2 {
		f.list, f.many = slices.Collect(maps.Keys(f.many)), nil
	}
}

// len is 0 of no set at all.
func (f *few[K]) len() int {
	if f == nil {
		return 0
	}
	return len(f.list) + len(f.many)
}

// all is in no order.
func (f *few[K]) all() []K {
	if f.many == nil {
		return slices.Clone(f.list)
	}
	return slices.Collect(maps.Keys(f.many))
}
