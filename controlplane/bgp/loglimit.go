package bgp

import (
	"sync"
	"time"
)

// What a neighbour can cause in the log: of one event logBurst lines at once, and one
// in logEvery from then on. The next line says how many were left out.
const (
	logBurst = 10
	logEvery = 10 * time.Second
	// logKeys bounds what is remembered: events are the server's, and so are the names
	// of neighbours, but nothing says how many there are.
	logKeys = 1024
)

type logLimit struct {
	mu     sync.Mutex
	events map[logKey]*logBudget
}

type logKey struct{ event, neighbor string }

type logBudget struct {
	left    int
	since   time.Time // the last time that one was added
	skipped int
}

// allow tells whether an event may be logged, and how many were not since the last.
func (l *logLimit) allow(k logKey, now time.Time) (ok bool, skipped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.events[k]
	if b == nil {
		if l.events == nil || len(l.events) >= logKeys {
			l.events = map[logKey]*logBudget{}
		}
		b = &logBudget{left: logBurst, since: now}
		l.events[k] = b
	}
	if more := int(now.Sub(b.since) / logEvery); more > 0 {
		b.left, b.since = min(b.left+more, logBurst), b.since.Add(time.Duration(more)*logEvery)
	}
	if b.left == 0 {
		b.skipped++
		return false, 0
	}
	b.left--
	skipped, b.skipped = b.skipped, 0
	return true, skipped
}
