package maglev

import (
	"fmt"
	"slices"
	"testing"
)

// TestDisruption removes one backend of n. Its own slots have to move; what moves besides is bounded, as a part of the
// table, in the mean, in 99 of 100 removals and in all. Adding the backend again moves the same slots back.
func TestDisruption(t *testing.T) {
	for _, tt := range []struct {
		backends, sets, removals int
		mean, p99, worst         float64 // percent
	}{
		{3, 300, 3, 0.8, 1.8, 2.5},
		{10, 100, 10, 3, 4, 5},
		{100, 4, 25, 1.6, 1.8, 2},
		{1000, 2, 10, 0.7, 0.8, 0.9},
	} {
		size, _ := Size(tt.backends, 0)
		var least, besides []float64
		for set := range tt.sets {
			backends := named(set, tt.backends)
			whole := build(t, backends, size)
			for k := range tt.removals {
				gone := k * tt.backends / tt.removals
				rest := build(t, slices.Delete(slices.Clone(backends), gone, gone+1), size)
				own := counts(whole)[gone]
				least = append(least, percent(own, size))
				besides = append(besides, percent(moved(whole, rest)-own, size))
			}
		}
		check(t, fmt.Sprintf("1 of %d, M = %d", tt.backends, size), least, besides, tt.mean, tt.p99, tt.worst)
	}
}

// TestDisruptionOfWeights gives one backend of ten another weight than 100.
func TestDisruptionOfWeights(t *testing.T) {
	for _, tt := range []struct {
		weight           uint16
		mean, p99, worst float64 // percent
	}{
		{0, 3, 4, 5},
		{1, 3, 4, 5},
		{50, 2.5, 3.8, 4.5},
		{99, 1, 2, 3},
		{200, 2.5, 3.8, 4.5},
		{256, 2.5, 3.8, 4.5},
	} {
		const n = 10
		size, _ := Size(n, 0)
		var least, besides []float64
		for set := range 300 {
			backends := named(set, n)
			before := build(t, backends, size)
			backends[set%n].Weight = tt.weight
			after := build(t, backends, size)
			own := 0
			for i, slots := range counts(after) {
				own += max(0, counts(before)[i]-slots)
			}
			least = append(least, percent(own, size))
			besides = append(besides, percent(moved(before, after)-own, size))
		}
		check(t, fmt.Sprintf("1 of %[2]d from weight 100 to %[1]d, M = %[3]d", tt.weight, n, size), least, besides, tt.mean, tt.p99, tt.worst)
	}
}

// check bounds what moved besides what had to.
func check(t *testing.T, what string, least, besides []float64, mean, p99, worst float64) {
	t.Helper()
	slices.Sort(besides)
	gotMean, got99, got := average(besides), besides[(len(besides)-1)*99/100], besides[len(besides)-1]
	t.Logf("%s: %.2f %% have to move, %.2f %% do besides, 99 of 100 times at most %.2f %%, of %d at worst %.2f %%", what, average(least), gotMean, got99, len(besides), got)
	if gotMean > mean || got99 > p99 || got > worst {
		t.Errorf("%s: the bounds are %v %%, 99 of 100 times %v %%, and %v %%", what, mean, p99, worst)
	}
}

func average(of []float64) float64 {
	sum := 0.0
	for _, x := range of {
		sum += x
	}
	return sum / float64(len(of))
}

// named is n backends of weight 100, others in each set.
func named(set, n int) []Backend {
	out := equal(n, 100)
	for i := range out {
		out[i].Key = fmt.Sprintf("10.%d%s", set, out[i].Key[len("10.0"):])
	}
	return out
}

// moved is how many slots have another key.
func moved(a, b Table) int {
	n, of := 0, keys(b)
	for slot, k := range keys(a) {
		if k != of[slot] {
			n++
		}
	}
	return n
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }
