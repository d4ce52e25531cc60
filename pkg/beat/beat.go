package beat

import (
	"sync"
	"time"
)

// begun is where the periods of this process begin: its start, and so another moment on each node.
// Its monotonic reading is used, which a clock that is set does not move.
var begun = time.Now()

// Until is the time to the next tick of a Ticker with a period: more than 0, and at most the
// period.
func Until(period time.Duration) time.Duration { return until(time.Since(begun), period) }

func until(elapsed, period time.Duration) time.Duration {
	rest := elapsed % period
	if rest < 0 {
		return -rest
	}
	return period - rest
}

// Ticker sends the time on C once in a period, and drops ticks that nobody has received. The first
// one comes within a period.
type Ticker struct {
	C <-chan time.Time

	c      chan time.Time
	period time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// New starts a Ticker.
func New(period time.Duration) *Ticker {
	t := &Ticker{c: make(chan time.Time, 1), period: period}
	t.C = t.c
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(Until(period), t.tick)
	return t
}

// Stop ends the ticks. It does not close C.
func (t *Ticker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}

func (t *Ticker) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	select {
	case t.c <- time.Now():
	default:
	}
	t.timer.Reset(Until(t.period))
}
