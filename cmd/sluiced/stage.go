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
	if n.whenPrepared(ctx, change{every: promoteInterval, pause: promoteInterval, told: n.toldWanted, prepared: n.filled, failed: "the older maps go on; trying again",
		do: func(context.Context) error { return n.dp.Promote() }}) {
		n.noteLoaded()
	}
	return nil
}

// change is one to what has been prepared beside what carries.
type change struct {
	// every is how often it is looked whether all is prepared, and pause is after a
	// change that failed.
	every, pause time.Duration
	// told tells whether what is to be prepared is known, and prepared whether no row
	// of it waits for its turn.
	told, prepared func() bool
	do             func(context.Context) error
	failed         string // the log's word
}

// whenPrepared makes a change when all is prepared, or promotePatience after all was told,
// and again until it succeeds; false when ctx ends first.
func (n *node) whenPrepared(ctx context.Context, c change) bool {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	var since time.Time
	said := ""
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-tick.C:
			if !c.told() {
				since = time.Time{}
				continue
			}
			if since.IsZero() {
				since = now
			}
			if !c.prepared() && now.Sub(since) < promotePatience {
				continue
			}
		}
		err := c.do(ctx)
		if err == nil {
			return true
		}
		if err.Error() != said && ctx.Err() == nil {
			said = err.Error()
			n.d.log.Warn(c.failed, "error", err)
		}
		tick.Reset(c.pause)
	}
}

// toldWanted tells whether the tables have been told all that is wanted of them.
func (n *node) toldWanted() bool { return n.d.allInSync() && n.imported.Load() }

// filled tells whether no row of the maps waits for its turn.
func (n *node) filled() bool {
	t := n.tables
	return t.VRFs.Settled() && t.Gateways.Settled() && t.Served.Settled() && t.VTEPs.Settled() && t.Routes.Settled()
}
