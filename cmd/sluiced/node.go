package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/learned"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// node is a gateway node at work: the fabric device, the loaded programs, the
// tables, and the BGP speaker. Its end leaves all that is pinned forwarding.
type node struct {
	d         *daemon
	facts     nodeFacts
	id        settings.Identity
	mtu       int // of the underlay
	dp        *ebpf.Dataplane
	links     *kernel.BridgeLinks
	kernel    *kernel.Path
	pathFacts *pathFacts
	decide    func([]intent.RouteKey) ([]kernel.Decision, error) // kernel.Path's
	hashPorts func(ipv6 bool) (bool, error)                      // kernel.HashHasPorts
	speaker   *bgp.GoBGP
	paths     *bfd.Speaker
	tables    *tables.Tables
	rib       *rib.RIB      // guarded by the pipeline, as the tables are
	learned   *learned.Join // guarded as rib is
	samples   plane.Samples
	underlay  *fabricPart
	tracing   sync.Mutex
	ended     chan struct{} // closed when the node ends
	released  chan struct{} // closed when BGP has been told all
	moved     chan struct{} // capacity 1: gateway ports have gone
	pending   pendingVRFs
	delays    delays
	tenants   tenants // guarded by d.mu
	bgpSync   atomic.Bool
	// imported is bgpSync once the tables have been told what came with it.
	imported atomic.Bool
	linger   *linger
	nextHops *nextHops
	drops    deviceDrops
	// fabricBroken says what is wrong with the fabric device; nil or empty: nothing.
	fabricBroken atomic.Pointer[string]
	// form is held while the fabric devices are looked at or change over; waits: the
	// devices of the other form carry, and those of this one are prepared; turns: they
	// have changed over, and the rows follow.
	form         sync.Mutex
	waits, turns atomic.Bool
	// withdrawn: the node is drained, and announces nothing.
	withdrawn atomic.Bool
	looks     chan struct{} // capacity 1: devices are to be looked at
	hosts     chan struct{} // capacity 1: links or addresses have changed
	vtep      ownVTEP
	damaged   string        // what was last said of the veth pairs
	flowsSaid bool          // something was said of flows of others
	announced chan struct{} // capacity 1: something became of announcements
	alone     atomic.Bool   // there is a session with no neighbour; watchSpeaker has it
}

// run runs the node until ctx ends, or until it is told facts that make it another
// one, which it returns. An error leaves a BGP server behind that only the end of
// the process ends.
func (n *node) run(ctx context.Context) (nodeFacts, error) {
	next := n.facts
	defer func() { _ = n.dp.Close() }()
	n.drainTo(ctx, n.d.drain.Status(time.Now()).Stage)
	// The tables are told what is wanted before anything looks at them.
	n.d.steps.Attach(n)
	n.d.adopt(n)
	n.d.drainNow() // it may have ended since the stage was read
	defer n.leave(ctx)
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	group, running := errgroup.WithContext(running)
	group.Go(func() error {
		other, changed := n.awaitFacts(running)
		if changed {
			// What was announced was announced under another identity, or is not this
			// node's any more: it is withdrawn, whatever the neighbours would keep.
			next = other
			n.paths.TellEnd()
			n.speaker.Stop(false)
		}
		return nil
	})
	group.Go(func() error {
		defer cancel()
		return n.speaker.Run(running)
	})
	group.Go(func() error { return n.paths.Run(running) })
	group.Go(func() error { return ignoreEnd(n.speaker.Watch(running, n.takeImports)) })
	group.Go(func() error { return n.watchSpeaker(running) })
	group.Go(func() error { return n.watchGuards(running) })
	group.Go(func() error { return n.watchOverlaps(running) })
	group.Go(func() error { return n.watchAnnouncements(running) })
	group.Go(func() error { return n.runTables(running) })
	group.Go(func() error { return n.replacePrograms(running) })
	group.Go(func() error { return n.runUnderlay(running) })
	group.Go(func() error { return n.d.ovs.Run(running) })
	group.Go(func() error { return n.watchSwitch(running) })
	group.Go(func() error { return n.watchFlows(running) })
	group.Go(func() error { return n.watchDevices(running) })
	group.Go(func() error { return n.watchPaths(running) })
	group.Go(func() error { return n.watchParity(running) })
	group.Go(func() error { return n.releaseSpeaker(running) })
	group.Go(func() error { return n.linger.run(running, n.tables.Pipeline.Kick) })
	group.Go(func() error { return n.endMoves(running) })
	group.Go(func() error { return n.watchUsedWays(running) })
	group.Go(func() error { return n.nextHops.run(running) })
	group.Go(func() error { return plane.ExpireSessions(running, n.dp, "the fabric", n.d.reg, n.d.log) })
	group.Go(func() error { return n.promote(running) })
	group.Go(func() error { return n.changeForm(running) })
	group.Go(func() error { return n.removeAdopted(running) })
	group.Go(func() error { return n.samples.Run(running, n.dp.Reader(), n.d.log) })
	err := group.Wait() // next is set before it returns
	return next, ignoreEnd(err)
}

// leave takes back what the node has reported: it says nothing of the next one.
// At the end of the process nobody asks any more.
func (n *node) leave(ctx context.Context) {
	close(n.ended)
	n.d.adopt(nil)
	n.d.steps.Detach()
	if ctx.Err() != nil {
		return
	}
	for _, s := range append(slices.Clone(n.tables.Pipeline.Stages()), n.underlay.tables.Pipeline.Stages()...) {
		n.d.reg.Reporter(s.Name()).Replace(nil)
	}
	n.d.reg.Reporter(tables.WaitReports).Replace(nil)
	n.d.reg.Reporter(bgpReports).Replace(nil)
	n.d.reg.Reporter(guardReports).Replace(nil)
	n.d.reg.Reporter(overlapReports).Replace(nil)
	n.d.reg.Reporter(parityReports).Replace(nil)
	n.d.reg.Reporter(learnedReports).Replace(nil)
	n.d.reg.Reporter(hostReports).Replace(nil)
	n.d.reg.Reporter(capabilityReports).Replace(nil)
	n.d.reg.Reporter(nextHopReports).Replace(nil)
	n.d.reg.Reporter(deviceDropReports).Replace(nil)
	n.d.reg.SetCondition("bgp", false, reason.Stopped, "")
	n.d.reg.SetCondition("announcements", true, reason.Stopped, "")
	if n.fabricBroken.Load() != nil {
		n.d.reg.SetCondition("fabric", true, reason.Stopped, "")
	}
	if n.flowsSaid {
		n.d.reg.SetCondition("flows", true, reason.Stopped, "")
	}
}

// adopt makes n the node that answers are of; nil: none is at work.
func (d *daemon) adopt(n *node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.node = n
	if d.published {
		_ = d.publish() // the keys are ours: nothing can be wrong with them
	}
	if n != nil {
		d.lookAtHost()
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
