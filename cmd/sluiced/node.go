package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// node is a gateway node at work: the fabric device, the loaded programs, the
// tables, and the BGP speaker. Its end leaves all that is pinned forwarding.
type node struct {
	d        *daemon
	facts    nodeFacts
	id       identity
	routerID netip.Addr
	dp       *ebpf.Dataplane
	links    *kernel.BridgeLinks
	speaker  *bgp.GoBGP
	tables   *tables
	rib      *rib.RIB // guarded by the pipeline, as the tables are
	samples  sampler
	tracing  sync.Mutex
	ended    chan struct{} // closed when the node ends
	bgpSync  atomic.Bool
	// linger ends the time for which routes of a VTEP that has not come back are
	// kept after BGP is in sync; zero until then.
	linger atomic.Pointer[time.Time]
}

const startRetry = 5 * time.Second

// runNodes keeps a node running for the latest facts, until ctx ends.
func (d *daemon) runNodes(ctx context.Context) error {
	var facts nodeFacts
	for ctx.Err() == nil {
		if !facts.gateway || facts.systemID == "" {
			if facts.systemID != "" {
				d.retire(ctx)
			}
			select {
			case <-ctx.Done():
			case facts = <-d.facts:
			case <-time.After(startRetry):
			}
			continue
		}
		err := d.runNode(ctx, facts, &facts)
		if err != nil && ctx.Err() == nil {
			d.reg.SetCondition("dataplane", false, "start-failed", err.Error())
			select {
			case <-ctx.Done():
			case facts = <-d.facts:
			case <-time.After(startRetry):
			}
		}
	}
	return nil
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
	group.Go(func() error { return n.tables.pipeline.Run(ctx) })
	group.Go(func() error { return d.ovs.Run(ctx) })
	group.Go(func() error { return n.watchSwitch(ctx) })
	group.Go(func() error { return n.releaseSpeaker(ctx) })
	group.Go(func() error { return n.samples.run(ctx, n.dp.Reader()) })
	d.adopt(n)
	defer d.adopt(nil)
	defer close(n.ended)
	return ignoreEnd(group.Wait())
}

// retire removes what this node programmed while it was a gateway node: once OVN
// says for sure that it is none.
func (d *daemon) retire(ctx context.Context) {
	if !d.ovnInSync() {
		return
	}
	things, err := owned.List(ctx, d.ovs, d.cfg.Dataplane.BPFFS)
	errs := []error{err}
	for _, t := range things {
		d.log.Info("no gateway port needs this node; removing", "object", t.What)
		errs = append(errs, t.Remove(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		d.reg.SetCondition("dataplane", false, "leftovers", err.Error())
		return
	}
	d.reg.SetCondition("dataplane", true, "idle", "no gateway port needs this node")
	d.reg.SetCondition("bgp", true, "idle", "no gateway port needs this node")
}

// adopt makes n the node that OVN's events go to, and gives it what is known.
func (d *daemon) adopt(n *node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.node = n
	if n == nil {
		return
	}
	all := d.translator.Tables()
	n.tables.pipeline.Update(func() {
		n.tables.bridges.Set(all.Bridges)
		n.tables.vrfs.Set(all.VRFs)
		n.tables.policies.Set(all.Policies)
		n.tables.gateways.Set(all.Gateways)
		n.tables.served.Set(all.Served)
		n.tables.routes.Update(n.rib.Update(rib.OVN, all.Routes, nil))
		n.tables.steering.Set(all.Steering)
		n.tables.announcements.Set(all.Announcements)
		for _, a := range d.cfg.Fabric.TrustedVTEPs {
			n.tables.vteps.Update(map[netip.Addr]intent.VTEP{a: {Addr: a}}, nil)
		}
	})
}

// leastBridgeMTU is the smallest MTU of the veth pairs into provider bridges. A
// packet that is too large for the fabric has to come through the pair to
// overlay_in, which answers or fragments it: a veth drops in silence what is
// above its own MTU.
const leastBridgeMTU = 9216

// startNode makes the fabric device and loads the programs, in this order: the
// device down, the programs, the device up.
func (d *daemon) startNode(ctx context.Context, facts nodeFacts) (*node, error) {
	n := &node{d: d, facts: facts, rib: rib.New(), ended: make(chan struct{})}
	host := netns.Namespace{}
	vtep, err := link.New(host).VTEP(d.cfg.Fabric.VTEP, facts.encapIP)
	if err != nil {
		return nil, err
	}
	n.id = identity{systemID: facts.systemID, vtep: vtep, routerMAC: d.cfg.Fabric.RouterMAC}
	if n.id.routerMAC.IsZero() {
		n.id.routerMAC = bgp.RouterMAC(facts.systemID)
	}
	mtu, err := d.underlayMTU(host, vtep)
	if err != nil {
		return nil, err
	}
	n.links = kernel.NewBridgeLinks(kernel.BridgeLinksConfig{Ports: d.ovs, MTU: max(mtu, leastBridgeMTU), Attach: func(_ context.Context, _ string, ifindex int) error {
		return n.dp.Attach(ebpf.OverlayIn, ifindex)
	}})
	kept, err := ebpf.PinnedVRFs(d.cfg.Dataplane.BPFFS)
	restarting := err == nil && len(kept) > 0
	fabric := kernel.NewFabric(kernel.FabricConfig{Port: d.cfg.Fabric.Port, RouterMAC: n.id.routerMAC, Attach: func(_ context.Context, _ string, ifindex int) error {
		n.dp, err = ebpf.Load(n.ebpfConfig(ifindex, mtu))
		if err != nil {
			return err
		}
		return n.dp.Attach(ebpf.FabricIn, ifindex)
	}})
	if _, err := fabric.Ensure(ctx); err != nil {
		if n.dp != nil {
			err = errors.Join(err, n.dp.Close())
		}
		return nil, err
	}
	if err := n.startSpeaker(restarting); err != nil {
		return nil, errors.Join(err, n.dp.Close())
	}
	n.tables = newTables(n.drivers(), sources{ovn: d.ovnInSync, bgp: n.bgpSync.Load, lingers: n.lingers}, d.reg, d.log)
	d.reg.SetCondition("dataplane", true, "loaded", fmt.Sprintf("VTEP %s, underlay MTU %d", vtep, mtu))
	return n, nil
}

func (n *node) startSpeaker(restarting bool) error {
	cfg, err := bgpConfig(n.d.cfg, n.id, restarting)
	if err != nil {
		return err
	}
	n.routerID = bgp.RouterID(cfg.RouterID, cfg.VTEP4, n.id.systemID)
	n.speaker, err = bgp.New(cfg, n.d.log)
	return err
}

func (n *node) drivers() drivers {
	return drivers{
		bridges: n.links, vrfs: n.dp.VRFs(), gateways: n.dp.Gateways(), served: n.dp.Served(), vteps: n.dp.VTEPs(),
		routes: n.dp.Routes(), steering: ovs.NewSteering(n.d.ovs), policies: newPolicyDriver(n.speaker), announcements: n.speaker.Announcements(),
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
