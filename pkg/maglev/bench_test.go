package maglev

import (
	"fmt"
	"testing"
)

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1, 3, 10, 100, 1000, 10000} {
		size, _ := Size(n, 0)
		skewed := equal(n, 1)
		skewed[n/2].Weight = MaxWeight
		for name, backends := range map[string][]Backend{"equal": equal(n, 1), "skewed": skewed} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					build(b, backends, size)
				}
			})
		}
	}
}

// BenchmarkBuild10000 makes 10,000 tables of 10 other backends each, with their hashes.
func BenchmarkBuild10000(b *testing.B) {
	var sets [10000][]Backend
	for i := range sets {
		sets[i] = named(i, 10)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, backends := range sets {
			build(b, backends, 1021).Hash()
		}
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{10, 1000} {
		size, _ := Size(n, 0)
		table := build(b, equal(n, 1), size)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				table.Hash()
			}
		})
	}
}
