package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/moves"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/nexthops"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/paths"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/restart"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/tunnel"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/underlay"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/ovnroutes"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Config is what a gateway is started with.
type Config struct {
	File    *config.Config
	Facts   Facts
	Started time.Time // the process
	Sizes   *tables.MaglevSizes
	// IndexKept is vrfindex.Store.Kept.
	IndexKept func(intent.VNI) bool
	Rows      Rows
	Daemon    Daemon
}

// Rows are those of OVN: ovn.Follower.
type Rows interface {
	View(func(*ovn.Rows))
	GatewaysWith(ctx context.Context, key, value string) ([]ovn.Gateway, error)
}

// Daemon is what a gateway is part of.
type Daemon interface {
	// ObservePass and ObserveAnnounceDelay are metrics.
	ObservePass(time.Duration)
	ObserveAnnounceDelay(time.Duration)
	// Stage is that of a drain.
	Stage() drain.Stage
	// AtWork is called when answers can be given of the gateway, and with nil when its parts have ended.
	AtWork(*Gateway)
}

// New finds out who the node is. It changes nothing.
func New(c Config, steps *translation.Translation, sw *ovs.Switch, reg *status.Registry, log *slog.Logger) (*Gateway, error) {
	g := &Gateway{
		cfg: c.File, facts: c.Facts, started: c.Started, sizes: c.Sizes, indexKept: c.IndexKept, rows: c.Rows, daemon: c.Daemon,
		steps: steps, sw: sw, reg: reg, log: log,
		rib: rib.New(), stale: restart.NewStaleRoutes(), pathFacts: paths.NewFacts(),
		ended: make(chan struct{}), moved: loop.NewSignal(), hosts: loop.NewSignal(), announced: loop.NewSignal(), released: make(chan struct{}),
	}
	g.learned = ovnroutes.New(g.rib)
	var err error
	if g.id, err = identify(g.cfg, g.facts); err != nil {
		return nil, err
	}
	g.mtu, err = underlay.MTU(g.cfg, g.id.VTEP)
	g.kernel = g.newKernelPath(g.guard)
	return g, err
}

// identify finds out who a node with these facts is in the fabric.
func identify(c *config.Config, facts Facts) (settings.Identity, error) {
	vtep, err := link.New(netns.Namespace{}).VTEP(c.Fabric.VTEP, facts.EncapIP)
	if err != nil {
		return settings.Identity{}, err
	}
	return settings.NewIdentity(c, facts.SystemID, vtep), nil
}

func (g *Gateway) newLinks(attach kernel.Attach) *kernel.BridgeLinks {
	return kernel.NewBridgeLinks(kernel.BridgeLinksConfig{
		Ports: g.sw, MTU: settings.BridgeMTU(g.mtu), Attach: attach, Routed: g.cfg.Exposure.Used(),
		Attached: func(ifindex int) (bool, error) { return g.dp.Attached(ebpf.OverlayIn, ifindex) },
	})
}

// TunnelConfig is the tunnel's part of the configuration.
func (g *Gateway) TunnelConfig() tunnel.Config {
	return tunnel.Config{PerVRF: settings.PerVRF(g.cfg), Port: g.cfg.Fabric.Port, RouterMAC: g.id.RouterMAC, VTEP: g.id.VTEP}
}

// Start begins with what packets come in by.
func Start(ctx context.Context, c Config, steps *translation.Translation, sw *ovs.Switch, reg *status.Registry, log *slog.Logger) (*Gateway, error) {
	g, err := New(c, steps, sw, reg, log)
	if err != nil {
		return nil, err
	}
	sw.SetIntegration(c.Facts.Integration)
	g.links = g.newLinks(func(_ context.Context, _ string, ifindex int) error {
		return g.dp.Attach(ebpf.OverlayIn, ifindex)
	})
	g.tunnel = tunnel.New(g.TunnelConfig(), g, g, g.links, g.kernel, reg, log)
	before := g.tunnel.LookBack()
	if g.dp, err = g.tunnel.Open(ctx, &before); err != nil {
		return nil, err
	}
	if err := g.newSpeaker(before.Forwarded(log) && underlay.HasRoutes(ctx, g.cfg.Underlay, g.dp.VTEPs(), log)); err != nil {
		reg.SetCondition("bgp", false, reason.Misconfigured, err.Error())
		return nil, errors.Join(err, g.dp.Close())
	}
	g.tables = tables.New(g.drivers(), tables.Sources{
		OVN: steps.OVNInSync, BGP: g.bgpSync.Load, Pending: g.pending.Has, Lingers: g.stale.Keeps, Better: g.better, Fabric: g.announcedFrom, Turn: g.turn, LearnedBy: g.learned.VRF,
		Kept: g.indexKept,
	}, tables.Options{Status: reg, Log: log, Backends: int(g.cfg.Dataplane.Sizes.Backends), Passed: g.daemon.ObservePass, Announced: g.observeAnnouncements, Routed: g.observeRoutes})
	g.underlay = underlay.New(g.cfg.Underlay, g.id.VTEP, kernel.NewUnderlayRoutes(netns.Namespace{}), g.speaker, g.tunnel.Gate, reg, log)
	g.paths = paths.New(g.tables, g.pathFacts, g.kernel.Decide, func(ipv6 bool) (bool, error) { return kernel.HashHasPorts(netns.Namespace{}, ipv6) }, g.dp.Fills, reg, log)
	g.nextHops = nexthops.New(nexthops.Config{VTEP: g.id.VTEP, MTU: g.mtu, ResolveViaDefault: g.cfg.Fabric.ResolveViaDefault}, g, g.speaker, reg, log)
	if addresses, err := link.New(netns.Namespace{}).Addresses(); err == nil {
		g.tunnel.LookAtVTEP(addresses)
	}
	g.noteLoaded()
	g.noteCapabilities()
	return g, nil
}

func (g *Gateway) observeAnnouncements(events []reconcile.Event[intent.RouteKey]) {
	g.delays.Announced(events, func(k intent.RouteKey, asked moves.Asked) {
		g.daemon.ObserveAnnounceDelay(time.Since(asked.Arrived))
		g.log.Debug("a route is announced", "event", asked.Event, "route", k, "after", time.Since(asked.Arrived))
	})
	g.announced.Send()
}

func (g *Gateway) observeRoutes(events []reconcile.Event[intent.RouteKey]) {
	g.pathFacts.Note(events)
	if g.log.Enabled(context.Background(), slog.LevelDebug) {
		g.delays.Programmed(events, func(k intent.RouteKey, asked moves.Asked) {
			g.log.Debug("a route is programmed", "event", asked.Event, "route", k, "after", time.Since(asked.Arrived))
		})
	}
}

func (g *Gateway) newSpeaker(restarting bool) error {
	cfg, err := settings.BGP(g.cfg, g.id, restarting)
	if err != nil {
		return err
	}
	if g.speaker, err = bgp.New(cfg, g.log); err != nil {
		return err
	}
	return g.newBFD()
}

// ports resolves provider bridges for the map rows.
type ports struct{ g *Gateway }

func (p ports) Port(bridge intent.BridgeKey) (ebpf.Port, bool) {
	i, ok := p.g.links.IfIndex(bridge)
	return ebpf.Port{IfIndex: uint32(i), MTU: uint16(settings.BridgeMTU(p.g.mtu))}, ok
}
