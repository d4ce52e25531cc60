package reconcile

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// Any changes of the two sides leave what two plain maps would hold.
func TestSides(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := newSides[int, int]()
	wanted, actual := map[int]int{}, map[int]int{}
	for range 20000 {
		k, v := r.IntN(6), r.IntN(3)
		switch r.IntN(9) {
		case 0, 1, 2:
			s.setWanted(k, v)
			wanted[k] = v
		case 3:
			s.unwant(k)
			delete(wanted, k)
		case 4, 5, 6:
			s.setActual(k, v)
			actual[k] = v
		case 7:
			s.forget(k)
			delete(actual, k)
		default:
			actual = map[int]int{k: v, v: k}
			s.setAllActual(maps.Clone(actual))
		}
		w, a := s.copies()
		if !maps.Equal(w, wanted) || !maps.Equal(a, actual) || s.actualLen() != len(actual) || len(s.want) != len(wanted) {
			t.Fatalf("wanted %v, actual %v; want %v, %v", w, a, wanted, actual)
		}
		for k := range 6 {
			w, okW := s.wanted(k)
			a, okA := s.actual(k)
			if _, ok := wanted[k]; ok != okW || w != wanted[k] {
				t.Fatalf("wanted %d: %d, %t", k, w, okW)
			}
			if _, ok := actual[k]; ok != okA || a != actual[k] {
				t.Fatalf("actual %d: %d, %t", k, a, okA)
			}
		}
	}
}
