package main

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// A start takes over what runs. Its order is: what is pinned is opened and compared, BGP
// connects, OVN is read, what it says is compared with the maps and announced, and only
// then the kernel's verifier gets programs that differ. docs/decisions/0025-start.md gives
// the reasons.

// replacePrograms replaces the programs of an earlier start that differ from this one's.
// Where the tables wait for them they are loaded at once, else when BGP has been told all:
// the verifier takes a processor.
func (n *node) replacePrograms(ctx context.Context) error {
	if n.dp.Replaced() {
		return nil
	}
	if !n.d.awaitCalm(ctx, n.dp) {
		return nil
	}
	if n.d.replaced(ctx, n.dp, func(err error) { n.d.reg.SetCondition("dataplane", false, reason.StartFailed, startFailed(err)) }) {
		n.noteLoaded()
	}
	return nil
}

// replaced has programs replaced, and tries again when that fails; false when ctx ends first.
func (d *daemon) replaced(ctx context.Context, dp *ebpf.Dataplane, failed func(error)) bool {
	for begin := time.Now(); ; {
		err := dp.Replace(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			d.log.Info("the programs of this build are loaded", "took", time.Since(begin))
			return true
		}
		failed(err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(startRetry):
		}
	}
}

// awaitCalm waits until the verifier, which takes a processor, delays nobody: until BGP has
// been told all, on a node that speaks it. Where tables wait for the programs it returns at
// once. False: ctx ends first.
func (d *daemon) awaitCalm(ctx context.Context, dp *ebpf.Dataplane) bool {
	tick := time.NewTicker(promoteInterval)
	defer tick.Stop()
	for begin := time.Now(); written(dp) && !dp.Staged() && !d.calm() && time.Since(begin) < bgp.DefaultDeferralTime; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return ctx.Err() == nil
}

// written tells whether what the tables write has its effect, or waits for Promote alone.
func written(dp *ebpf.Dataplane) bool {
	select {
	case <-dp.Used():
		return true
	default:
		return false
	}
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
	select {
	case <-ctx.Done():
		return nil
	case <-n.dp.Used():
	}
	return n.tables.Pipeline.Run(ctx)
}
