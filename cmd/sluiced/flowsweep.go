package main

import (
	"context"
	"errors"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// sweepInterval is how often all flows are read for those of the past.
const sweepInterval = 30 * time.Second

// sessionReports begins the sources of what is reported of maps of flows.
const sessionReports = "sessions of "

// sweepFlows keeps rows of flows free for those that go on, counts them, and reports when they are
// evicted. of is whose flows these are, for people. By the second time the programs of a build
// before are not attached any more: see SweepFlowFront.
func (d *daemon) sweepFlows(ctx context.Context, dp *ebpf.Dataplane, of string) error {
	reports := d.reg.Reporter(sessionReports + of)
	defer reports.Replace(nil)
	tick := beat.New(sweepInterval)
	defer tick.Stop()
	for first := true; ; first = false {
		err := dp.SweepFlows()
		ev, failed := dp.Reader().Evictions()
		if failed == nil {
			reports.Replace(evicted(ev, of))
		}
		err = errors.Join(err, failed)
		if !first {
			err = errors.Join(err, dp.SweepFlowFront(ctx))
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("cannot expire old sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// evicted tells of sessions that were evicted: for as long as answers of theirs may come.
func evicted(ev ebpf.Evictions, of string) []status.Object {
	if !ev.Held {
		return nil
	}
	detail := "the map of sessions was full within two hours"
	if ev.Evicting {
		detail = "the map of sessions is full, and evicts those that were idle for longest"
	}
	return []status.Object{{Kind: "sessions", Key: of, State: status.Warning, Reason: reason.SessionsEvicted, Error: detail}}
}
