package ovn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// An index after any additions and deletions is what a map of sets is.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, want := index[string]{}, map[string]map[UUID]struct{}{}
	for range 5000 {
		k, id := fmt.Sprint(r.IntN(4)), UUID(fmt.Sprint(1+r.IntN(4)))
		if r.IntN(2) == 0 {
			x.add(k, id)
			if want[k] == nil {
				want[k] = map[UUID]struct{}{}
			}
			want[k][id] = struct{}{}
		} else {
			x.del(k, id)
			delete(want[k], id)
		}
		members := slices.Sorted(maps.Keys(want[k]))
		if got := slices.Sorted(x.all(k)); !slices.Equal(got, members) || x.count(k) != len(members) {
			t.Fatalf("%s: %v, want %v", k, got, members)
		}
		first, ok := x.first(k)
		if ok != (len(members) > 0) || ok && first != members[0] || x.has(k) != ok {
			t.Fatalf("%s: first is %q, %t of %v", k, first, ok, members)
		}
	}
}
