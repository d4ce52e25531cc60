package main

import (
	"context"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// replacePrograms replaces the programs of an earlier start that differ from this one's.
func (n *node) replacePrograms(ctx context.Context) error {
	failed := func(err error) { n.d.reg.SetCondition("dataplane", false, reason.StartFailed, plane.StartFailed(err)) }
	if plane.Replace(ctx, n.dp, n.d.calm, failed, n.d.log) {
		n.noteLoaded()
	}
	return nil
}

// calm tells whether the start is over for all that others wait for.
func (d *daemon) calm() bool {
	if !d.steps.AllInSync() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node == nil {
		return !d.latest.gateway
	}
	select {
	case <-d.node.released:
		return true
	default:
		return false
	}
}

// runTables waits until what is written has an effect: it would be announced before.
func (n *node) runTables(ctx context.Context) error {
	if !plane.AwaitUsed(ctx, n.dp) {
		return nil
	}
	return n.tables.Pipeline.Run(ctx)
}
