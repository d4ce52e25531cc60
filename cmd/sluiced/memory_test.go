package main

import "testing"

func TestTrimmer(t *testing.T) {
	const mib = 1 << 20
	var tr trimmer
	for i, step := range []struct {
		allocated uint64
		due       bool
	}{
		{10 * mib, false}, {200 * mib, false}, {400 * mib, false}, // at work
		{401 * mib, true},                      // quiet
		{402 * mib, false}, {403 * mib, false}, // nothing new
		{480 * mib, false}, {481 * mib, true},
	} {
		if got := tr.due(step.allocated); got != step.due {
			t.Errorf("step %d: due is %t", i, got)
		}
	}
}
