package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/learned"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// newNode finds out who the node is. It changes nothing.
func (d *daemon) newNode(facts nodeFacts) (*node, error) {
	n := &node{
		d: d, facts: facts, rib: rib.New(), linger: newLinger(), pathFacts: newPathFacts(),
		ended: make(chan struct{}), moved: make(chan struct{}, 1), looks: make(chan struct{}, 1),
		hosts: make(chan struct{}, 1), announced: make(chan struct{}, 1), released: make(chan struct{}),
	}
	n.learned = learned.New(n.rib)
	n.nextHops = newNextHops(n)
	var err error
	if n.id, err = d.identify(facts); err != nil {
		return nil, err
	}
	n.mtu, err = d.underlayMTU(netns.Namespace{}, n.id.VTEP)
	n.kernel = n.newKernelPath(n.guard)
	n.decide = n.kernel.Decide
	n.hashPorts = func(ipv6 bool) (bool, error) { return kernel.HashHasPorts(netns.Namespace{}, ipv6) }
	return n, err
}

// identify finds out who a node with these facts is in the fabric.
func (d *daemon) identify(facts nodeFacts) (settings.Identity, error) {
	vtep, err := link.New(netns.Namespace{}).VTEP(d.cfg.Fabric.VTEP, facts.encapIP)
	if err != nil {
		return settings.Identity{}, err
	}
	return d.identity(facts, vtep), nil
}

func (d *daemon) identity(facts nodeFacts, vtep netip.Addr) settings.Identity {
	id := settings.Identity{SystemID: facts.systemID, VTEP: vtep, RouterMAC: d.cfg.Fabric.RouterMAC}
	if id.RouterMAC.IsZero() {
		id.RouterMAC = bgp.RouterMAC(facts.systemID)
	}
	vtep4 := netip.Addr{}
	if vtep.Is4() {
		vtep4 = vtep
	}
	id.RouterID = bgp.RouterID(d.cfg.BGP.RouterID, vtep4, facts.systemID)
	return id
}

func (n *node) newFabric(attach kernel.Attach) *kernel.Fabric {
	return kernel.NewFabric(kernel.FabricConfig{Port: n.d.cfg.Fabric.Port, RouterMAC: n.id.RouterMAC, Attach: attach})
}

func (n *node) newLinks(attach kernel.Attach) *kernel.BridgeLinks {
	return kernel.NewBridgeLinks(kernel.BridgeLinksConfig{
		Ports: n.d.ovs, MTU: settings.BridgeMTU(n.mtu), Attach: attach, Routed: n.d.cfg.Exposure.Used(),
		Attached: func(ifindex int) (bool, error) { return n.dp.Attached(ebpf.OverlayIn, ifindex) },
	})
}

func (d *daemon) underlayMTU(ns netns.Namespace, vtep netip.Addr) (int, error) {
	if d.cfg.Fabric.MTU != 0 {
		return int(d.cfg.Fabric.MTU), nil
	}
	facts := link.New(ns)
	if len(d.cfg.BGP.Neighbors) == 0 {
		u, err := facts.Towards(vtep)
		return u.MTU, err
	}
	return mtuTowards(d.cfg.BGP.Neighbors, func(n config.Neighbor) (int, error) { return neighborMTU(facts, n) })
}

// mtuTowards is the least of the links with a neighbour each, since a tunnel may go by
// any of them; without such links that of the way to the first neighbour to whom there
// is one: BGP itself may have still to find the others.
func mtuTowards(neighbors []config.Neighbor, mtu func(config.Neighbor) (int, error)) (int, error) {
	var errs []error
	first, least := 0, 0
	for _, n := range neighbors {
		switch m, err := mtu(n); {
		case err != nil:
			errs = append(errs, err)
		case n.Interface != "" && (least == 0 || m < least):
			least = m
		case n.Interface == "" && first == 0:
			first = m
		}
	}
	if m := cmp.Or(least, first); m != 0 {
		return m, nil
	}
	return 0, errors.Join(errs...)
}

func neighborMTU(facts *link.Facts, n config.Neighbor) (int, error) {
	if n.Interface == "" {
		u, err := facts.Towards(n.Address)
		return u.MTU, err
	}
	links, err := facts.Links()
	for _, l := range links {
		if l.Name == n.Interface {
			return l.MTU, nil
		}
	}
	return 0, errors.Join(err, fmt.Errorf("no link %s", n.Interface))
}

// startNode begins with what packets come in by.
func (d *daemon) startNode(ctx context.Context, facts nodeFacts) (*node, error) {
	n, err := d.newNode(facts)
	if err != nil {
		return nil, err
	}
	d.ovs.SetIntegration(facts.integration)
	n.links = n.newLinks(func(_ context.Context, _ string, ifindex int) error {
		return n.dp.Attach(ebpf.OverlayIn, ifindex)
	})
	before := n.lookBack()
	if err := n.openFabric(ctx, &before); err != nil {
		return nil, err
	}
	if err := n.newSpeaker(n.went(before) && n.hasWays(ctx)); err != nil {
		d.reg.SetCondition("bgp", false, reason.Misconfigured, err.Error())
		return nil, errors.Join(err, n.dp.Close())
	}
	n.tables = tables.New(n.drivers(), tables.Sources{
		OVN: d.steps.OVNInSync, BGP: n.bgpSync.Load, Pending: n.pending.has, Lingers: n.linger.keeps, Better: n.better, Fabric: n.announcedFrom, Turn: n.turn, LearnedBy: n.learned.VRF,
		Kept: d.kept,
	}, tables.Options{Status: d.reg, Log: d.log, Backends: int(d.cfg.Dataplane.Sizes.Backends), Passed: d.metrics.ObservePass, Announced: n.observeAnnouncements, Routed: n.pathFacts.note})
	n.newUnderlay()
	if host, err := readHost(); err == nil {
		n.lookAtVTEP(host)
	}
	n.noteLoaded()
	n.noteCapabilities()
	return n, nil
}

func (n *node) observeAnnouncements(events []reconcile.Event[intent.RouteKey]) {
	n.delays.announced(events, n.d.metrics.ObserveAnnounceDelay)
	n.lookAtAnnouncements()
}

// lookAtAnnouncements has watchAnnouncements look soon.
func (n *node) lookAtAnnouncements() {
	select {
	case n.announced <- struct{}{}:
	default:
	}
}

func (n *node) newSpeaker(restarting bool) error {
	cfg, err := settings.BGP(n.d.cfg, n.id, restarting)
	if err != nil {
		return err
	}
	if n.speaker, err = bgp.New(cfg, n.d.log); err != nil {
		return err
	}
	return n.newPaths()
}

// ports resolves provider bridges for the map rows.
type ports struct{ n *node }

func (p ports) Port(bridge intent.BridgeKey) (ebpf.Port, bool) {
	i, ok := p.n.links.IfIndex(bridge)
	return ebpf.Port{IfIndex: uint32(i), MTU: uint16(settings.BridgeMTU(p.n.mtu))}, ok
}
