package main

import (
	"context"
	"math"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// waysLookAgain is how often it is looked whether flows use ways that are about to go.
const waysLookAgain = 10 * time.Minute

// watchUsedWays has the ways to backends that no VIP leads to any more stay for as long as
// flows use them. All flows are read for that, so only when one is to go soon.
func (n *node) watchUsedWays(ctx context.Context) error {
	tick := beat.New(waysLookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		due := false
		n.tables.Pipeline.View(func() { due = n.tables.WaysEnd(2 * waysLookAgain) })
		if !due {
			continue
		}
		ago := usedWays{}
		if _, err := n.dp.Reader().Flows(math.MaxInt, ago.note); err != nil {
			n.d.log.Warn("flows cannot be read: what they need goes when it would without them", "error", err)
			continue
		}
		n.tables.Pipeline.Update(func() { n.tables.FlowsUsed(ago) })
	}
}

// usedWays is how long ago backends, or clients of theirs, have sent.
type usedWays map[tables.FlowEnd]time.Duration

// note takes a flow. It is none to list.
func (u usedWays) note(f ebpf.Flow) bool {
	if f.ToVIP && !f.Ending {
		end := tables.FlowEnd{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Backend: f.Becomes}
		if ago, seen := u[end]; !seen || f.Idle < ago {
			u[end] = f.Idle
		}
	}
	return false
}
