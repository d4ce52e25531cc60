package tables

import (
	"cmp"
	"context"
	"errors"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Held is a table, and why rows of it are kept that are not wanted any more; empty if they are not.
type Held struct {
	reconcile.Stage
	Why string
}

// Status is the table as it is reported.
func (h Held) Status() status.Table {
	s := h.Stats()
	return status.Table{Name: h.Name(), Wanted: status.Known(s.Wanted), Actual: s.Actual, Failed: status.Known(s.Failed), Lingering: s.Late, Held: h.Why,
		Operations: status.Operations{Applied: s.Applied, ApplyErrors: s.ApplyErrors, Deleted: s.Deleted, DeleteErrors: s.DeleteErrors}}
}

// ChangeOf is a change as it is reported.
func ChangeOf(c reconcile.Change) status.Change {
	row := status.Change{Table: c.Table, Key: c.Key, Action: string(c.Op), Wanted: c.New, Actual: c.Old}
	if c.Held {
		row.Held = cmp.Or(c.Why, "its source is not in sync")
	} else {
		row.Error = c.Why
	}
	return row
}

// StateOf is the state of a wanted row by what its table says of it, and why it is
// not in place.
func StateOf(programmed bool, err error) (state status.State, why, text string) {
	switch {
	case programmed:
		return status.OK, "", ""
	case err == nil: // not wanted any more since the question was asked
		return status.Pending, "", ""
	case errors.Is(err, reconcile.ErrNotReady):
		return status.Pending, reason.Waiting, err.Error()
	}
	return status.Error, ReasonOf(err), err.Error()
}

// heldStages are the tables of a pipeline, each once.
func heldStages(p *reconcile.Pipeline, held func(reconcile.Stage) string) (out []Held) {
	for _, s := range p.Stages() {
		out = append(out, Held{Stage: s, Why: held(s)})
	}
	return out
}

// Stages are the tables, in their order.
func (t *Tables) Stages() []Held { return heldStages(t.Pipeline, t.Held) }

// Stages are the tables, in their order.
func (c *Clients) Stages() []Held { return heldStages(c.Pipeline, c.Held) }

// Stages are the tables, in their order.
func (m *Metadata) Stages() []Held { return heldStages(m.Pipeline, m.Held) }

// Stages are the tables, in their order.
func (u *Underlay) Stages() []Held { return heldStages(u.Pipeline, u.Held) }

// Compare reads everything of a pipeline back, and returns the differences as they are reported.
func Compare(ctx context.Context, p *reconcile.Pipeline) (out []status.Change, err error) {
	changes, err := p.Compare(ctx)
	for _, c := range changes {
		out = append(out, ChangeOf(c))
	}
	return out, err
}

// RoutesOn are the routes of the VRFs on a path.
func (t *Tables) RoutesOn(p intent.Path) *reconcile.Table[intent.RouteKey, intent.Route] {
	if p == intent.PathKernel {
		return Of(t, intent.KernelRoutes)
	}
	return Of(t, intent.Routes)
}

// HeldText says why rows of a table are forwarded that nothing asks for now.
func (t *Tables) HeldText(table reconcile.Stage) string {
	return "in the map and forwarded; " + cmp.Or(t.Held(table), "stale for a while, or about to be deleted")
}
