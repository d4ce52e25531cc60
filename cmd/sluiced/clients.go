package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/clients"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// clientsPart balances what this node's machines send to VIPs, on their taps. It lives as
// long as the daemon: every node with machines has it, whatever its role.
type clientsPart struct {
	d       *daemon
	tracing sync.Mutex

	// Guarded by d.mu.
	translator *clients.Translator
	complaints uint64         // the translator's, as last reported
	found      uint64         // tapsPart.found of what the translator was told
	at         *clientsAtWork // nil until it has started
	failed     error          // why the programs of an earlier start go on; nil: nothing has failed
	// stepped: what is wanted has been computed once.
	stepped bool
}

const (
	clientsReports   = "clients"
	clientsCondition = "clients"
)

func newClients(d *daemon) *clientsPart {
	return &clientsPart{d: d, translator: clients.NewTranslator(settings.Clients(d.cfg.LoadBalancing))}
}

// take computes what OVN asks for after an event. d.mu is held.
func (c *clientsPart) take(e ovn.Event) {
	if c == nil || !c.d.cfg.LoadBalancing.OnTaps() {
		return
	}
	devices := c.found != c.d.taps.found
	if c.stepped && !devices && len(e.Dirty.Switches) == 0 && !e.Dirty.All && !c.translator.Stale() {
		return
	}
	// What is wanted first is compared with what an earlier sluiced has made: a machine whose
	// tap was not looked for yet would be taken away.
	if !c.stepped && !c.d.taps.lookedFor() {
		return
	}
	var byOVN map[string]bool
	if devices {
		byOVN = balancedByOVN(c.translator.Machines())
		c.found = c.d.taps.found
		c.translator.SetDevices(c.d.taps.devices)
	}
	diff := c.translator.Step(e.Rows, e.Dirty, e.InSync.Remembered())
	if !c.stepped && c.translator.Stale() {
		return
	}
	if c.at != nil {
		if c.stepped {
			had := func(k intent.ClientKey) bool { _, had := tables.Of(c.at.tables, intent.Clients).Wanted(k); return had }
			c.at.dp.Machines().Before(newcomers(wanted.Of(diff, intent.Clients).Set, had, byOVN, c.translator.Machines))
		}
		c.d.tableSteps.say(c.at.patch(diff, !c.stepped))
	}
	if !c.stepped {
		c.stepped = true
		c.note()
	}
	if now := c.translator.Complaints(); now != c.complaints {
		c.complaints = now
		c.d.reg.Reporter(clientsReports).Replace(c.translator.Objects())
	}
}

// clientsAtWork is what is there of it.
type clientsAtWork struct {
	dp      *ebpf.Dataplane
	tables  *tables.Clients
	samples sampler
}

// work is what there is of it; nil while there is nothing.
func (c *clientsPart) work() *clientsAtWork {
	if c == nil {
		return nil
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.at
}

// run has it at work until ctx ends.
func (c *clientsPart) run(ctx context.Context) error {
	if !c.d.cfg.LoadBalancing.OnTaps() {
		c.retire(ctx)
		return nil
	}
	var w *clientsAtWork
	for {
		var err error
		if w, err = c.start(); err == nil {
			break
		}
		c.d.reg.SetCondition(clientsCondition, false, reason.StartFailed, startFailed(err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startRetry):
		}
	}
	defer func() { _ = w.dp.Close() }()
	c.adopt(w)
	defer c.adopt(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-w.dp.Used():
		}
		return w.tables.Pipeline.Run(ctx)
	})
	group.Go(func() error { return c.replacePrograms(ctx, w) })
	group.Go(func() error { return w.samples.run(ctx, w.dp.Reader(), c.d.log) })
	group.Go(func() error { return c.d.sweepFlows(ctx, w.dp, "machines") })
	group.Go(func() error { return c.promote(ctx, w) })
	return ignoreEnd(group.Wait())
}

// note says what there is of it. d.mu is held.
func (c *clientsPart) note() {
	ready, why, detail := true, reason.Serving, ""
	switch {
	case c.at == nil:
		return // whoever starts it says why
	case c.failed != nil:
		ready, why, detail = false, reason.StartFailed, startFailed(c.failed)
	case !c.stepped:
		why, detail = reason.Waiting, "for the databases of OVN; what an earlier start left goes on"
	case c.at.dp.Staged(), !c.at.dp.Replaced():
		ready, why = false, reason.Rebuilding
	default:
		detail = c.d.ovs.ConntrackFault()
	}
	c.d.reg.SetCondition(clientsCondition, ready, why, detail)
}

// tapPatience is how long maps of an older layout go on for machines whose taps are not there.
const tapPatience = 10 * time.Second

// promote changes from maps of an older layout to this build's when they are filled.
func (c *clientsPart) promote(ctx context.Context, w *clientsAtWork) error {
	for began := time.Now(); w.dp.Staged(); {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(promoteInterval):
		}
		c.d.mu.Lock()
		told := c.stepped
		c.d.mu.Unlock()
		if !told || !c.d.steps.AllInSync() || !w.dp.Replaced() {
			began = time.Now()
			continue
		}
		if !tables.Of(w.tables, intent.ClientVIPs).Settled() || !tables.Of(w.tables, intent.ClientNeighbors).Settled() {
			began = time.Now()
			continue
		}
		if !tables.Of(w.tables, intent.Clients).Settled() && time.Since(began) < tapPatience {
			continue
		}
		if err := w.dp.Promote(); err != nil {
			c.d.log.Warn("the older maps of taps go on; trying again", "error", err)
			continue
		}
		c.d.mu.Lock()
		c.note()
		c.d.mu.Unlock()
	}
	return nil
}

// replacePrograms replaces the programs of an earlier start that differ from this one's.
func (c *clientsPart) replacePrograms(ctx context.Context, w *clientsAtWork) error {
	if w.dp.Replaced() || !c.d.awaitCalm(ctx, w.dp) {
		return nil
	}
	if c.d.replaced(ctx, w.dp, c.noteReplaced) {
		c.noteReplaced(nil)
	}
	return nil
}

// noteReplaced takes what became of the programs' replacement.
func (c *clientsPart) noteReplaced(failed error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.failed = failed
	c.note()
}

func (c *clientsPart) start() (*clientsAtWork, error) {
	dp, err := ebpf.Open(c.ebpfConfig())
	if err != nil {
		return nil, fmt.Errorf("programs of machines' taps: %w", err)
	}
	return &clientsAtWork{dp: dp, tables: tables.NewClients(clientDrivers(dp),
		c.d.steps.AllInSync, tables.Options{Status: c.d.reg, Log: c.d.log})}, nil
}

func clientDrivers(dp *ebpf.Dataplane) tables.Drivers {
	d := tables.Drivers{}
	tables.Drive(d, intent.ClientVIPs, dp.VIPs())
	tables.Drive(d, intent.ClientNeighbors, dp.Neighbors())
	tables.Drive(d, intent.Clients, dp.Machines())
	return d
}

func (c *clientsPart) ebpfConfig() ebpf.Config {
	cfg := c.d.cfg
	return ebpf.Config{
		Dir: owned.ClientPins(cfg.Dataplane.BPFFS), Plane: ebpf.Clients, Node: ebpf.Node{FlowRate: cfg.LoadBalancing.NewFlowRate},
		Limits: settings.Limits(cfg.Dataplane.Sizes), Log: c.d.log,
	}
}

// adopt makes w what OVN's events go to, and gives it what is known.
func (c *clientsPart) adopt(w *clientsAtWork) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.at, c.failed = w, nil
	if w != nil && c.stepped {
		w.want(c.translator.Tables())
	}
	c.note()
}

func (w *clientsAtWork) want(all wanted.Set) {
	w.tables.Pipeline.Update(func() { w.tables.Set(all) })
}

// patch hands a step to the tables, and tells which VIPs get a table of another size. first:
// it is all that is wanted.
func (w *clientsAtWork) patch(d wanted.Difference, first bool) (steps []tableStep) {
	switch {
	case first:
		all := wanted.NewSet()
		all.Apply(d)
		w.want(all)
	case !d.Empty():
		w.tables.Pipeline.Update(func() {
			steps = stepsOf(wanted.Of(d, intent.ClientVIPs).Set, tables.Of(w.tables, intent.ClientVIPs).LookupLocked)
			w.tables.Update(d)
		})
	}
	return steps
}

// retire takes away what an earlier start made.
func (c *clientsPart) retire(ctx context.Context) {
	things, err := owned.Clients(owned.ClientPins(c.d.cfg.Dataplane.BPFFS))
	for _, t := range things {
		c.d.log.Info("nothing is balanced on taps; removing", "object", t.What)
		if failed := t.Remove(ctx); failed != nil && err == nil {
			err = failed
		}
	}
	if err != nil {
		c.d.reg.SetCondition(clientsCondition, false, reason.Leftovers, err.Error())
		return
	}
	c.d.reg.SetCondition(clientsCondition, true, reason.Idle, "nothing is balanced on taps (loadBalancing.clients)")
}
