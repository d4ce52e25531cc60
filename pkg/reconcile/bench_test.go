package reconcile

import (
	"context"
	"testing"
)

// instant is a driver that does nothing.
type instant struct{}

func (instant) List(context.Context) (map[int]int, error)      { return map[int]int{}, nil }
func (instant) Apply(context.Context, []Row[int, int]) []error { return nil }
func (instant) Delete(context.Context, []int) []error          { return nil }

// BenchmarkPass writes 20,000 rows and deletes them, and what the engine takes for that.
func BenchmarkPass(b *testing.B) {
	rows := map[int]int{}
	for i := range 20000 {
		rows[i] = i
	}
	for b.Loop() {
		t := NewTable("a", instant{}, TableOptions[int, int]{})
		p := NewPipeline(PipelineOptions{Log: quiet()}, t)
		p.Update(func() { t.Set(rows) })
		p.Pass(b.Context())
		p.Update(func() { t.Set(nil) })
		p.Pass(b.Context())
	}
}

// BenchmarkSmallPass changes one row of 20,000.
func BenchmarkSmallPass(b *testing.B) {
	rows := map[int]int{}
	for i := range 20000 {
		rows[i] = i
	}
	t := NewTable("a", instant{}, TableOptions[int, int]{})
	p := NewPipeline(PipelineOptions{Log: quiet()}, t)
	p.Update(func() { t.Set(rows) })
	p.Pass(b.Context())
	n := 0
	for b.Loop() {
		n++
		p.Update(func() { t.Update(map[int]int{7: n}, nil) })
		p.Pass(b.Context())
	}
}
