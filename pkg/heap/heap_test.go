package heap

import "testing"

func TestTrimmer(t *testing.T) {
	const mib = 1 << 20
	var tr trimmer
	for i, step := range []struct {
		allocated, live uint64
		due             bool
	}{
		{10 * mib, mib, false}, {200 * mib, mib, false}, {400 * mib, mib, false}, // at work
		{401 * mib, mib, true},                           // quiet
		{402 * mib, mib, false}, {403 * mib, mib, false}, // nothing new
		{408 * mib, mib, false}, {409 * mib, mib, true}, // eight MiB
		{480 * mib, 400 * mib, false}, {481 * mib, 400 * mib, false}, // less than a quarter of what is live
		{510 * mib, 400 * mib, false}, {511 * mib, 400 * mib, true},
	} {
		if got := tr.due(step.allocated, step.live); got != step.due {
			t.Errorf("step %d: due is %t", i, got)
		}
	}
}
