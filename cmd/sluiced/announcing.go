package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// silencePatience is how long a node may announce nothing of what it is to announce before it
// is not ready. It is longer than a single row may wait, so that the cause is told first.
const silencePatience = 2 * tables.Patience

// watchAnnouncements keeps the component that says whether a node which is to announce
// routes announces any. It looks when something became of one, and once while none is there.
func (n *node) watchAnnouncements(ctx context.Context) error {
	n.d.reg.SetCondition("announcements", true, reason.Idle, "")
	n.d.reg.Require("announcements")
	select { // before, no table announces: runTables
	case <-ctx.Done():
		return nil
	case <-n.dp.Used():
	}
	patience := time.NewTimer(0)
	defer patience.Stop()
	silence := silence{patience: silencePatience}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.announced:
		case <-patience.C:
		}
		s := n.tables.Announcements.Stats()
		wait, told := silence.look(time.Now(), s, n.withdrawn.Load())
		if wait > 0 {
			patience.Reset(wait)
		}
		switch told {
		case reason.Silent:
			n.d.reg.SetCondition("announcements", false, told, fmt.Sprintf("%d routes are to be announced, and none is; %s", s.Wanted, n.unannounced()))
		case "":
		default:
			n.d.reg.SetCondition("announcements", true, told, "")
		}
	}
}

// unannounced is what one of the routes waits for that are not announced, always the same of
// the same ones.
func (n *node) unannounced() (why string) {
	var first intent.RouteKey
	t := n.tables.Announcements
	n.tables.Pipeline.View(func() {
		t.EachLocked(func(k intent.RouteKey, _ intent.Announcement) {
			ok, err := t.StateLocked(k)
			if ok || err == nil || why != "" && compareKeys(k, first) >= 0 {
				return
			}
			first, why = k, fmt.Sprintf("%s: %v", k, err)
		})
	})
	return why
}

// silence times how long nothing is announced of what is to be.
type silence struct {
	patience time.Duration
	since    time.Time
}

// look returns the word for the component, empty while it stays what it was, and then after
// how long to look again. A node that is drained is to announce nothing.
func (s *silence) look(now time.Time, rows reconcile.Stats, drained bool) (again time.Duration, word string) {
	silent := rows.Wanted > 0 && rows.Actual == 0 && !drained
	switch {
	case !silent && rows.Actual > 0:
		word = reason.Announcing
	case !silent:
		word = reason.Idle
	case s.since.IsZero():
		s.since = now
		return s.patience, ""
	case now.Sub(s.since) < s.patience:
		return s.patience - now.Sub(s.since), ""
	default:
		return 0, reason.Silent
	}
	s.since = time.Time{}
	return 0, word
}
