package main

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// work is what there is of metadata; nil while there is nothing.
func (m *metadataPart) work() *metadataAtWork {
	if m == nil {
		return nil
	}
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	return m.at
}

func (w *metadataAtWork) stages() (out []tables.Held) {
	if w == nil {
		return nil
	}
	for _, s := range w.tables.Pipeline.Stages() {
		out = append(out, tables.Held{Stage: s, Why: w.tables.Held(s)})
	}
	return out
}

func (w *clientsAtWork) stages() (out []tables.Held) {
	if w == nil {
		return nil
	}
	for _, s := range w.tables.Pipeline.Stages() {
		out = append(out, tables.Held{Stage: s, Why: w.tables.Held(s)})
	}
	return out
}

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
	all := append(d.metadata.work().stages(), d.clients.work().stages()...)
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
	w := d.metadata.work()
	if w == nil {
		return nil, nil
	}
	return w.taps.Counters()
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
	if w := d.metadata.work(); w != nil {
		pipelines = append(pipelines, w.tables.Pipeline)
	}
	if w := d.clients.work(); w != nil {
		pipelines = append(pipelines, w.tables.Pipeline)
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
