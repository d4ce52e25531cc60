package main

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
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

// held is a stage and why rows of it are kept that are not wanted any more; empty if
// they are not.
type held struct {
	reconcile.Stage
	why string
}

func (w *metadataAtWork) stages() (out []held) {
	if w == nil {
		return nil
	}
	for _, s := range w.tables.Pipeline.Stages() {
		out = append(out, held{s, w.tables.Held(s)})
	}
	return out
}

func (w *clientsAtWork) stages() (out []held) {
	if w == nil {
		return nil
	}
	for _, s := range w.tables.Pipeline.Stages() {
		out = append(out, held{s, w.tables.Held(s)})
	}
	return out
}

func (n *node) heldStages() (out []held) {
	for _, s := range n.stages() {
		out = append(out, held{s, n.stageHeld(s)})
	}
	return out
}

func (h held) metric() nodemetrics.Table {
	s := h.Stats()
	return nodemetrics.Table{Name: h.Name(), Wanted: s.Wanted, Actual: s.Actual, Failed: s.Failed, Lingering: s.Late,
		Held: h.why != "", Applied: s.Applied, ApplyErrors: s.ApplyErrors, Deleted: s.Deleted, DeleteErrors: s.DeleteErrors}
}

func (h held) status() status.Table {
	s := h.Stats()
	return status.Table{Name: h.Name(), Wanted: status.Known(s.Wanted), Actual: s.Actual, Failed: status.Known(s.Failed), Lingering: s.Late, Held: h.why}
}

// tableMetrics are those of the node, if there is one, and of metadata.
func (d *daemon) tableMetrics() (out []nodemetrics.Table, err error) {
	all := append(d.metadata.work().stages(), d.clients.work().stages()...)
	if n, err := d.running(); err == nil {
		all = append(n.heldStages(), all...)
	}
	for _, s := range all {
		out = append(out, s.metric())
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
		out = append(out, changeOf(c))
	}
	return out, err
}
