package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/evpn/vrfindex"
	"github.com/ovn-sluice/sluice/controlplane/exposure"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/crash"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/heap"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/serve"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/systemd"
)

// daemon is sluiced: what lives as long as the process. What depends on the
// node's identity lives in a node, which comes and goes with it.
type daemon struct {
	cfg     *config.Config
	log     *slog.Logger
	started time.Time
	reg     *status.Registry
	metrics *nodemetrics.Metrics
	// tableSteps are those of both planes that balance.
	tableSteps tableSteps

	follower *ovn.Follower
	vswitch  *ovsdb.Session
	ovs      *ovs.Switch
	indices  *vrfindex.Store
	facts    chan nodeFacts // capacity 1: the latest
	host     chan ovn.HostAddresses
	// hostLooks has watchHost look; capacity 1.
	hostLooks chan struct{}
	drain     *drain.Drain
	// drainChanged has watchDrain look; capacity 1.
	drainChanged chan struct{}
	// healthChanged has watchHealth look; capacity 1.
	healthChanged chan struct{}
	// inSyncNow is read where mu must not be taken; nil before the first event.
	inSyncNow atomic.Pointer[ovn.InSync]

	mu         sync.Mutex // guards what follows; held while an OVN event is taken
	translator *evpn.Translator
	exposure   *exposure.Translator
	// complaints are the translators', as last reported.
	complaints, exposureComplaints uint64
	latest                         nodeFacts
	node                           *node // nil while the node has no role
	metadata                       *metadataPart
	clients                        *clientsPart
	taps                           *tapsPart
	siblings                       []netip.Addr // as ovn.Rows.Siblings tells
	published                      bool         // Chassis_Private has been written, or is to be
	// retain: indices of VRFs that went while nobody looked are still to be freed.
	retain bool
}

func newDaemon(cfg *config.Config, log *slog.Logger) (*daemon, error) {
	d, err := newFollowing(cfg, log, vrfindex.Open, nil, cfg.StateDir+"/northbound.json")
	if err != nil {
		return nil, err
	}
	if err := d.openDrain(); err != nil {
		return nil, err
	}
	d.retain = true
	d.metrics = nodemetrics.New(version, metrics.LogFailures(log))
	d.reg.Require("vswitchd", "sb", "role", "dataplane")
	d.addMetrics()
	return d, nil
}

// newFollowing is the part that follows OVN and computes what it asks for. The
// VRF indices come from open; transact, when set, takes what would be written to
// the local Open vSwitch database. memory is that of ovn.Config.
func newFollowing(cfg *config.Config, log *slog.Logger, open openIndices, transact ovs.Transact, memory string) (*daemon, error) {
	d := &daemon{
		cfg: cfg, log: log, started: time.Now(), reg: status.NewRegistry(log), tableSteps: tableSteps{log: log},
		facts: make(chan nodeFacts, 1), host: make(chan ovn.HostAddresses), hostLooks: make(chan struct{}, 1),
		drainChanged: make(chan struct{}, 1), healthChanged: make(chan struct{}, 1),
	}
	needs, err := d.openTranslator(open)
	if err != nil {
		return nil, err
	}
	d.ovs, d.vswitch, err = ovs.Open(ovs.Config{RunDir: cfg.OVS.RunDir, Logger: log, Transact: transact}, ovsdb.Config{
		Endpoints: cfg.OVN.VSwitch, TLS: settings.TLSFiles(cfg.OVN.TLS), Logger: log, InactivityProbe: settings.InactivityProbe(cfg),
	})
	if err != nil {
		return nil, fmt.Errorf("local Open vSwitch database: %w", err)
	}
	d.follower, err = ovn.NewFollower(ovn.Config{
		VSwitch: cfg.OVN.VSwitch, Southbound: cfg.OVN.SB, Northbound: cfg.OVN.NB, TLS: settings.TLSFiles(cfg.OVN.TLS),
		NorthboundPatience: settings.NorthboundPatience, NorthboundNeeded: cfg.EVPN.NATUnknown == config.NATUnknownHold, Memory: memory,
		SystemID: cfg.OVN.SystemID, InactivityProbe: settings.InactivityProbe(cfg), Needs: needs, Host: d.host, Handle: d.takeOVN, Local: d.takeLocal, Logger: log,
	})
	return d, err
}

// openIndices is vrfindex.Open or vrfindex.Peek.
type openIndices func(path string, seed map[intent.VNI]uint16) (*vrfindex.Store, error)

// openTranslator seeds the VRF indices with what the pinned maps show.
func (d *daemon) openTranslator(open openIndices) (ovn.Needs, error) {
	seed, err := ebpf.PinnedVRFs(d.cfg.Dataplane.BPFFS)
	if err != nil {
		d.log.Warn("the pinned VRF table cannot be read; indices come from the state directory alone", "error", err)
	}
	path := d.cfg.StateDir + "/vrf-indices.json"
	if d.indices, err = open(path, seed); err != nil {
		return ovn.Needs{}, fmt.Errorf("VRF indices in %s: %w", path, err)
	}
	if err := d.indices.Damaged(); err != nil {
		d.reg.Reporter("state").Set(status.Object{Kind: "node", Key: "vrf-indices", State: status.Warning, Reason: reason.NotRead, Error: err.Error()})
	}
	ec := settings.EVPN(d.cfg)
	d.translator = evpn.NewTranslator(ec, d.indices)
	xc := settings.Exposure(d.cfg)
	d.exposure = exposure.NewTranslator(xc, d.indices)
	needs := xc.Needs(evpn.Needs(ec))
	d.metadata = newMetadata(d)
	if d.cfg.Metadata.Used() {
		needs = settings.Metadata(d.cfg.Metadata).Needs(needs)
	}
	d.clients = newClients(d)
	if d.cfg.LoadBalancing.OnTaps() {
		needs = settings.Clients(d.cfg.LoadBalancing).Needs(needs)
	}
	if needs.Machines {
		d.taps = newTaps(d)
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
	notify := systemd.New(d.log, d.alive)
	defer notify.Stopping()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.vswitch.Run(ctx) })
	group.Go(func() error { return d.watchHost(ctx) })
	group.Go(func() error { return d.watchPins(ctx) })
	group.Go(func() error { return d.indices.Run(ctx, d.indicesKept) })
	group.Go(func() error { return d.follower.Run(ctx) })
	group.Go(func() error { return d.runNodes(ctx, d.startRunner) })
	group.Go(func() error { return d.taps.run(ctx) })
	group.Go(func() error { return d.metadata.run(ctx) })
	group.Go(func() error { return d.clients.run(ctx) })
	group.Go(func() error { return d.runAdmin(ctx) })
	group.Go(func() error { return d.watchHealth(ctx) })
	group.Go(func() error { return d.watchDrain(ctx) })
	group.Go(func() error { return d.watchOverdue(ctx) })
	group.Go(func() error { return notify.Run(ctx) })
	group.Go(func() error { return heap.Trim(ctx) })
	group.Go(func() error {
		return serve.Run(ctx, settings.HTTP(d.cfg.HTTP), serve.Health{Metrics: d.metrics.Gatherer(), Status: d.reg, Alive: d.alive, PProf: d.cfg.HTTP.PProf}, d.log)
	})
	notify.Ready("following OVN")
	return group.Wait()
}

// alive takes the lock that every OVN event takes: a daemon that cannot is stuck.
func (d *daemon) alive(ctx context.Context) error {
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for !d.mu.TryLock() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the control plane has not answered: %w", ctx.Err())
		case <-tick.C:
		}
	}
	d.mu.Unlock()
	return nil
}

const aliveInterval = 5 * time.Millisecond
