package metadataproxy

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/dataplane/metadata/service"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/heap"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/serve"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/systemd"
)

// process is the process of the metadata proxy.
type process struct {
	cfg     *config.Config
	version string
	log     *slog.Logger
	started time.Time
	service service.Config
	journal *service.Journal
	metrics *nodemetrics.Metrics
	reg     *status.Registry

	mu      sync.Mutex
	running *service.Service // nil where nothing is done
}

func newProcess(cfg *config.Config, o options, log *slog.Logger) (*process, error) {
	p := &process{
		cfg: cfg, version: o.version, log: log, started: time.Now(), journal: service.NewJournal(log), reg: status.NewRegistry(log),
		metrics: nodemetrics.NewMetadata(o.version, metrics.LogFailures(log)),
	}
	p.metrics.AddStatus(p.reg)
	p.metrics.AddMetadata(p.status)
	if !cfg.Metadata.Used() {
		return p, nil
	}
	p.reg.Require("identities", "listeners", "heartbeat")
	var err error
	if p.service, err = serviceConfig(cfg, o, log); err != nil {
		return nil, err
	}
	p.service.Proxy.Observe = func(r proxy.Request) {
		p.journal.Observe(r)
		if r.Outcome != proxy.TooManyConnections { // no request
			p.metrics.ObserveMetadata(r.Took)
		}
	}
	return p, nil
}

// run serves until ctx ends, or until somebody asks to hand over and check has nothing
// against it. What tells of the proxy ends before it hands over: guests wait meanwhile.
func (p *process) run(ctx context.Context, before []service.Socket, again <-chan os.Signal, check func(context.Context) error) (sockets []service.Socket, handOver bool) {
	notify := systemd.New(p.log, p.alive)
	defer context.AfterFunc(ctx, notify.Stopping)()
	leave := make(chan struct{})
	left := p.serve(ctx, before, leave, notify)
	around, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return p.watch(around) })
	group.Go(func() error { return notify.Run(around) })
	group.Go(func() error { return heap.Trim(around) })
	group.Go(func() error { return p.insist(around, "admin socket", p.runAdmin) })
	group.Go(func() error { return p.insist(around, "metrics and health", p.runHTTP) })
	end := func() []service.Socket {
		stop()
		_ = group.Wait() // none of them fails
		close(leave)
		return <-left
	}
	for {
		select {
		case <-ctx.Done():
			end()
			return nil, false
		case <-again:
		}
		p.log.Info("sluiced metadata restarts in place")
		err := check(ctx)
		if ctx.Err() != nil {
			continue // it has ended the look, too
		}
		if err != nil {
			p.log.Error("sluiced metadata does not restart in place: the build or the configuration is not usable", "error", err)
			continue
		}
		return end(), true
	}
}

// serve begins to serve, and tells of the sockets that are left in the end.
func (p *process) serve(ctx context.Context, before []service.Socket, leave <-chan struct{}, notify *systemd.Notifier) <-chan []service.Socket {
	left := make(chan []service.Socket, 1)
	if why := p.cfg.Metadata.Unused(); why != "" {
		for _, s := range before {
			_ = unix.Close(s.FD)
			_ = notify.RemoveFD(s.Name) // it may not be stored
		}
		p.log.Info("sluiced metadata does nothing", "why", why)
		notify.Ready(why)
		close(left)
		return left
	}
	if systemd.Present() {
		p.service.Store = notify
	}
	s := service.New(p.service, before)
	p.mu.Lock()
	p.running = s
	p.mu.Unlock()
	go func() { left <- s.Run(ctx, leave) }()
	notify.Ready("answering metadata requests")
	return left
}

// insist keeps something running that guests do not depend on.
func (p *process) insist(ctx context.Context, what string, run func(context.Context) error) error {
	for ctx.Err() == nil {
		if err := run(ctx); err != nil {
			p.log.Error("a part of sluiced metadata failed; trying again", "part", what, "error", err)
		}
		loop.Sleep(ctx, insistInterval)
	}
	return nil
}

const insistInterval = 5 * time.Second

func (p *process) runHTTP(ctx context.Context) error {
	c := config.HTTP{Listen: p.cfg.Metadata.Listen, WebConfig: p.cfg.HTTP.WebConfig}
	return serve.Run(ctx, settings.HTTP(c), serve.Health{Metrics: p.metrics.Gatherer(), Status: p.reg, Alive: p.alive, PProf: c.PProf}, p.log)
}
