package owned

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
)

// Objects of one driver are removed in one call, and each has its own result.
func TestTogether(t *testing.T) {
	var calls [][]int
	results := []error{nil, errors.New("stays"), nil}
	things := together([]int{1, 2, 3}, strconv.Itoa, func(_ context.Context, keys []int) []error {
		calls = append(calls, keys)
		return results
	})
	for i, thing := range things {
		if err := thing.Remove(t.Context()); thing.What != strconv.Itoa(i+1) || !errors.Is(err, results[i]) {
			t.Errorf("%s: %v", thing.What, err)
		}
	}
	if len(calls) != 1 || !slices.Equal(calls[0], []int{1, 2, 3}) {
		t.Errorf("removed in calls %v", calls)
	}
	for _, thing := range together([]int{1, 2}, strconv.Itoa, func(context.Context, []int) []error { return nil }) {
		if err := thing.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
