// Package loglimit bounds what somebody else can cause in the log, such as a neighbour:
// of one event ten lines at once, and one in ten seconds from then on. It decides; the
// caller writes, and says how many lines were left out.
package loglimit

import (
	"sync"
	"time"
)

// What an event may have.
const (
	burst = 10
	every = 10 * time.Second
	// most bounds what is remembered: there are few events, but nothing says how many
	// others cause them.
	most = 1024
)

// Limit counts lines. The zero value is ready, and several goroutines may use it.
type Limit struct {
	mu     sync.Mutex
	events map[key]*budget
}

type key struct{ event, cause string }

type budget struct {
	left    int
	since   time.Time // the last time that one was added
	skipped int
}

// Allow tells whether an event may be logged, and how many of it were not since the
// last that was; cause is who the event is of.
func (l *Limit) Allow(event, cause string, now time.Time) (ok bool, skipped int) {
	k := key{event, cause}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.events[k]
	if b == nil {
		if l.events == nil || len(l.events) >= most {
			l.events = map[key]*budget{}
		}
		b = &budget{left: burst, since: now}
		l.events[k] = b
	}
	if more := int(now.Sub(b.since) / every); more > 0 {
		b.left, b.since = min(b.left+more, burst), b.since.Add(time.Duration(more)*every)
	}
	if b.left == 0 {
		b.skipped++
		return false, 0
	}
	b.left--
	skipped, b.skipped = b.skipped, 0
	return true, skipped
}
