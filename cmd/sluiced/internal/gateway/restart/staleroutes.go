// Package restart has what outlives a restart of the daemon: routes that BGP does not show yet, and
// the release of the sessions when all is told.
package restart

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// lingerTime is how long routes of a VTEP that was there before a restart,
// and of which BGP shows nothing now, are kept: it may be restarting, too.
const lingerTime = 30 * time.Second

// StaleRoutes decides what is kept of the routes that were there before a restart and that
// BGP does not show: those of a VTEP that BGP does not show at all, for lingerTime,
// and those of one that it does until the VTEP has had its latest new route for
// bgp.ReturnTime. A node that comes back announces one route after the other.
type StaleRoutes struct {
	mu sync.Mutex
	// end is lingerTime after BGP was in sync first; zero before.
	end time.Time
	// latest is when a VTEP had its latest new route; nil after end.
	latest map[netip.Addr]time.Time
	// news is filled when the times at which something ends are others.
	news loop.Signal
}

// NewStaleRoutes makes it, before BGP has said anything.
func NewStaleRoutes() *StaleRoutes {
	return &StaleRoutes{latest: map[netip.Addr]time.Time{}, news: loop.NewSignal()}
}

// Note takes the VTEPs and routes that are new, and whether BGP is in sync.
func (l *StaleRoutes) Note(u bgp.ImportUpdate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if u.InSync && l.end.IsZero() {
		l.end = now.Add(lingerTime)
	}
	if l.over(now) {
		l.latest = nil
		return
	}
	for _, v := range u.VTEPs {
		l.latest[v.Addr] = now
	}
	for _, r := range u.Upserts {
		for _, h := range r.NextHops.All() {
			l.latest[h.VTEP] = now
		}
	}
	l.news.Send()
}

func (l *StaleRoutes) over(now time.Time) bool {
	return l.latest == nil || !l.end.IsZero() && now.After(l.end)
}

// Keeps tells whether a route that BGP does not show is kept for a while. known tells
// whether BGP shows a VTEP.
func (l *StaleRoutes) Keeps(hops intent.NextHopSet, known func(netip.Addr) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.end.IsZero() || l.over(now) {
		return false
	}
	for _, h := range hops.All() {
		// One that was shown stays so after bgp.vtepLinger, too, which may be short.
		latest, shown := l.latest[h.VTEP]
		if (shown || known(h.VTEP)) && now.Sub(latest) > bgp.ReturnTime {
			return false
		}
	}
	return true
}

// next is when something is kept no longer; false when nothing is any more, or BGP was
// not in sync yet.
func (l *StaleRoutes) next() (at time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.end.IsZero() || l.over(now) {
		return at, false
	}
	at = l.end
	for _, t := range l.latest {
		if t = t.Add(bgp.ReturnTime); t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at, true
}

// Run has the tables looked at again whenever something is kept no longer.
func (l *StaleRoutes) Run(ctx context.Context, look func()) error {
	for {
		var ended <-chan time.Time
		if at, ok := l.next(); ok {
			ended = time.After(time.Until(at) + time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.news:
		case <-ended:
			look()
		}
	}
}
