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
	const failed = "the new maps cannot take over; the older ones keep forwarding; trying again"
	if plane.Make(ctx, promotion{g, older}, plane.Promotion, failed, g.log) {
		g.noteLoaded()
	}
	return nil
}

// promotion is the change to this build's maps.
type promotion struct {
	*Gateway
	// older are the routes of the older maps.
	older map[intent.RouteKey]intent.NextHopSet
}

func (p promotion) Told() bool { return p.ToldWanted() && p.dp.Replaced() }

// Prepared waits for the routes of nodes that are restarting, too: the older maps alone have them.
func (p promotion) Prepared() bool { return p.filled() && !p.tables.Misses(p.older) }

func (p promotion) Do(context.Context) error { return p.dp.Promote() }

// ToldWanted tells whether the tables have been told all that is wanted of them.
func (g *Gateway) ToldWanted() bool { return g.steps.AllInSync() && g.imported.Load() }

// filled tells whether no row of the maps waits for its turn.
func (g *Gateway) filled() bool {
	return g.tables.Settled(intent.PathEBPF) && tables.Of(g.tables, intent.VRFs).Settled()
}
