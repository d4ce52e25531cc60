package main

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// node is a gateway node at work: the fabric device, the loaded programs, the
// tables, and the BGP speaker. Its end leaves all that is pinned forwarding.
type node struct {
	d        *daemon
	facts    nodeFacts
	id       identity
	routerID netip.Addr
	mtu      int // of the underlay
	dp       *ebpf.Dataplane
	links    *kernel.BridgeLinks
	speaker  *bgp.GoBGP
	tables   *tables.Tables
	rib      *rib.RIB // guarded by the pipeline, as the tables are
	samples  sampler
	tracing  sync.Mutex
	ended    chan struct{} // closed when the node ends
	bgpSync  atomic.Bool
	// linger ends the time for which routes of a VTEP that has not come back are
	// kept after BGP is in sync; zero until then.
	linger atomic.Pointer[time.Time]
}

// runNode runs one node until ctx ends or other facts come, which it stores in
// next.
func (d *daemon) runNode(ctx context.Context, facts nodeFacts, next *nodeFacts) error {
	n, err := d.startNode(ctx, facts)
	if err != nil {
		return err
	}
	defer func() { _ = n.dp.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case *next = <-d.facts:
		}
		d.log.Info("facts of the node changed", "chassis", next.systemID, "gateway", next.gateway)
		// What was announced was announced under another identity, or is not this
		// node's any more: it is withdrawn, whatever the neighbours would keep.
		n.speaker.Stop(false)
		return nil
	})
	group.Go(func() error {
		defer cancel()
		return n.speaker.Run(ctx)
	})
	group.Go(func() error { return ignoreEnd(n.speaker.Watch(ctx, n.takeImports)) })
	group.Go(func() error { return n.tables.Pipeline.Run(ctx) })
	group.Go(func() error { return d.ovs.Run(ctx) })
	group.Go(func() error { return n.watchSwitch(ctx) })
	group.Go(func() error { return n.releaseSpeaker(ctx) })
	group.Go(func() error { return n.samples.run(ctx, n.dp.Reader()) })
	d.adopt(n)
	defer d.adopt(nil)
	defer close(n.ended)
	return ignoreEnd(group.Wait())
}

// adopt makes n the node that OVN's events go to, and gives it what is known.
func (d *daemon) adopt(n *node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.node = n
	if n == nil {
		return
	}
	n.want(d.translator.Tables())
}

func ignoreEnd(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
