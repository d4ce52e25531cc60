// Package balancing balances what this node's VMs send to VIPs, on their taps.
package balancing

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/tapbalancing"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Config is what the configuration says of balancing on taps.
type Config struct {
	// Used: it is to be done.
	Used       bool
	Translator tapbalancing.Config
	// Readings are those of translation.Translation.
	Readings *loadbalancer.Book
	Plane    ebpf.Config
}

// Node is what balancing asks of the node.
type Node interface {
	// AllInSync tells whether all databases of OVN are in sync.
	AllInSync() bool
	// Calm tells whether the start is over for all that others wait for.
	Calm() bool
	// ConntrackFault says what of Open vSwitch's connection tracking harms the VMs; empty: nothing.
	ConntrackFault() string
}

// Balancing lives as long as the daemon: every node with VMs has it, whatever its role.
type Balancing struct {
	cfg   Config
	taps  *taps.Taps
	node  Node
	sizes *tables.MaglevSizes
	reg   *status.Registry
	log   *slog.Logger

	mu         sync.Mutex
	translator *tapbalancing.Translator
	complaints uint64   // the translator's, as last reported
	found      uint64   // taps.Found.Number of what the translator was told
	running    *Running // nil until it has started
	failed     error    // why the programs of an earlier start go on; nil: nothing has failed
	// stepped: what is wanted has been computed once.
	stepped bool
}

// Running is what is there of it while it runs.
type Running struct {
	Dataplane *ebpf.Dataplane
	Tables    *tables.Clients
	Samples   plane.Samples
}

const (
	reports   = "clients"
	condition = "clients"
	// lookInterval is how often the condition is looked at: another Open vSwitch may run.
	lookInterval = time.Second
)

// New makes it. It does no I/O.
func New(cfg Config, t *taps.Taps, node Node, sizes *tables.MaglevSizes, reg *status.Registry, log *slog.Logger) *Balancing {
	return &Balancing{cfg: cfg, taps: t, node: node, sizes: sizes, reg: reg, log: log, translator: tapbalancing.NewTranslator(cfg.Translator, cfg.Readings)}
}

// Take computes what OVN asks for after an event.
func (b *Balancing) Take(e ovn.Event) {
	if !b.cfg.Used {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.taps.Found()
	devices := b.found != found.Number
	if !b.stepped || devices || len(e.Dirty.Switches) != 0 || e.Dirty.All || b.translator.Stale() {
		b.step(e, found, devices)
	}
	if b.running != nil { // rows may be held for an in-sync that has just come
		b.running.Tables.Pipeline.Kick()
	}
}

func (b *Balancing) step(e ovn.Event, found taps.Found, devices bool) {
	// What is wanted first is compared with what an earlier sluiced has made: a VM whose
	// tap was not looked for yet would be taken away.
	if !b.stepped && !found.Complete {
		return
	}
	var byOVN map[string]bool
	if devices {
		byOVN = balancedByOVN(b.translator.VMs())
		b.found = found.Number
		b.translator.SetDevices(found.Devices)
	}
	diff := b.translator.Step(e.Rows, e.Dirty, e.InSync.Remembered())
	if !b.stepped && b.translator.Stale() {
		return
	}
	if b.running != nil {
		if b.stepped {
			had := func(k intent.TapClientKey) bool {
				_, had := tables.Of(b.running.Tables, intent.TapClients).Wanted(k)
				return had
			}
			b.running.Dataplane.VMs().Before(newcomers(wanted.Of(diff, intent.TapClients).Set, had, byOVN, b.translator.VMs))
		}
		b.sizes.Changed(b.running.patch(diff, !b.stepped))
	}
	if !b.stepped {
		b.stepped = true
		b.note()
	}
	if now := b.translator.Complaints(); now != b.complaints {
		b.complaints = now
		b.reg.Reporter(reports).Replace(b.translator.Objects())
	}
}

// Running is what is there of it; nil while there is nothing.
func (b *Balancing) Running() *Running {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running
}

// Used tells whether it is to be done.
func (b *Balancing) Used() bool { return b.cfg.Used }

// Told tells whether it is known what is to be balanced, and on which taps.
func (b *Balancing) Told() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stepped || !b.cfg.Used
}

// VMs are those of this node on switches with VIPs.
func (b *Balancing) VMs() []tapbalancing.VM {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.translator.VMs()
}

// Balanced are the VIPs of their switches.
func (b *Balancing) Balanced() []loadbalancer.Balanced {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.translator.Balanced()
}

// Wanted is all that OVN asks for.
func (b *Balancing) Wanted() wanted.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.translator.Tables()
}

// Start opens the programs and maps.
func (b *Balancing) Start(context.Context) error {
	dp, err := ebpf.Open(b.cfg.Plane)
	if err != nil {
		return fmt.Errorf("programs of VMs' taps: %w", err)
	}
	b.run(&Running{Dataplane: dp, Tables: tables.NewClients(Drivers(dp.VIPs(), dp.Neighbors(), dp.VMs()),
		b.node.AllInSync, tables.Options{Status: b.reg, Log: b.log})})
	return nil
}

// run makes r what OVN's events go to, and gives it what is known.
func (b *Balancing) run(r *Running) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.failed = r, nil
	if r != nil && b.stepped {
		r.Want(b.translator.Tables())
	}
	b.note()
}

// Serve balances until ctx ends.
func (b *Balancing) Serve(ctx context.Context) error {
	r := b.Running()
	defer func() { _ = r.Dataplane.Close() }()
	defer b.run(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if !plane.AwaitUsed(ctx, r.Dataplane) {
			return nil
		}
		return r.Tables.Pipeline.Run(ctx)
	})
	group.Go(func() error {
		if plane.Replace(ctx, r.Dataplane, b.node.Calm, b.noteReplaced, b.log) {
			b.noteReplaced(nil)
		}
		return nil
	})
	group.Go(func() error { return r.Samples.Run(ctx, r.Dataplane.Reader(), b.log) })
	group.Go(func() error { return plane.ExpireSessions(ctx, r.Dataplane, "vms", b.reg, b.log) })
	group.Go(func() error { return b.promote(ctx, r) })
	group.Go(func() error {
		return loop.Every(ctx, lookInterval, nil, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.note()
		})
	})
	return group.Wait()
}

// note says what there is of it. b.mu is held.
func (b *Balancing) note() {
	ready, why, detail := true, reason.Serving, ""
	switch {
	case b.running == nil:
		return // whoever starts it says why
	case b.failed != nil:
		ready, why, detail = false, reason.StartFailed, plane.StartFailed(b.failed)
	case !b.stepped:
		why, detail = reason.Waiting, "for the databases of OVN; programs of an earlier start stay in use"
	case b.running.Dataplane.Staged(), !b.running.Dataplane.Replaced():
		ready, why = false, reason.Rebuilding
	default:
		detail = b.node.ConntrackFault()
	}
	b.reg.SetCondition(condition, ready, why, detail)
}

// Failed reports a start that failed, or leftovers that cannot be removed.
func (b *Balancing) Failed(err error) {
	why, text := reason.StartFailed, plane.StartFailed(err)
	if !b.cfg.Used {
		why, text = reason.Leftovers, err.Error()
	}
	b.reg.SetCondition(condition, false, why, text)
}

// noteReplaced takes what became of the programs' replacement.
func (b *Balancing) noteReplaced(failed error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = failed
	b.note()
}

// Retire takes away what an earlier start made.
func (b *Balancing) Retire(ctx context.Context) error {
	things, err := owned.Clients(b.cfg.Plane.Dir)
	for _, t := range things {
		b.log.Info("nothing is balanced on taps; removing", "object", t.What)
		if failed := t.Remove(ctx); failed != nil && err == nil {
			err = failed
		}
	}
	if err == nil {
		b.reg.SetCondition(condition, true, reason.Idle, "nothing is balanced on taps (loadBalancing.clients)")
	}
	return err
}

// Inspect opens the pins for reading.
func (b *Balancing) Inspect() (*ebpf.Inspection, error) { return ebpf.Inspect(b.cfg.Plane) }
