package main

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
func (n *node) noteLoaded() {
	detail := fmt.Sprintf("VTEP %s, underlay MTU %d", n.id.VTEP, n.mtu)
	if n.dp.Staged() {
		n.d.reg.SetCondition("dataplane", false, reason.Rebuilding, detail)
		return
	}
	if !n.dp.Replaced() {
		n.d.reg.SetCondition("dataplane", false, reason.Rebuilding, detail+"; the programs of another start forward until this one's are loaded")
		return
	}
	n.d.reg.SetCondition("dataplane", true, reason.Loaded, detail)
}

// promote changes from maps of an older layout to this build's when they are filled.
func (n *node) promote(ctx context.Context) error {
	if !n.dp.Staged() {
		return nil
	}
	older, err := n.dp.OlderRoutes()
	if err != nil {
		n.d.log.Warn("the routes of the older maps cannot be read; what of them is not there yet is not waited for", "error", err)
	}
	told := func() bool { return n.toldWanted() && n.dp.Replaced() }
	// A node that is restarting, too, has its routes in the older maps alone.
	prepared := func() bool { return n.filled() && !n.tables.Misses(older) }
	if (plane.Change{Every: plane.PromoteInterval, Pause: plane.PromoteInterval, Told: told, Prepared: prepared, Failed: "the older maps go on; trying again",
		Do: func(context.Context) error { return n.dp.Promote() }}).Run(ctx, n.d.log) {
		n.noteLoaded()
	}
	return nil
}

// toldWanted tells whether the tables have been told all that is wanted of them.
func (n *node) toldWanted() bool { return n.d.steps.AllInSync() && n.imported.Load() }

// filled tells whether no row of the maps waits for its turn.
func (n *node) filled() bool {
	return n.tables.Settled(intent.PathEBPF) && tables.Of(n.tables, intent.VRFs).Settled()
}
