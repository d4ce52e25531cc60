package main

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
)

// releaseEvery is how often it is looked whether BGP has been told all.
const releaseEvery = 20 * time.Millisecond

// releaseSpeaker lets the sessions start once all databases are in sync, what was
// programmed before a restart has been compared, and all announcements are handed
// over: a neighbour drops what it kept of this node and is not told again. What never
// settles is waited for no longer than bgp.DefaultDeferralTime after OVN is in sync.
// Before that nothing of OVN's is told; but what the underlay announces is, for the way
// to OVN may depend on it.
func (n *node) releaseSpeaker(ctx context.Context) error {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	var since time.Time // OVN was first in sync
	for {
		if since.IsZero() && n.d.ovnInSync() {
			since = time.Now()
		}
		over := !since.IsZero() && time.Since(since) > bgp.DefaultDeferralTime
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
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// toldAll tells whether BGP has been told all that there is to announce.
func (n *node) toldAll() bool {
	return n.d.allInSync() && (n.withdrawn.Load() || n.tables.Complete()) && n.underlay.tables.Announcements.Settled()
}

// toldUnicast tells the same of plain unicast alone, where that is the underlay's. What
// is exposed without EVPN is among the tenants' announcements.
func (n *node) toldUnicast() bool {
	return !n.d.cfg.Exposure.Used() && n.underlay.tables.Announcements.Settled()
}

// toldPolicies tells whether BGP has the policies of all VRFs that OVN shows.
func (n *node) toldPolicies() bool { return n.d.ovnInSync() && n.tables.Policies.Settled() }
