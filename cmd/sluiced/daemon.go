package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/drain"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/explain"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/following"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/health"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/report"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/role"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vrfindex"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/crash"
	stages "github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/heap"
	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/serve"
	"github.com/ovn-sluice/sluice/pkg/systemd"
)

// heapGrowth is in percent. Almost all of the daemon's heap is rows that stay, and little is
// allocated once they are there: it may grow by less between two collections than Go lets it by default.
const heapGrowth = 50

// runDaemon is sluiced from its lock to its end. What another sluiced may still
// write is read after the lock was taken.
func runDaemon(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	heap.Limit(heapGrowth)
	lock, err := admin.AcquireLock(cfg.StateDir, "sluiced")
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	defer func() { _ = lock.Release() }()
	crash.Log(cfg.StateDir, log)
	d, err := newDaemon(cfg, log)
	if err != nil {
		return err
	}
	return d.run(ctx)
}

// daemon is the wiring of sluiced: each part has its own state.
type daemon struct {
	*following.Following
	started   time.Time
	metrics   *nodemetrics.Metrics
	databases *health.Databases
	drain     *drain.Drain
	report    *report.Report
	explain   *explain.Explainer
}

func newDaemon(cfg *config.Config, log *slog.Logger) (*daemon, error) {
	d := &daemon{started: time.Now()}
	with := following.With{Version: version, Indices: vrfindex.Open, Memory: cfg.StateDir + "/northbound.json", Retain: true}
	var err error
	if d.Following, err = following.New(cfg, log, with, d); err != nil {
		return nil, err
	}
	state, err := stages.Open(cfg.StateDir+"/drain.json", time.Now())
	if err != nil {
		return nil, err
	}
	d.databases = health.NewDatabases(cfg, d.Follower.Status, d.Role.Publish, d.Reg)
	d.drain = drain.New(state, d.Role, d.Steps.Known, d.Reg, log)
	d.report = report.New(report.Config{File: cfg, Version: version, Started: d.started, Sizes: d.Sizes, Reg: d.Reg, Log: log},
		d.Role, d.Steps, d.Follower, d.Metadata, d.Balancing, d.drain)
	d.explain = explain.New(cfg, d.Role, d.Steps, d.Follower, d.Balancing, d.Reg, log)
	d.metrics = nodemetrics.New(version, metrics.LogFailures(log))
	d.Reg.Require("vswitchd", "sb", "role", "dataplane")
	d.report.AddMetrics(d.metrics)
	return d, nil
}

func (d *daemon) run(ctx context.Context) error {
	notify := systemd.New(d.Log, d.Steps.Alive)
	defer notify.Stopping()
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		d.Role.WatchHost, d.Steps.RunIndices, d.Follower.Run, d.Taps.Run, d.databases.Run, d.drain.Run, notify.Run, heap.Trim, d.runAdmin,
		func(ctx context.Context) error { return health.WatchPins(ctx, d.Reg, d.pins) },
		func(ctx context.Context) error { return health.WatchOverdue(ctx, d.Reg, d.report.Waited) },
		func(ctx context.Context) error { return d.Role.Run(ctx, d.startGateway) },
		func(ctx context.Context) error { return taps.Run(ctx, d.Metadata) },
		func(ctx context.Context) error { return taps.Run(ctx, d.Balancing) },
		func(ctx context.Context) error {
			h := serve.Health{Metrics: d.metrics.Gatherer(), Status: d.Reg, Alive: d.Steps.Alive, PProf: d.Config.HTTP.PProf}
			return serve.Run(ctx, settings.HTTP(d.Config.HTTP), h, d.Log)
		},
	} {
		group.Go(func() error { return part(ctx) })
	}
	notify.Ready("following OVN")
	return group.Wait()
}

// Take has the databases' conditions follow an event of OVN.
func (d *daemon) Take(e ovn.Event) { d.databases.Take(e) }

// startGateway starts what the node is for.
func (d *daemon) startGateway(ctx context.Context, facts gateway.Facts) (role.Runner, error) {
	return gateway.Start(ctx, gateway.Config{
		File: d.Config, Facts: facts, Started: d.started, Sizes: d.Sizes, IndexKept: d.Indices.Kept, Rows: d.Follower, Daemon: d,
	}, d.Steps, d.Switch, d.Reg, d.Log)
}

// pins are those who have pins, by directory.
func (d *daemon) pins() map[string]health.Keeper {
	bpffs, out := d.Config.Dataplane.BPFFS, map[string]health.Keeper{}
	if g, err := d.Role.Running(); err == nil {
		out[bpffs] = g
	}
	if b := d.Balancing.Running(); b != nil {
		out[owned.ClientPins(bpffs)] = b.Dataplane
	}
	if m := d.Metadata.Running(); m != nil {
		out[owned.MetadataPins(bpffs)] = m.Taps
	}
	return out
}

// What a gateway asks of the daemon, and tells it: gateway.Daemon.

func (d *daemon) ObservePass(took time.Duration)           { d.metrics.ObservePass(took) }
func (d *daemon) ObserveAnnounceDelay(delay time.Duration) { d.metrics.ObserveAnnounceDelay(delay) }
func (d *daemon) Stage() stages.Stage                      { return d.drain.Stage() }

// AtWork takes the gateway that answers are of; nil: none is at work.
func (d *daemon) AtWork(g *gateway.Gateway) {
	d.Role.AtWork(g)
	if g != nil {
		d.drain.Look() // it may have ended since the gateway was told of its stage
	}
}
