package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
)

// sweepInterval is how often all flows are read for those of the past.
const sweepInterval = 30 * time.Second

// sweepFlows keeps rows of flows free for those that go on, and counts them. By the second
// time the programs of a build before are not attached any more: see SweepFlowFront.
func sweepFlows(ctx context.Context, dp *ebpf.Dataplane, log *slog.Logger) error {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	evicting := false
	for first := true; ; first = false {
		was, err := evicting, dp.SweepFlows()
		if ev, failed := dp.Reader().Evictions(); failed == nil {
			evicting = ev.Evicting
		} else {
			err = errors.Join(err, failed)
		}
		if evicting && !was {
			log.Warn("sessions are evicted, since their map is full", "fix", "raise dataplane.sizes.flows, or find the VIP with many new flows (sluice_vip_flows_total)")
		}
		if !first {
			err = errors.Join(err, dp.SweepFlowFront(ctx))
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("cannot expire old sessions", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
