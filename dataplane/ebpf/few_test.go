package ebpf

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever is added and removed, a few is the set that a map is.
func TestFew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{1, 4, fewMax, 3 * fewMax} {
		var f few[int]
		want := map[int]struct{}{}
		for range 2000 {
			k := r.IntN(most)
			if r.IntN(2) == 0 {
				f.add(k)
				want[k] = struct{}{}
			} else {
				f.remove(k)
				delete(want, k)
			}
			got := slices.Sorted(slices.Values(f.all()))
			if !slices.Equal(got, slices.Sorted(maps.Keys(want))) || f.len() != len(want) {
				t.Fatalf("of %d: %v, len %d, want %v", most, got, f.len(), want)
			}
		}
	}
}
