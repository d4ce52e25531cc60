package gateway

import (
	"context"
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Withheld is why the node announces nothing of a VRF, as announcedFrom decides it: a reason and
// its text for people. The reason is empty where the node as a whole keeps nothing back.
func (g *Gateway) Withheld(vni intent.VNI) (state status.State, why, text string) {
	switch {
	case g.withdrawn.Load():
		if g.daemon.Stage() == drain.Drained {
			return status.Pending, reason.Drained, "the node is drained; 'sluicectl undrain' puts it back"
		}
		return status.Pending, reason.Withdrawn, "the node is being drained, and its routes are withdrawn; 'sluicectl undrain' puts it back"
	case vni == intent.DefaultVRF:
	default:
		if why, text := g.tunnel.Problem(); why != "" {
			return status.Error, why, text
		}
	}
	return "", "", ""
}

// UnannouncedState is why a route that is to be announced is not: what the node keeps back, or
// what the row itself waits for.
func (g *Gateway) UnannouncedState(k intent.RouteKey, err error) (state status.State, why, text string) {
	if state, why, text = g.Withheld(k.VNI); why != "" {
		return state, why, text
	}
	return tables.StateOf(err == nil, err)
}

// announcedFrom keeps what the node announces of a VRF back while the node is drained,
// and while the tunnel is broken: what is exposed without EVPN is not behind it. The
// node's own tunnel address stays announced in a drain: packets still come.
func (g *Gateway) announcedFrom(vni intent.VNI) error {
	if err := g.drainGate(); err != nil || vni == intent.DefaultVRF {
		return err
	}
	return g.tunnel.Gate()
}

// DrainTo has the node announce as the stage asks. A node that serves again takes
// the community off before the routes that were withdrawn come back.
func (g *Gateway) DrainTo(ctx context.Context, s drain.Stage) {
	if err := g.speaker.GracefulShutdown(ctx, s != drain.Serving); err != nil && ctx.Err() == nil {
		g.log.Warn("not all routes could be announced for the drain; trying again", "error", err)
	}
	out := s == drain.Withdrawn || s == drain.Drained
	if g.withdrawn.Swap(out) != out {
		g.tables.Pipeline.Update(g.tables.FabricChanged)
	}
}

// drainGate keeps announcements back while the node is drained.
func (g *Gateway) drainGate() error {
	if g.withdrawn.Load() {
		return fmt.Errorf("%w: the node is being drained; 'sluicectl undrain' puts it back", reconcile.ErrNotReady)
	}
	return nil
}
