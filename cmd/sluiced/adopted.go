package main

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// adoptedEvery is how often it is looked whether what was adopted can go.
const adoptedEvery = time.Second

// removeAdopted removes what another agent's VRFs had and "sluicectl adopt" made
// Sluice's, as soon as all of this node's own is in place, and ends.
func (n *node) removeAdopted(ctx context.Context) error {
	tick := beat.New(adoptedEvery)
	defer tick.Stop()
	for said := false; ; {
		if n.d.steps.AllInSync() && n.tables.Complete() && tables.Of(n.tables, intent.SteeringFlows).Settled() && tables.Of(n.tables, intent.KernelRoutes).Settled() && tables.Of(n.tables, intent.Routes).Settled() {
			left, err := owned.Replaced(ctx, n.d.ovs)
			if err == nil && !left {
				return nil
			}
			if err != nil && !said && ctx.Err() == nil {
				n.d.log.Warn("what was adopted cannot be removed; trying again", "error", err)
				said = true
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
