package restart

import (
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
)

// A wait goes on while the rows that wait get fewer, and ends some time before the
// neighbours drop the routes that they keep; but OVN may have been away for longer, and
// then there is time as well to hand over what it says.
func TestPatience(t *testing.T) {
	const restart = 2 * time.Minute
	begin := time.Unix(1_000_000, 0)
	for name, tc := range map[string]struct {
		asked   int // the second at which OVN is in sync
		waiting func(second int) int
		want    time.Duration
	}{
		"none gets there":         {1, func(int) int { return 7 }, bgp.DefaultDeferralTime + 2*time.Second},
		"fewer all the time":      {1, func(s int) int { return 1000 - s }, restart*2/3 + time.Second},
		"fewer, and then no more": {1, func(s int) int { return max(1000-s, 990) }, 10*time.Second + bgp.DefaultDeferralTime + time.Second},
		// Rows that come and go meanwhile are no progress.
		"one that waits, among others":                      {1, func(s int) int { return 1 + s%2 }, 2*time.Second + bgp.DefaultDeferralTime + time.Second},
		"OVN is back late":                                  {100, func(s int) int { return 1000 - s }, 100*time.Second + bgp.DefaultDeferralTime + time.Second},
		"OVN is back after the neighbours have dropped all": {500, func(s int) int { return 1000 - s }, 500*time.Second + bgp.DefaultDeferralTime + time.Second},
	} {
		p := newPatience(begin, restart)
		for s := tc.asked; ; s++ {
			now := begin.Add(time.Duration(s) * time.Second)
			if !p.over(now, tc.waiting(s)) {
				continue
			}
			if got := now.Sub(begin); got != tc.want {
				t.Errorf("%s: over after %s, want %s", name, got, tc.want)
			}
			break
		}
	}
}
