package beat

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUntil(t *testing.T) {
	for _, row := range []struct{ elapsed, period, want time.Duration }{
		{300, time.Second, time.Second - 300},
		{7*time.Second + 300, 10 * time.Second, 3*time.Second - 300},
		{10 * time.Second, time.Second, time.Second}, // now is a tick: the next one is meant
		{10*time.Second - 1, time.Second, 1},
		{-300, time.Second, 300}, // before the start, as in a test's own time
	} {
		if got := until(row.elapsed, row.period); got != row.want {
			t.Errorf("%s after the start, period %s: %s, want %s", row.elapsed, row.period, got, row.want)
		}
	}
}

// TestTogether has tickers that were started at different times tick at the same moments.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := New(2 * time.Second)
		defer slow.Stop()
		time.Sleep(300 * time.Millisecond)
		fast := New(500 * time.Millisecond)
		defer fast.Stop()
		at := map[time.Time]bool{}
		for begin := time.Now(); time.Since(begin) < 20*time.Second; {
			select {
			case now := <-fast.C:
				at[now] = true
			case now := <-slow.C:
				synctest.Wait()
				select {
				case other := <-fast.C:
					at[other] = true
				default:
				}
				if time.Since(begin) > time.Second && !at[now] {
					t.Fatalf("a tick of the slow one at %s, and none of the fast one", now)
				}
			}
		}
		if n := len(at); n < 38 || n > 41 {
			t.Errorf("%d ticks in 20 s, want 40", n)
		}
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := New(time.Second)
		tick.Stop()
		select {
		case <-tick.C:
			t.Error("a tick after the end")
		case <-time.After(time.Minute):
		}
	})
}
