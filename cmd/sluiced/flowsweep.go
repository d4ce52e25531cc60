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
	for first := true; ; first = false {
		err := dp.SweepFlows()
		if !first {
			err = errors.Join(err, dp.SweepFlowFront(ctx))
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("flows of the past cannot be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
