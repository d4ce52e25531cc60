package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/balancing"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/metadata"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/translation"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/evpn/vrfindex"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/crash"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/heap"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/serve"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/systemd"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// daemon is sluiced: what lives as long as the process. What depends on the
// node's identity lives in a node, which comes and goes with it.
type daemon struct {
	cfg     *config.Config
	log     *slog.Logger
	started time.Time
	reg     *status.Registry
	metrics *nodemetrics.Metrics
	// sizes are those of the Maglev tables of both planes.
	sizes *tables.MaglevSizes

	follower  *ovn.Follower
	vswitch   *ovsdb.Session
	ovs       *ovs.Switch
	steps     *translation.Translation
	taps      *taps.Taps // nil: nobody needs them
	metadata  *metadata.Metadata
	balancing *balancing.Balancing
	kept      func(intent.VNI) bool // vrfindex.Store.Kept
	tracing   sync.Mutex            // the scratch map of a trace has one row
	facts     chan nodeFacts        // capacity 1: the latest
	host      chan ovn.HostAddresses
	// hostLooks has watchHost look; capacity 1.
	hostLooks chan struct{}
	drain     *drain.Drain
	// drainChanged has watchDrain look; capacity 1.
	drainChanged chan struct{}
	// healthChanged has watchHealth look.
	healthChanged loop.Signal

	mu        sync.Mutex // guards what follows
	latest    nodeFacts
	node      *node      // nil while the node has no role
	synced    ovn.InSync // of the last event
	published bool       // Chassis_Private has been written, or is to be
}

func newDaemon(cfg *config.Config, log *slog.Logger) (*daemon, error) {
	d, err := newFollowing(cfg, log, following{indices: vrfindex.Open, memory: cfg.StateDir + "/northbound.json", retain: true})
	if err != nil {
		return nil, err
	}
	if err := d.openDrain(); err != nil {
		return nil, err
	}
	d.metrics = nodemetrics.New(version, metrics.LogFailures(log))
	d.reg.Require("vswitchd", "sb", "role", "dataplane")
	d.addMetrics()
	return d, nil
}

// following is what a daemon and a dry run follow OVN with.
type following struct {
	indices translation.Indices
	// transact, when set, takes what would be written to the local Open vSwitch database.
	transact ovs.Transact
	// memory is that of ovn.Config, retain that of translation.Config.
	memory string
	retain bool
}

// newFollowing is the part that follows OVN and computes what it asks for.
func newFollowing(cfg *config.Config, log *slog.Logger, with following) (*daemon, error) {
	d := &daemon{
		cfg: cfg, log: log, started: time.Now(), reg: status.NewRegistry(log), sizes: tables.NewMaglevSizes(log),
		facts: make(chan nodeFacts, 1), host: make(chan ovn.HostAddresses), hostLooks: make(chan struct{}, 1),
		drainChanged: make(chan struct{}, 1), healthChanged: loop.NewSignal(),
	}
	needs, err := d.openTranslator(with)
	if err != nil {
		return nil, err
	}
	d.ovs, d.vswitch, err = ovs.Open(ovs.Config{RunDir: cfg.OVS.RunDir, Logger: log, Transact: with.transact}, ovsdb.Config{
		Endpoints: cfg.OVN.VSwitch, TLS: settings.TLSFiles(cfg.OVN.TLS), Logger: log, InactivityProbe: settings.InactivityProbe(cfg),
	})
	if err != nil {
		return nil, fmt.Errorf("local Open vSwitch database: %w", err)
	}
	d.newFeatures(with)
	d.steps.Consume(d.taps, d.metadata, d.balancing, d)
	d.follower, err = ovn.NewFollower(ovn.Config{
		VSwitch: cfg.OVN.VSwitch, Southbound: cfg.OVN.SB, Northbound: cfg.OVN.NB, TLS: settings.TLSFiles(cfg.OVN.TLS),
		NorthboundPatience: settings.NorthboundPatience, NorthboundNeeded: cfg.EVPN.NATUnknown == config.NATUnknownHold, Memory: with.memory,
		SystemID: cfg.OVN.SystemID, InactivityProbe: settings.InactivityProbe(cfg), Needs: needs, Host: d.host, Handle: d.steps.Take, Local: d.takeLocal, Logger: log,
	})
	return d, err
}

// newFeatures makes what is done on taps.
func (d *daemon) newFeatures(with following) {
	d.metadata = metadata.New(metadata.Config{
		Metadata: d.cfg.Metadata, Translator: settings.Metadata(d.cfg.Metadata), Northbound: d.cfg.OVN.NB != "",
		Dir: owned.MetadataPins(d.cfg.Dataplane.BPFFS), StateDir: d.cfg.StateDir, Dry: with.transact != nil,
	}, d.taps, d.ovs, agent{d}, d.steps.OVNInSync, d.reg, d.log)
	d.balancing = balancing.New(balancing.Config{
		Used: d.cfg.LoadBalancing.OnTaps(), Translator: settings.Clients(d.cfg.LoadBalancing),
		Plane: ebpf.Config{
			Dir: owned.ClientPins(d.cfg.Dataplane.BPFFS), Plane: ebpf.Clients, Node: ebpf.Node{FlowRate: d.cfg.LoadBalancing.NewFlowRate},
			Limits: settings.Limits(d.cfg.Dataplane.Sizes), Log: d.log,
		},
	}, d.taps, calmNode{d}, d.sizes, d.reg, d.log)
}

// agent is the follower, which is made later.
type agent struct{ d *daemon }

func (a agent) PublishMetadata(m ovn.MetadataAgent) { a.d.follower.PublishMetadata(m) }
func (a agent) MetadataNetworks() []string          { return a.d.follower.MetadataNetworks() }
func (a agent) Again()                              { a.d.follower.Again() }

// calmNode is what balancing asks of the node.
type calmNode struct{ d *daemon }

func (n calmNode) AllInSync() bool        { return n.d.steps.AllInSync() }
func (n calmNode) Calm() bool             { return n.d.calm() }
func (n calmNode) ConntrackFault() string { return n.d.ovs.ConntrackFault() }

// openTranslator seeds the VRF indices with what the pinned maps show.
func (d *daemon) openTranslator(with following) (ovn.Needs, error) {
	seed, err := ebpf.PinnedVRFs(d.cfg.Dataplane.BPFFS)
	if err != nil {
		d.log.Warn("the pinned VRF table cannot be read; indices come from the state directory alone", "error", err)
	}
	indices, err := translation.OpenIndices(with.indices, d.cfg.StateDir, seed, d.reg)
	if err != nil {
		return ovn.Needs{}, err
	}
	c := translation.Config{EVPN: settings.EVPN(d.cfg), Exposure: settings.Exposure(d.cfg), Retain: with.retain}
	d.steps = translation.New(c, indices, d.reg)
	d.kept = indices.Kept
	needs := c.Exposure.Needs(evpn.Needs(c.EVPN))
	if d.cfg.Metadata.Used() {
		needs = settings.Metadata(d.cfg.Metadata).Needs(needs)
	}
	if d.cfg.LoadBalancing.OnTaps() {
		needs = settings.Clients(d.cfg.LoadBalancing).Needs(needs)
	}
	if needs.Machines {
		d.taps = taps.New(func() { d.follower.Again() }, d.log)
	}
	return needs, nil
}

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

func (d *daemon) run(ctx context.Context) error {
	notify := systemd.New(d.log, d.steps.Alive)
	defer notify.Stopping()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.vswitch.Run(ctx) })
	group.Go(func() error { return d.watchHost(ctx) })
	group.Go(func() error { return d.watchPins(ctx) })
	group.Go(func() error { return d.steps.RunIndices(ctx) })
	group.Go(func() error { return d.follower.Run(ctx) })
	group.Go(func() error { return d.runNodes(ctx, d.startRunner) })
	group.Go(func() error { return d.taps.Run(ctx) })
	group.Go(func() error { return taps.Run(ctx, d.metadata) })
	group.Go(func() error { return taps.Run(ctx, d.balancing) })
	group.Go(func() error { return d.runAdmin(ctx) })
	group.Go(func() error { return d.watchHealth(ctx) })
	group.Go(func() error { return d.watchDrain(ctx) })
	group.Go(func() error { return watchOverdue(ctx, d.reg, d.waited) })
	group.Go(func() error { return notify.Run(ctx) })
	group.Go(func() error { return heap.Trim(ctx) })
	group.Go(func() error {
		return serve.Run(ctx, settings.HTTP(d.cfg.HTTP), serve.Health{Metrics: d.metrics.Gatherer(), Status: d.reg, Alive: d.steps.Alive, PProf: d.cfg.HTTP.PProf}, d.log)
	})
	notify.Ready("following OVN")
	return group.Wait()
}
