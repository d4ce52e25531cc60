package restart

import (
	"context"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
)

const (
	// releaseEvery is how often it is looked whether BGP has been told all.
	releaseEvery = 20 * time.Millisecond
	// progressEvery is how often the rows that wait are counted.
	progressEvery = time.Second
)

// Sessions are told what they may send.
type Sessions interface {
	// PoliciesComplete: all route targets are known. UnicastReady: plain unicast is handed over.
	// Ready: all is.
	PoliciesComplete()
	UnicastReady()
	Ready()
}

// Told is what of a node has been handed to its sessions.
type Told struct{ Policies, Unicast, All bool }

// Node is a node that has started.
type Node interface {
	Told() Told
	// Waiting is how many announcements wait; false while they wait for others than themselves.
	Waiting() (rows int, counts bool)
}

// Release lets the neighbours have this node's End-of-RIB once all databases are in
// sync, what was programmed before a restart has been compared, and all announcements are
// handed over: a neighbour drops the stale routes of this node that it is not told again. Rows that
// never settle delay it until patience ends, which begins when written rows take effect. Until then
// only the underlay's routes are announced: the path to OVN may need them. It returns false if ctx
// ends first.
func Release(ctx context.Context, s Sessions, n Node, restart time.Duration, log *slog.Logger) bool {
	tick, count := time.NewTicker(releaseEvery), time.NewTicker(progressEvery)
	defer tick.Stop()
	defer count.Stop()
	patience := newPatience(time.Now(), restart)
	over := false
	for {
		told := n.Told()
		told.Policies, told.All = over || told.Policies, over || told.All
		if told.Policies {
			s.PoliciesComplete()
		}
		if told.Unicast {
			s.UnicastReady()
		}
		if told.All {
			s.Ready()
		}
		if told.Policies && told.All {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		case now := <-count.C:
			waiting, counts := n.Waiting()
			if !counts {
				continue
			}
			if over = patience.over(now, waiting); over {
				log.Warn("End-of-RIB is sent while announcements still wait", "rows", waiting)
			}
		}
	}
}

// patience bounds a wait by the time without progress, and as a whole: neighbours keep
// a node's routes for the restart time and no longer. Whatever came before, it is never
// over sooner than DefaultDeferralTime after it was first asked.
type patience struct {
	end   time.Time
	least int
	since time.Time // least was first seen; zero: it was not asked yet
}

func newPatience(now time.Time, restart time.Duration) *patience {
	return &patience{end: now.Add(restart * 2 / 3)}
}

// over is told how many rows wait.
func (p *patience) over(now time.Time, waiting int) bool {
	if p.since.IsZero() {
		if least := now.Add(bgp.DefaultDeferralTime); p.end.Before(least) {
			p.end = least
		}
	}
	if p.since.IsZero() || waiting < p.least {
		p.least, p.since = waiting, now
	}
	return now.Sub(p.since) > bgp.DefaultDeferralTime || now.After(p.end)
}
