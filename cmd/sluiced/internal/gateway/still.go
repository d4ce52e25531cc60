package gateway

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/nexthops"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/paths"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/restart"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/tunnel"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway/underlay"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/ovnroutes"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	fabric "github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Still describes a gateway on which nothing happens, for tests of who asks one: it has no
// programs and no BGP, and its tables list nothing and take nothing.
type Still struct {
	Stage drain.Stage // of a drain
	// Withdrawn: its routes are.
	Withdrawn bool
	// Broken says what is wrong with sluice-vxlan, NoVTEP that the node does not have its VTEP.
	Broken string
	NoVTEP bool
	Reg    *status.Registry // nil: a new one
}

// lostVTEP is an address that no node has (RFC 5737).
var lostVTEP = netip.MustParseAddr("192.0.2.77")

// NewStill makes one.
func NewStill(s Still) *Gateway {
	log := slog.New(slog.DiscardHandler)
	if s.Reg == nil {
		s.Reg = status.NewRegistry(log)
	}
	cfg := config.Default()
	g := &Gateway{
		cfg: cfg, reg: s.Reg, log: log, steps: translation.New(translation.Config{}, nil, s.Reg, log), sw: ovs.New(ovs.Config{}), daemon: stillDaemon{s.Stage},
		sizes: tables.NewMaglevSizes(log), rib: rib.New(), stale: restart.NewStaleRoutes(), pathFacts: paths.NewFacts(),
		ended: make(chan struct{}), moved: loop.NewSignal(), hosts: loop.NewSignal(), announced: loop.NewSignal(),
	}
	g.learned = ovnroutes.New(g.rib)
	g.withdrawn.Store(s.Withdrawn)
	g.tunnel = tunnel.New(tunnel.Config{VTEP: lostVTEP}, g, g, nil, nil, s.Reg, log)
	g.tables = tables.New(tables.Drivers{}, tables.Sources{
		OVN: g.steps.OVNInSync, BGP: func() bool { return true }, Pending: g.pending.Has,
		Lingers: func(intent.NextHopSet, func(netip.Addr) bool) bool { return false },
	}, tables.Options{Status: s.Reg, Log: log})
	g.underlay = underlay.New(cfg.Underlay, lostVTEP, reconcile.ReadOnly(reconcile.Unseen[netip.Prefix, intent.UnderlayRoute]{}), noUnicast{}, func() error { return nil }, s.Reg, log)
	g.nextHops = nexthops.New(nexthops.Config{}, g, nil, s.Reg, log)
	if s.Broken != "" {
		g.tunnel.Note(errors.New(s.Broken))
	}
	if s.NoVTEP {
		g.tunnel.LookAtVTEP(nil)
	}
	return g
}

// stillDaemon is one at rest.
type stillDaemon struct{ stage drain.Stage }

func (stillDaemon) ObservePass(time.Duration)          {}
func (stillDaemon) ObserveAnnounceDelay(time.Duration) {}
func (stillDaemon) AtWork(*Gateway)                    {}
func (d stillDaemon) Stage() drain.Stage               { return d.stage }

// noUnicast is a speaker without plain unicast.
type noUnicast struct{}

func (noUnicast) UnicastInSync() bool               { return true }
func (noUnicast) UnicastChanged() <-chan struct{}   { return nil }
func (noUnicast) Unicast() ([]fabric.Learned, bool) { return nil, true }
func (noUnicast) UnicastAnnouncements() reconcile.Driver[netip.Prefix, intent.UnderlayAnnouncement] {
	return reconcile.ReadOnly(reconcile.Unseen[netip.Prefix, intent.UnderlayAnnouncement]{})
}
