package main

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

const (
	// releaseEvery is how often it is looked whether BGP has been told all.
	releaseEvery = 20 * time.Millisecond
	// progressEvery is how often the rows that wait are counted.
	progressEvery = time.Second
)

// releaseSpeaker lets the neighbours have this node's End-of-RIB once all databases are in
// sync, what was programmed before a restart has been compared, and all announcements are
// handed over: a neighbour drops what it kept of this node and is not told again. What never
// settles is waited for as long as patience allows, which is asked from then on, and not before
// what is written has an effect. Before
// that nothing of OVN's is told; but what the underlay announces is, for the way to OVN
// may depend on it.
func (n *node) releaseSpeaker(ctx context.Context) error {
	tick, count := time.NewTicker(releaseEvery), time.NewTicker(progressEvery)
	defer tick.Stop()
	defer count.Stop()
	patience := newPatience(time.Now(), n.d.cfg.BGP.GracefulRestart.Time.Duration)
	over := false
	for {
		policies, all := over || n.toldPolicies(), over || n.toldAll()
		if policies {
			n.speaker.PoliciesComplete()
		}
		if n.toldUnicast() {
			n.speaker.UnicastReady()
		}
		if all {
			n.speaker.Ready()
		}
		if policies && all {
			n.d.log.Info("all announcements are handed to BGP", "after", time.Since(n.d.started))
			close(n.released)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case now := <-count.C:
			if !n.d.steps.OVNInSync() || !plane.Written(n.dp) {
				continue
			}
			waiting := n.tables.Waiting()
			if over = patience.over(now, waiting); over {
				n.d.log.Warn("End-of-RIB is sent while announcements still wait", "rows", waiting)
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

// toldAll tells whether BGP has been told all that there is to announce.
func (n *node) toldAll() bool {
	return n.d.steps.AllRemembered() && (n.withdrawn.Load() || n.tables.Complete()) && tables.Of(n.underlay.tables, intent.UnderlayAnnouncements).Settled()
}

// toldUnicast tells the same of plain unicast alone, where that is the underlay's. What
// is exposed without EVPN is among the tenants' announcements.
func (n *node) toldUnicast() bool {
	return !n.d.cfg.Exposure.Used() && tables.Of(n.underlay.tables, intent.UnderlayAnnouncements).Settled()
}

// toldPolicies tells whether BGP has the policies of all VRFs that OVN shows.
func (n *node) toldPolicies() bool {
	return n.d.steps.OVNInSync() && tables.Of(n.tables, intent.Policies).Settled()
}
