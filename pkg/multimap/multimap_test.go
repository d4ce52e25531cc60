package multimap

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A map after any additions and deletions is what a map of sets is.
func TestMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, want := Map[string, string]{}, map[string]map[string]struct{}{}
	for range 5000 {
		k, id := fmt.Sprint(r.IntN(4)), fmt.Sprint(1+r.IntN(4))
		if r.IntN(2) == 0 {
			x.Add(k, id)
			if want[k] == nil {
				want[k] = map[string]struct{}{}
			}
			want[k][id] = struct{}{}
		} else {
			x.Delete(k, id)
			delete(want[k], id)
		}
		members := slices.Sorted(maps.Keys(want[k]))
		if got := slices.Sorted(x.All(k)); !slices.Equal(got, members) || x.Count(k) != len(members) {
			t.Fatalf("%s: %v, want %v", k, got, members)
		}
		first, ok := First(x, k)
		if ok != (len(members) > 0) || ok && first != members[0] || x.Has(k) != ok {
			t.Fatalf("%s: first is %q, %t of %v", k, first, ok, members)
		}
	}
}
