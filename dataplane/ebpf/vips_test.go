package ebpf

import (
	"testing"
	"time"
)

// Those VIPs are the first ones, whose flows OVN may have had for hours, that come together.
func TestFirstVIPs(t *testing.T) {
	now := time.Unix(1000, 0)
	b := balancing{first: true, now: func() time.Time { return now }}
	for _, step := range []struct {
		after time.Duration
		first bool
	}{{0, true}, {5 * time.Second, true}, {5 * time.Second, false}, {0, false}} {
		now = now.Add(step.after)
		if b.begin(); b.first != step.first {
			t.Errorf("%v after the start: %t", now.Sub(time.Unix(1000, 0)), b.first)
		}
	}
}
