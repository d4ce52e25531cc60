package status

import (
	"cmp"
	"maps"
	"slices"
)

// StateCount is the number of objects of a kind in a state.
type StateCount struct {
	Kind   string `json:"kind"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	Count  int    `json:"count"`
}

// Counts is the number of objects by kind, state and reason.
func (r *Registry) Counts() []StateCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	sums := map[StateCount]int{}
	for _, o := range r.objects {
		sums[StateCount{Kind: o.Kind, State: o.State, Reason: o.Reason}]++
	}
	out := make([]StateCount, 0, len(sums))
	for c, n := range sums {
		c.Count = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b StateCount) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.State, b.State), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// Errors is how often an error appeared since the start, by kind and reason. It
// only grows.
func (r *Registry) Errors() map[ErrorCount]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.errors)
}
