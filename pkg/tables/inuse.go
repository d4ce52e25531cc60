package tables

import (
	"maps"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// mostLingering is how many rows of a table stay for flows at most, and lingeringPart the part
// of the map that they may take: those that are wanted have room.
const (
	mostLingering = 4096
	lingeringPart = 4
)

// lingerMemory is how long after its end it is known that a row lingered. It is more than the
// tables go without a pass.
const lingerMemory = 10 * time.Minute

// linger is until when rows stay that nobody asks for any more, since flows that are known may
// need them. What was never told to have been left is left when it is first seen to be: after
// a start, what the last process found no time to remove. Guarded by the pipeline.
type linger[K comparable] struct {
	now   func() time.Time
	most  int
	until map[K]time.Time
}

// newLinger is for a table whose map has room for so many rows; 0: it does not matter.
func newLinger[K comparable](room int) linger[K] {
	most := mostLingering
	if room > 0 {
		most = min(most, room/lingeringPart)
	}
	return linger[K]{now: time.Now, most: most, until: map[K]time.Time{}}
}

// leave has a row stay from now on; with ended its flows have ended, and only others may
// need it.
func (l *linger[K]) leave(k K, ended bool) {
	now := l.now()
	switch {
	case !ended:
		l.until[k] = now.Add(intent.FlowIdle)
	case l.until[k].Before(now):
		l.until[k] = now
	}
}

// used has a row that stays do so until what used it last, so long ago, is idle.
func (l *linger[K]) used(k K, ago time.Duration) {
	if end := l.now().Add(intent.FlowIdle - ago); l.until[k].Before(end) && l.ends(k, intent.FlowIdle) {
		l.until[k] = end
	}
}

// ends tells whether a row stays, and will not any more after some time.
func (l *linger[K]) ends(k K, within time.Duration) bool {
	until, seen := l.until[k]
	now := l.now()
	return seen && now.Before(until) && !now.Add(within).Before(until)
}

// keeps tells whether a row stays.
func (l *linger[K]) keeps(k K) bool {
	now := l.now()
	until, seen := l.until[k]
	if seen && now.Before(until.Add(lingerMemory)) {
		return now.Before(until)
	}
	if !seen && len(l.until) >= l.most {
		return false
	}
	l.until[k] = now.Add(intent.FlowIdle)
	return true
}

// forget drops what is over, and of more rows than may stay those that would go first.
func (l *linger[K]) forget() {
	now := l.now()
	maps.DeleteFunc(l.until, func(_ K, until time.Time) bool { return !now.Before(until.Add(lingerMemory)) })
	if len(l.until) <= l.most {
		return
	}
	type end struct {
		key K
		at  time.Time
	}
	ends := make([]end, 0, len(l.until))
	for k, at := range l.until {
		ends = append(ends, end{k, at})
	}
	slices.SortFunc(ends, func(a, b end) int { return a.at.Compare(b.at) })
	for _, e := range ends[:len(ends)-l.most] {
		delete(l.until, e.key)
	}
}
