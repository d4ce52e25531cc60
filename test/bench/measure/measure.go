package measure

import (
	"slices"
	"time"
)

// Goal is what a value should be at most, or with Least at least; nil: anything.
type Goal struct {
	Limit float64
	Least bool
}

// AtMost is met by what is not above v.
func AtMost(v float64) *Goal { return &Goal{Limit: v} }

// AtLeast is met by what is not below v.
func AtLeast(v float64) *Goal { return &Goal{Limit: v, Least: true} }

// Result is one number.
type Result struct {
	Name  string
	Value float64
	Unit  string
	Goal  *Goal
	// Condition is under which the value holds, or empty: that of the whole part.
	Condition string
	// Note is a remark, or empty.
	Note string
}

// Quantile is one of the times, in milliseconds; of none it is 0.
func Quantile(list []time.Duration, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return Milliseconds(list[min(len(list)-1, int(q*float64(len(list))))])
}

// Median is the upper one of two; of none it is 0.
func Median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// Quartiles are what half of the values lie between; of none they are 0.
func Quartiles(list []float64) (low, high float64) {
	if len(list) == 0 {
		return 0, 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/4], list[len(list)*3/4]
}

// Ratios are each of a against the one of b beside it. Two that were measured one after the
// other have had the same machine under them, however busy it was.
func Ratios(a, b []float64) (out []float64) {
	for i := range min(len(a), len(b)) {
		out = append(out, a[i]/b[i])
	}
	return out
}

// Milliseconds is a time in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
