package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

const (
	// flowsPause is between two looks for flows of others: each reads all flows of
	// the provider bridges, and with many tenants flows come by the thousand.
	flowsPause = 5 * time.Second
	// flowsNamed bounds the flows that the condition names.
	flowsNamed = 3
)

// watchFlows reports flows of others that come before Sluice's. It looks when the
// flow monitors have told of a change of any flow, and else not at all.
func (g *Gateway) watchFlows(ctx context.Context) error {
	failed := false
	for {
		if !failed {
			select {
			case <-ctx.Done():
				return nil
			case <-g.sw.FlowsChanged():
			}
		}
		found, err := g.sw.Overridden(ctx)
		if ctx.Err() != nil {
			return nil
		}
		g.flowsSaid = g.flowsSaid || err == nil || failed
		switch {
		case err != nil && failed:
			g.reg.SetCondition("flows", false, reason.Unknown, err.Error())
		case err != nil: // one that starts again is away for a moment
		case len(found) > 0:
			g.reg.SetCondition("flows", false, reason.Overridden, nameFlows(found))
		default:
			g.reg.SetCondition("flows", true, reason.Clear, "")
		}
		failed = err != nil
		if !loop.Sleep(ctx, flowsPause) {
			return nil
		}
	}
}

func nameFlows(found []string) string {
	out := strings.Join(found[:min(len(found), flowsNamed)], "; ")
	if more := len(found) - flowsNamed; more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return out
}
