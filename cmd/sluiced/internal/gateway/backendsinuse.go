package gateway

import (
	"context"
	"math"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// backendsLook is how often it is looked whether sessions use paths that are about to be deleted.
const backendsLook = 10 * time.Minute

// watchBackendsInUse has the paths to backends that no VIP leads to any more stay for as long as
// sessions use them. All sessions are read for that, so only when one is to go soon.
func (g *Gateway) watchBackendsInUse(ctx context.Context) error {
	for loop.Sleep(ctx, beat.Until(backendsLook)) {
		due := false
		g.tables.Pipeline.View(func() { due = g.tables.PathsExpire(2 * backendsLook) })
		if !due {
			continue
		}
		ago := backendsInUse{}
		if _, err := g.dp.Reader().Flows(math.MaxInt, ago.note); err != nil {
			g.log.Warn("sessions cannot be read; the paths to their backends stay no longer than without them", "error", err)
			continue
		}
		g.tables.Pipeline.Update(func() { g.tables.FlowsUsed(ago) })
	}
	return nil
}

// backendsInUse is how long ago backends, or clients of theirs, have sent.
type backendsInUse map[tables.FlowEnd]time.Duration

// note takes a flow. It is none to list.
func (u backendsInUse) note(f ebpf.Flow) bool {
	if f.ToVIP && !f.Ending {
		end := tables.FlowEnd{VNI: f.Key.VNI, Protocol: f.Key.Protocol, Backend: f.Becomes}
		if ago, seen := u[end]; !seen || f.Idle < ago {
			u[end] = f.Idle
		}
	}
	return false
}
