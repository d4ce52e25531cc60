// Package drain takes the node through the stages of a drain, and answers for it.
package drain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/role"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// interval is how often it is looked what a stage of a drain waits for. A node that serves
// waits for nothing.
const interval = 500 * time.Millisecond

// Drain is that of the node. What was ordered outlasts the process.
type Drain struct {
	state   *drain.Drain
	role    *role.Role
	known   func() bool // OVN was read
	reg     *status.Registry
	log     *slog.Logger
	changed loop.Signal
}

// New makes it. known tells whether OVN was read.
func New(state *drain.Drain, r *role.Role, known func() bool, reg *status.Registry, log *slog.Logger) *Drain {
	return &Drain{state: state, role: r, known: known, reg: reg, log: log, changed: loop.NewSignal()}
}

// Stage is the present one.
func (d *Drain) Stage() drain.Stage { return d.state.Status(time.Now()).Stage }

// Look has what the stage asks for looked at at once.
func (d *Drain) Look() { d.changed.Send() }

// Run takes the node through the stages until ctx ends.
func (d *Drain) Run(ctx context.Context) error {
	asked, said := false, progress{}
	for {
		s := d.follow(ctx)
		if message := said.message(s); message != "" {
			d.log.Info(message)
		}
		if asked || s.Stage != drain.Serving {
			asked = true
			d.tell(s)
		}
		var again <-chan time.Time
		if s.Stage != drain.Serving {
			again = time.After(beat.Until(interval))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.changed:
		case <-again:
		}
	}
}

// progress is how far the log has followed a drain: each stage is told once, although traffic
// that comes again leads back from the last one.
type progress struct {
	of                 time.Time // when the routes of the drain are withdrawn
	withdrawn, drained bool
}

// message is the line for a stage that has been reached, empty where there is none.
func (p *progress) message(s drain.Status) string {
	if !s.WithdrawAt.Equal(p.of) { // another drain, or none
		*p = progress{of: s.WithdrawAt}
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

// tell reports the drain: ready at each stage, since it is what was ordered.
func (d *Drain) tell(s drain.Status) {
	d.reg.SetCondition("drain", true, string(s.Stage), detail(s))
}

// follow does what the present stage asks for and looks at what it waits for.
func (d *Drain) follow(ctx context.Context) drain.Status {
	s := d.state.Status(time.Now())
	packets, withdrawn := map[intent.VNI]uint64{}, true
	g, err := d.role.Present()
	if err != nil {
		return s // the pins may forward, and neighbours have the routes of the last node
	}
	if g != nil {
		g.DrainTo(ctx, s.Stage)
		if s.Stage == drain.Serving || !d.known() {
			return s // before OVN was read, neighbours have the routes of the last process
		}
		withdrawn = g.Speaker().Announced() == 0
		traffic, err := g.Traffic()
		if err != nil {
			return s // nothing is known of the traffic, so nothing follows
		}
		for vni, c := range traffic {
			packets[vni] = c.ToFabric.Packets + c.FromFabric.Packets
		}
	}
	d.state.Observe(time.Now(), packets, withdrawn)
	return d.state.Status(time.Now())
}

func detail(s drain.Status) string {
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

// Status is the answer to "sluicectl drain --status".
func (d *Drain) Status() status.Drain {
	s := d.state.Status(time.Now())
	if s.Stage != drain.Serving {
		d.tell(s) // the node's status is not behind this answer
	}
	out := status.Drain{Stage: string(s.Stage), Since: s.Since, WithdrawAt: s.WithdrawAt, Busy: s.Busy}
	if g, err := d.role.Running(); err == nil {
		announced := g.Speaker().Announced()
		out.Announced = &announced
		if s.Stage == drain.Serving {
			wanted := tables.Of(g.Tables(), intent.Announcements).Stats().Wanted
			out.Wanted = &wanted
		}
	}
	return out
}

// Begin begins a drain.
func (d *Drain) Begin(ctx context.Context, r nodeapi.DrainRequest) (status.Drain, error) {
	if r.WithdrawAfter < 0 {
		return status.Drain{}, fmt.Errorf("%w: the time until the withdrawal is negative", admin.ErrBadRequest)
	}
	err := d.state.Begin(ctx, time.Now(), r.WithdrawAfter)
	return d.change(err, "the drain begins", "withdraw_after", r.WithdrawAfter)
}

// End ends it.
func (d *Drain) End(ctx context.Context, _ admin.Nothing) (status.Drain, error) {
	ended, err := d.state.End(ctx)
	if !ended && err == nil {
		return d.Status(), nil
	}
	return d.change(err, "the drain ends")
}

// change follows a drain that was begun or ended.
func (d *Drain) change(err error, message string, attributes ...any) (status.Drain, error) {
	unsure := errors.Is(err, drain.ErrNotOnDisk)
	if err != nil && !unsure {
		return status.Drain{}, err
	}
	d.log.Info(message, attributes...)
	d.Look()
	if unsure {
		return status.Drain{}, fmt.Errorf("%w: %w", admin.ErrUnknown, err)
	}
	return d.Status(), nil
}

// Stages are the words for all stages.
func Stages() (words []string) {
	for _, s := range drain.Stages() {
		words = append(words, string(s))
	}
	return words
}
