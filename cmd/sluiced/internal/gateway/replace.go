package gateway

import (
	"context"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/restart"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// replacePrograms replaces the programs of an earlier start that differ from this one's.
func (g *Gateway) replacePrograms(ctx context.Context) error {
	failed := func(err error) { g.reg.SetCondition("dataplane", false, reason.StartFailed, plane.StartFailed(err)) }
	if plane.Replace(ctx, g.dp, func() bool { return g.steps.AllInSync() && g.Calm() }, failed, g.log) {
		g.noteLoaded()
	}
	return nil
}

// Calm tells whether BGP has been told all.
func (g *Gateway) Calm() bool {
	select {
	case <-g.released:
		return true
	default:
		return false
	}
}

// runTables waits until what is written has an effect: it would be announced before.
func (g *Gateway) runTables(ctx context.Context) error {
	if !plane.AwaitUsed(ctx, g.dp) {
		return nil
	}
	return g.tables.Pipeline.Run(ctx)
}

// release lets the neighbours have this node's End-of-RIB once they have been told all.
func (g *Gateway) release(ctx context.Context) error {
	if restart.Release(ctx, g.speaker, g, g.cfg.BGP.GracefulRestart.Time.Duration, g.log) {
		g.log.Info("all announcements are handed to BGP", "after", time.Since(g.started))
		close(g.released)
	}
	return nil
}

// Told is what BGP has been told: the policies of all VRFs that OVN shows, plain unicast where that
// is the underlay's alone (what is exposed without EVPN is among the tenants' announcements), and
// all that there is to announce.
func (g *Gateway) Told() restart.Told {
	return restart.Told{
		Policies: g.steps.OVNInSync() && tables.Of(g.tables, intent.Policies).Settled(),
		Unicast:  !g.cfg.Exposure.Used() && g.underlay.Settled(),
		All:      g.steps.AllRemembered() && (g.withdrawn.Load() || g.tables.Complete()) && g.underlay.Settled(),
	}
}

// Waiting is how many announcements wait.
func (g *Gateway) Waiting() (rows int, counts bool) {
	return g.tables.Waiting(), g.steps.OVNInSync() && plane.Written(g.dp)
}
