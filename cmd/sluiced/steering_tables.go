package main

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

func (n *node) heldStages() (out []tables.Held) {
	for _, s := range n.stages() {
		out = append(out, tables.Held{Stage: s, Why: n.stageHeld(s)})
	}
	return out
}

func metricOf(h tables.Held) nodemetrics.Table {
	s := h.Stats()
	return nodemetrics.Table{Name: h.Name(), Wanted: s.Wanted, Actual: s.Actual, Failed: s.Failed, Lingering: s.Late,
		Held: h.Why != "", Applied: s.Applied, ApplyErrors: s.ApplyErrors, Deleted: s.Deleted, DeleteErrors: s.DeleteErrors}
}

// tableMetrics are those of the node, if there is one, and of metadata.
func (d *daemon) tableMetrics() (out []nodemetrics.Table, err error) {
	var all []tables.Held
	if r := d.metadata.Running(); r != nil {
		all = append(all, r.Tables.Stages()...)
	}
	if r := d.balancing.Running(); r != nil {
		all = append(all, r.Tables.Stages()...)
	}
	if n, err := d.running(); err == nil {
		all = append(n.heldStages(), all...)
	}
	for _, s := range all {
		out = append(out, metricOf(s))
	}
	return out, nil
}

// steered counts what the programs on taps did.
func (d *daemon) steered() (map[string]uint64, error) {
	w := d.metadata.Running()
	if w == nil {
		return nil, nil
	}
	return w.Taps.Counters()
}

// diff compares the tables of the node, if there is one, and those of machines.
func (d *daemon) diff(ctx context.Context) (status.Diff, error) {
	out := noDiff
	n, err := d.present()
	if n != nil {
		out, err = n.diff(ctx)
	}
	if err != nil {
		return out, err
	}
	var pipelines []*reconcile.Pipeline
	if w := d.metadata.Running(); w != nil {
		pipelines = append(pipelines, w.Tables.Pipeline)
	}
	if w := d.balancing.Running(); w != nil {
		pipelines = append(pipelines, w.Tables.Pipeline)
	}
	for _, p := range pipelines {
		changes, err := compare(ctx, p)
		if err != nil {
			return out, err
		}
		out.Changes = append(out.Changes, changes...)
	}
	return out, nil
}

func compare(ctx context.Context, p *reconcile.Pipeline) (out []status.Change, err error) {
	changes, err := p.Compare(ctx)
	for _, c := range changes {
		out = append(out, tables.ChangeOf(c))
	}
	return out, err
}
