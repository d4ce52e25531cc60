package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/paths"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// silencePatience is how long a node may announce nothing of what it is to announce before it
// is not ready. It is longer than a single row may wait, so that the cause is told first.
const silencePatience = 2 * tables.Patience

// alonePatience is how long a node that is to announce may have no session with any neighbour:
// neighbours keep its routes for the restart time. A minute at least outlasts the restart of an
// only route reflector, for which a rollout of sluiced is not to wait.
func alonePatience(c config.GracefulRestart) time.Duration {
	if !c.Enabled {
		return time.Minute
	}
	return max(time.Minute, c.Time.Duration)
}

// watchAnnouncements keeps the component that says whether a node which is to announce
// routes announces any. It looks when something became of one, and once while none is there.
func (g *Gateway) watchAnnouncements(ctx context.Context) error {
	g.reg.SetCondition("announcements", true, reason.Idle, "")
	g.reg.Require("announcements")
	select { // before, no table announces: runTables
	case <-ctx.Done():
		return nil
	case <-g.dp.Used():
	}
	patience := time.NewTimer(0)
	defer patience.Stop()
	silence := silence{none: spell{patience: silencePatience}, alone: spell{patience: alonePatience(g.cfg.BGP.GracefulRestart)}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.announced:
		case <-patience.C:
		}
		s := tables.Of(g.tables, intent.Announcements).Stats()
		wait, told := silence.look(time.Now(), s, g.withdrawn.Load(), g.alone.Load())
		if wait > 0 {
			patience.Reset(wait)
		}
		switch told {
		case reason.Silent:
			g.reg.SetCondition("announcements", false, told, fmt.Sprintf("none of %d routes is announced; %s", s.Wanted, g.unannounced()))
		case reason.NoSession:
			g.reg.SetCondition("announcements", false, told, fmt.Sprintf("%d routes are not announced, since no neighbour has had a session for %s; see the component bgp", s.Wanted, silence.alone.patience))
		case "":
		default:
			g.reg.SetCondition("announcements", true, told, "")
		}
	}
}

// unannounced is what one of the routes waits for that are not announced, always the same of
// the same ones.
func (g *Gateway) unannounced() (why string) {
	var first intent.RouteKey
	t := tables.Of(g.tables, intent.Announcements)
	g.tables.Pipeline.View(func() {
		t.EachLocked(func(k intent.RouteKey, _ intent.Announcement) {
			ok, err := t.StateLocked(k)
			if ok || err == nil || why != "" && paths.Compare(k, first) >= 0 {
				return
			}
			first, why = k, fmt.Sprintf("%s: %v", k, err)
		})
	})
	return why
}

// silence times how long nobody is told of what is to be announced.
type silence struct {
	none  spell // nothing is announced
	alone spell // there is no session
}

// look returns the word for the component, empty while it stays what it was, and after how long
// to look again, 0 when nothing is waited for. A node that is drained is to announce nothing.
func (s *silence) look(now time.Time, rows reconcile.Stats, drained, alone bool) (again time.Duration, word string) {
	wants := rows.Wanted > 0 && !drained
	silent := wants && rows.Actual == 0
	left, over := s.none.look(now, silent)
	aloneLeft, aloneOver := s.alone.look(now, wants && alone)
	if again = left; again == 0 || aloneLeft > 0 && aloneLeft < again {
		again = aloneLeft
	}
	switch {
	case over:
		return again, reason.Silent
	case aloneOver:
		return again, reason.NoSession
	case silent:
		return again, ""
	case rows.Actual > 0:
		return again, reason.Announcing
	}
	return again, reason.Idle
}

// spell is how long something has been so, and may be.
type spell struct {
	patience time.Duration
	since    time.Time
}

// look tells whether it has been so for too long, and if not yet, when it will have been.
func (s *spell) look(now time.Time, so bool) (left time.Duration, over bool) {
	switch {
	case !so:
		s.since = time.Time{}
		return 0, false
	case s.since.IsZero():
		s.since = now
	}
	left = max(0, s.patience-now.Sub(s.since))
	return left, left == 0
}
