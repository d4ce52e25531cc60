package report

import (
	"context"
	"errors"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// steered counts what the programs on taps did.
func (r *Report) steered() (map[string]uint64, error) {
	m := r.metadata.Running()
	if m == nil {
		return nil, nil
	}
	return m.Taps.Counters()
}

// diffPatience bounds an answer of Diff.
const diffPatience = 10 * time.Second

// Diff compares the tables of all parts with what there is. It reads everything back first, so that
// what others changed shows too.
func (r *Report) Diff(ctx context.Context) (status.Diff, error) {
	ctx, cancel := context.WithTimeout(ctx, diffPatience)
	defer cancel()
	out, err := ofNode(r, status.Diff{Changes: []status.Change{}}, func(n node) (status.Diff, error) { return n.diff(ctx) })
	if err != nil {
		return out, err
	}
	var pipelines []*reconcile.Pipeline
	if m := r.metadata.Running(); m != nil {
		pipelines = append(pipelines, m.Tables.Pipeline)
	}
	if b := r.balancing.Running(); b != nil {
		pipelines = append(pipelines, b.Tables.Pipeline)
	}
	for _, p := range pipelines {
		changes, err := tables.Compare(ctx, p)
		if err != nil {
			return out, err
		}
		out.Changes = append(out.Changes, changes...)
	}
	return out, nil
}

func (n node) diff(ctx context.Context) (status.Diff, error) {
	out := status.Diff{Changes: []status.Change{}}
	var errs []error
	for _, p := range n.Pipelines() {
		changes, err := tables.Compare(ctx, p)
		out.Changes = append(out.Changes, changes...)
		errs = append(errs, err)
	}
	differ, err := n.Paths().Diff()
	out.Changes = append(out.Changes, differ...)
	return out, errors.Join(append(errs, err)...)
}

// Waited are the rows of all parts that wait since before a time. A part is not asked while its
// tables wait for what a component tells: the databases, or programs and maps of this build.
func (r *Report) Waited(before time.Time) (out []reconcile.Wait) {
	if n, err := r.running(); err == nil {
		out = n.Waited(before)
	}
	if m := r.metadata.Running(); m != nil && r.steps.OVNInSync() {
		out = append(out, m.Tables.Pipeline.Waited(before)...)
	}
	if b := r.balancing.Running(); b != nil && r.steps.AllInSync() && plane.Effective(b.Dataplane) {
		out = append(out, b.Tables.Pipeline.Waited(before)...)
	}
	return out
}
