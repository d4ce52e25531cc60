package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/pkg/reason"
)

const (
	promoteInterval = 200 * time.Millisecond
	// promotePatience bounds the wait for rows that wait for something themselves,
	// as those of a bridge that is not there, once all is known that is wanted.
	promotePatience = 30 * time.Second
)

// noteLoaded reports the data plane. While maps of an older layout forward, what
// changes has no effect.
func (n *node) noteLoaded() {
	detail := fmt.Sprintf("VTEP %s, underlay MTU %d", n.id.vtep, n.mtu)
	if n.dp.Staged() {
		n.d.reg.SetCondition("dataplane", false, reason.Rebuilding, detail)
		return
	}
	n.d.reg.SetCondition("dataplane", true, reason.Loaded, detail)
}

// promote changes from maps of an older layout to this build's when they are filled.
func (n *node) promote(ctx context.Context) error {
	if !n.dp.Staged() {
		return nil
	}
	tick := time.NewTicker(promoteInterval)
	defer tick.Stop()
	var since time.Time
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if !n.toldWanted() {
				since = time.Time{}
				continue
			}
			if since.IsZero() {
				since = now
			}
			if !n.filled() && now.Sub(since) < promotePatience {
				continue
			}
		}
		err := n.dp.Promote()
		if err == nil {
			n.noteLoaded()
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			n.d.log.Warn("the older maps go on; trying again", "error", err)
		}
	}
}

// toldWanted tells whether the tables have been told all that is wanted of them.
func (n *node) toldWanted() bool { return n.d.allInSync() && n.imported.Load() }

// filled tells whether no row of the maps waits for its turn.
func (n *node) filled() bool {
	t := n.tables
	return t.VRFs.Settled() && t.Gateways.Settled() && t.Served.Settled() && t.VTEPs.Settled() && t.Routes.Settled()
}
