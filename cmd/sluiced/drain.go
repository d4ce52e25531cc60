package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// drainInterval is how often it is looked what a stage of a drain waits for. A node that serves
// waits for nothing.
const drainInterval = 500 * time.Millisecond

func (d *daemon) openDrain() (err error) {
	d.drain, err = drain.Open(d.cfg.StateDir+"/drain.json", time.Now())
	return err
}

// watchDrain takes the node through the stages of a drain.
func (d *daemon) watchDrain(ctx context.Context) error {
	asked, progress := false, drainProgress{}
	for {
		s := d.followDrain(ctx)
		if message := progress.message(s); message != "" {
			d.log.Info(message)
		}
		if asked || s.Stage != drain.Serving {
			asked = true
			d.tellDrain(s)
		}
		var again <-chan time.Time
		if s.Stage != drain.Serving {
			again = time.After(beat.Until(drainInterval))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.drainChanged:
		case <-again:
		}
	}
}

// drainProgress is how far the log has followed a drain: each stage is told once, although traffic
// that comes again leads back from the last one.
type drainProgress struct {
	of                 time.Time // when the routes of the drain are withdrawn
	withdrawn, drained bool
}

// message is the line for a stage that has been reached, empty where there is none.
func (p *drainProgress) message(s drain.Status) string {
	if !s.WithdrawAt.Equal(p.of) { // another drain, or none
		*p = drainProgress{of: s.WithdrawAt}
	}
	switch {
	case s.Stage == drain.Withdrawn && !p.withdrawn:
		p.withdrawn = true
		return "the node withdraws its routes and waits for traffic to end"
	case s.Stage == drain.Drained && !p.drained:
		p.withdrawn, p.drained = true, true
		return "the node is drained"
	}
	return ""
}

// tellDrain reports the drain: ready at each stage, since it is what was ordered.
func (d *daemon) tellDrain(s drain.Status) {
	d.reg.SetCondition("drain", true, string(s.Stage), drainDetail(s))
}

// followDrain does what the present stage asks for and looks at what it waits for.
func (d *daemon) followDrain(ctx context.Context) drain.Status {
	s := d.drain.Status(time.Now())
	packets, withdrawn := map[intent.VNI]uint64{}, true
	n, err := d.present()
	if err != nil {
		return s // the pins may forward, and neighbours have the routes of the last node
	}
	if n != nil {
		n.drainTo(ctx, s.Stage)
		if s.Stage == drain.Serving || !d.steps.Known() {
			return s // before OVN was read, neighbours have the routes of the last process
		}
		withdrawn = n.speaker.Announced() == 0
		traffic, err := n.traffic()
		if err != nil {
			return s // nothing is known of the traffic, so nothing follows
		}
		for vni, c := range traffic {
			packets[vni] = c.ToFabric.Packets + c.FromFabric.Packets
		}
	}
	d.drain.Observe(time.Now(), packets, withdrawn)
	return d.drain.Status(time.Now())
}

// hasNoRole tells whether it is known that the node is to forward nothing.
func (d *daemon) hasNoRole() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.latest.gateway && d.latest.reason != ""
}

func drainDetail(s drain.Status) string {
	switch {
	case s.Stage == drain.Shutdown:
		return "the routes are withdrawn at " + s.WithdrawAt.Format(time.TimeOnly)
	case s.Stage == drain.Withdrawn && len(s.Busy) > 0:
		var words []string
		for _, vni := range s.Busy {
			words = append(words, vni.String())
		}
		return "VRFs with traffic: " + strings.Join(words, ", ")
	}
	return ""
}

// drainTo has the node announce as the stage asks. A node that serves again takes
// the community off before the routes that were withdrawn come back.
func (n *node) drainTo(ctx context.Context, s drain.Stage) {
	if err := n.speaker.GracefulShutdown(ctx, s != drain.Serving); err != nil && ctx.Err() == nil {
		n.d.log.Warn("not all routes could be announced for the drain; trying again", "error", err)
	}
	out := s == drain.Withdrawn || s == drain.Drained
	if n.withdrawn.Swap(out) != out {
		n.tables.Pipeline.Update(n.tables.FabricChanged)
	}
}

// drainGate keeps announcements back while the node is drained.
func (n *node) drainGate() error {
	if n.withdrawn.Load() {
		return fmt.Errorf("%w: the node is being drained; 'sluicectl undrain' puts it back", reconcile.ErrNotReady)
	}
	return nil
}

// The answers to sluicectl.

func (d *daemon) drainStatus() status.Drain {
	s := d.drain.Status(time.Now())
	if s.Stage != drain.Serving {
		d.tellDrain(s) // the node's status is not behind this answer
	}
	out := status.Drain{Stage: string(s.Stage), Since: s.Since, WithdrawAt: s.WithdrawAt, Busy: s.Busy}
	if n, err := d.running(); err == nil {
		announced := n.speaker.Announced()
		out.Announced = &announced
		if s.Stage == drain.Serving {
			wanted := tables.Of(n.tables, intent.Announcements).Stats().Wanted
			out.Wanted = &wanted
		}
	}
	return out
}

func (d *daemon) beginDrain(ctx context.Context, r nodeapi.DrainRequest) (status.Drain, error) {
	if r.WithdrawAfter < 0 {
		return status.Drain{}, fmt.Errorf("%w: the time until the withdrawal is negative", admin.ErrBadRequest)
	}
	err := d.drain.Begin(ctx, time.Now(), r.WithdrawAfter)
	return d.drainChange(err, "the drain begins", "withdraw_after", r.WithdrawAfter)
}

func (d *daemon) endDrain(ctx context.Context, _ admin.Nothing) (status.Drain, error) {
	ended, err := d.drain.End(ctx)
	if !ended && err == nil {
		return d.drainStatus(), nil
	}
	return d.drainChange(err, "the drain ends")
}

// drainChange follows a drain that was begun or ended.
func (d *daemon) drainChange(err error, message string, attributes ...any) (status.Drain, error) {
	unsure := errors.Is(err, drain.ErrNotOnDisk)
	if err != nil && !unsure {
		return status.Drain{}, err
	}
	d.log.Info(message, attributes...)
	d.drainNow()
	if unsure {
		return status.Drain{}, fmt.Errorf("%w: %w", admin.ErrUnknown, err)
	}
	return d.drainStatus(), nil
}

func drainStages() (words []string) {
	for _, s := range drain.Stages() {
		words = append(words, string(s))
	}
	return words
}

// drainNow has watchDrain look at once.
func (d *daemon) drainNow() {
	select {
	case d.drainChanged <- struct{}{}:
	default:
	}
}
