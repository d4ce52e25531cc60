package measure

import (
	"slices"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var list []time.Duration
	for i := 100; i > 0; i-- {
		list = append(list, time.Duration(i)*time.Millisecond)
	}
	for _, row := range []struct {
		list    []time.Duration
		q, want float64
	}{{list, 0, 1}, {list, 0.5, 51}, {list, 0.99, 100}, {list, 1, 100}, {list[:1], 0.5, 100}, {nil, 0.5, 0}} {
		if got := Quantile(row.list, row.q); got != row.want {
			t.Errorf("quantile %g of %d is %g, want %g", row.q, len(row.list), got, row.want)
		}
	}
	if list[0] != 100*time.Millisecond {
		t.Error("the list has another order")
	}
}

func TestMedian(t *testing.T) {
	for _, row := range []struct {
		list []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 3}} {
		if got := Median(row.list); got != row.want {
			t.Errorf("median of %v is %g, want %g", row.list, got, row.want)
		}
	}
}

func TestQuartiles(t *testing.T) {
	for _, row := range []struct {
		list      []float64
		low, high float64
	}{{nil, 0, 0}, {[]float64{3}, 3, 3}, {[]float64{8, 1, 5, 4, 2, 6, 3, 7}, 3, 7}} {
		if low, high := Quartiles(row.list); low != row.low || high != row.high {
			t.Errorf("quartiles of %v are %g and %g, want %g and %g", row.list, low, high, row.low, row.high)
		}
	}
}

func TestRatios(t *testing.T) {
	if got := Ratios([]float64{2, 9, 5}, []float64{4, 3}); !slices.Equal(got, []float64{0.5, 3}) {
		t.Errorf("got %v", got)
	}
}
