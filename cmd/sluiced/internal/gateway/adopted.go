package gateway

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// adoptedEvery is how often it is looked whether what was adopted can go.
const adoptedEvery = time.Second

// removeAdopted removes what another agent's VRFs had and "sluicectl adopt" made
// Sluice's, as soon as all of this node's own is in place, and ends.
func (g *Gateway) removeAdopted(ctx context.Context) error {
	for said := false; ; {
		if g.steps.AllInSync() && g.tables.Complete() && tables.Of(g.tables, intent.SteeringFlows).Settled() && tables.Of(g.tables, intent.KernelRoutes).Settled() && tables.Of(g.tables, intent.Routes).Settled() {
			left, err := owned.Replaced(ctx, g.sw)
			if err == nil && !left {
				return nil
			}
			if err != nil && !said && ctx.Err() == nil {
				g.log.Warn("adopted objects cannot be removed; trying again", "error", err)
				said = true
			}
		}
		if !loop.Sleep(ctx, beat.Until(adoptedEvery)) {
			return nil
		}
	}
}
