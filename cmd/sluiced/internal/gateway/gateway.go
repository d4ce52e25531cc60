// Package gateway is a gateway node at work: the order of its start, its tables, its BGP speaker,
// and its end. It owns what depends on the node's identity; what it starts from is below it, in
// packages that do not know it.
package gateway

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/moves"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/nexthops"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/paths"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/restart"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/tunnel"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/underlay"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/ovnroutes"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Gateway is a gateway node at work: the tunnel, the loaded programs, the
// tables, and the BGP speaker. Its end leaves all that is pinned forwarding.
type Gateway struct {
	cfg       *config.Config
	facts     Facts
	started   time.Time
	sizes     *tables.MaglevSizes
	indexKept func(intent.VNI) bool
	rows      Rows
	daemon    Daemon
	steps     *translation.Translation
	sw        *ovs.Switch
	reg       *status.Registry
	log       *slog.Logger

	id       settings.Identity
	mtu      int // of the underlay
	dp       *ebpf.Dataplane
	links    *kernel.BridgeLinks
	kernel   *kernel.Path
	tunnel   *tunnel.Tunnel
	speaker  *bgp.GoBGP
	bfd      *bfd.Speaker
	tables   *tables.Tables
	underlay *underlay.Node
	paths    *paths.Paths
	nextHops *nexthops.NextHops
	samples  plane.Samples

	rib     *rib.RIB        // guarded by the pipeline, as the tables are
	learned *ovnroutes.Join // guarded as rib is

	pathFacts *paths.Facts
	stale     *restart.StaleRoutes
	pending   moves.Pending
	delays    moves.Delays
	ports     *moves.PortLog // of a turn

	ended     chan struct{} // closed when the gateway ends
	released  chan struct{} // closed when BGP has been told all
	moved     loop.Signal   // gateway ports have gone
	hosts     loop.Signal   // links or addresses have changed
	announced loop.Signal   // something became of announcements

	bgpSync atomic.Bool
	// imported is bgpSync once the tables have been told what came with it.
	imported atomic.Bool
	// withdrawn: the node is drained, and announces nothing.
	withdrawn atomic.Bool
	alone     atomic.Bool // there is a session with no neighbour; watchSpeaker has it
	flowsSaid bool        // something was said of flows of others; of leave and watchFlows
}

// Run runs the gateway until ctx ends, or until it is told facts that make it another
// one, which it returns. An error leaves a BGP server behind that only the end of
// the process ends.
func (g *Gateway) Run(ctx context.Context, facts <-chan Facts) (Facts, error) {
	next := g.facts
	defer func() { _ = g.dp.Close() }()
	g.DrainTo(ctx, g.daemon.Stage())
	// The tables are told what is wanted before anything looks at them.
	g.steps.Attach(g)
	g.daemon.AtWork(g)
	defer func() { g.leave(ctx, next) }()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	group, running := errgroup.WithContext(running)
	group.Go(func() error {
		other, changed := g.awaitFacts(running, facts)
		if changed {
			// What was announced was announced under another identity, or is not this
			// node's any more: it is withdrawn, whatever the neighbours would keep.
			next = other
			g.bfd.TellEnd()
			g.speaker.Stop(false)
		}
		return nil
	})
	group.Go(func() error { return endsOthers(cancel, func() error { return g.speaker.Run(running) }) })
	group.Go(func() error { return g.bfd.Run(running) })
	group.Go(func() error { return loop.IgnoreEnd(g.speaker.Watch(running, g.takeImports)) })
	group.Go(func() error { return g.watchSpeaker(running) })
	group.Go(func() error { return g.watchLeaks(running) })
	group.Go(func() error { return g.watchOverlaps(running) })
	group.Go(func() error { return g.watchAnnouncements(running) })
	group.Go(func() error { return g.runTables(running) })
	group.Go(func() error { return g.replacePrograms(running) })
	group.Go(func() error { return g.underlay.Run(running) })
	group.Go(func() error { return g.sw.Run(running) })
	group.Go(func() error { return g.watchSwitch(running) })
	group.Go(func() error { return g.watchFlows(running) })
	group.Go(func() error { return g.tunnel.Watch(running, g.tables) })
	group.Go(func() error {
		return underlay.WatchDevices(running, g.cfg, g.dp.UnderlayDevices(), g.tables, g.reg, g.log)
	})
	group.Go(func() error { return g.paths.WatchFacts(running, g.choosePaths) })
	group.Go(func() error { return g.paths.WatchParity(running) })
	group.Go(func() error { return g.release(running) })
	group.Go(func() error { return g.stale.Run(running, g.tables.Pipeline.Kick) })
	group.Go(func() error {
		moves.AfterMoves(running, g.moved, tables.MoveTime+time.Millisecond, g.tables.Pipeline.Kick)
		return nil
	})
	group.Go(func() error { return g.watchBackendsInUse(running) })
	group.Go(func() error { return g.nextHops.Run(running) })
	group.Go(func() error { return plane.ExpireSessions(running, g.dp, "the fabric", g.reg, g.log) })
	group.Go(func() error { return g.promote(running) })
	group.Go(func() error { return g.removeAdopted(running) })
	group.Go(func() error { return g.samples.Run(running, g.dp.Reader(), g.log) })
	err := group.Wait() // next is set before it returns
	return next, loop.IgnoreEnd(err)
}

// endsOthers runs what the others of a group end with. Its error cancels them by itself: were they
// cancelled before, the group would return their end in its place.
func endsOthers(cancel context.CancelFunc, run func() error) error {
	err := run()
	if err == nil {
		cancel()
	}
	return err
}

// leave takes back what the gateway has reported: it says nothing of the next one, whose
// facts are next. At the end of the process nobody asks any more.
func (g *Gateway) leave(ctx context.Context, next Facts) {
	close(g.ended)
	g.daemon.AtWork(nil)
	g.steps.Detach()
	if ctx.Err() != nil {
		return
	}
	for _, s := range slices.Concat(g.tables.Stages(), g.underlay.Tables().Stages()) {
		g.reg.Reporter(s.Name()).Replace(nil)
	}
	for _, source := range []string{tables.WaitReports, bgpReports, leakReports, overlapReports, paths.Reports, learnedReports, capabilityReports} {
		g.reg.Reporter(source).Replace(nil)
	}
	awaits := next.awaits()
	g.tunnel.Forget(awaits)
	g.nextHops.Forget()
	g.reg.SetCondition("bgp", false, reason.Stopped, awaits)
	g.reg.SetCondition("announcements", true, reason.Stopped, awaits)
	g.reg.SetCondition("standby", true, reason.NoStandby, "")
	if g.flowsSaid {
		g.reg.SetCondition("flows", true, reason.Stopped, awaits)
	}
}
