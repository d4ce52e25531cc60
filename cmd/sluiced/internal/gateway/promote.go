package gateway

import (
	"context"
	"fmt"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// noteLoaded reports the data plane. While maps of an older layout forward, what
// changes has no effect.
func (g *Gateway) noteLoaded() {
	detail := fmt.Sprintf("VTEP %s, underlay MTU %d", g.id.VTEP, g.mtu)
	if g.dp.Staged() {
		g.reg.SetCondition("dataplane", false, reason.Rebuilding, detail)
		return
	}
	if !g.dp.Replaced() {
		g.reg.SetCondition("dataplane", false, reason.Rebuilding, detail+"; the programs of an earlier start forward until this start's are loaded")
		return
	}
	g.reg.SetCondition("dataplane", true, reason.Loaded, detail)
}

// promote changes from maps of an older layout to this build's when they are filled.
func (g *Gateway) promote(ctx context.Context) error {
	if !g.dp.Staged() {
		return nil
	}
	older, err := g.dp.OlderRoutes()
	if err != nil {
		g.log.Warn("the routes of the older maps cannot be read; the change does not wait for those that are missing", "error", err)
	}
	told := func() bool { return g.ToldWanted() && g.dp.Replaced() }
	// A node that is restarting, too, has its routes in the older maps alone.
	prepared := func() bool { return g.filled() && !g.tables.Misses(older) }
	if (plane.Change{Every: plane.PromoteInterval, Pause: plane.PromoteInterval, Told: told, Prepared: prepared, Failed: "the new maps cannot take over; the older ones keep forwarding; trying again",
		Do: func(context.Context) error { return g.dp.Promote() }}).Run(ctx, g.log) {
		g.noteLoaded()
	}
	return nil
}

// ToldWanted tells whether the tables have been told all that is wanted of them.
func (g *Gateway) ToldWanted() bool { return g.steps.AllInSync() && g.imported.Load() }

// filled tells whether no row of the maps waits for its turn.
func (g *Gateway) filled() bool {
	return g.tables.Settled(intent.PathEBPF) && tables.Of(g.tables, intent.VRFs).Settled()
}
