package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

func (d *daemon) status() status.Status {
	ready, _ := d.reg.Ready()
	s := status.Status{Version: version, Started: d.started, Ready: ready, Conditions: d.reg.Conditions(), Counts: d.reg.Counts(), Problems: d.reg.Problems()}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Identity = d.latest.identity()
	if n := d.node; n != nil {
		s.Identity, s.Tables = n.identity(d.latest), tableStatus(n.heldStages(), n.dp.Fills())
	}
	if r := d.metadata.Running(); r != nil {
		s.Tables = append(s.Tables, tableStatus(r.Tables.Stages(), nil)...)
	}
	if r := d.balancing.Running(); r != nil {
		s.Tables = append(s.Tables, tableStatus(r.Tables.Stages(), r.Dataplane.Fills())...)
	}
	return s
}

// identity is what the facts alone say of the node.
func (f nodeFacts) identity() status.Identity {
	return status.Identity{Chassis: f.systemID, Role: roleWord(f), RoleReason: f.reason}
}

// identity is that of a gateway.
func (n *node) identity(f nodeFacts) status.Identity {
	i := f.identity()
	i.VTEP, i.RouterID, i.RouterMAC = n.id.VTEP, n.id.RouterID, n.id.RouterMAC
	return i
}

// tableStatus is that of the stages of a plane, with the maps of their tables.
func tableStatus(stages []tables.Held, fills []ebpf.Fill) []status.Table {
	maps := map[string][]status.MapFill{}
	for _, f := range fills {
		maps[f.Table] = append(maps[f.Table], status.MapFill{Name: f.Map, Used: f.Used, Size: f.Max})
	}
	var out []status.Table
	for _, stage := range stages {
		t := stage.Status()
		t.Maps = maps[t.Name]
		out = append(out, t)
	}
	return out
}

// diff reads everything back first, so that what others changed shows too.
func (n *node) diff(ctx context.Context) (status.Diff, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out := status.Diff{Changes: []status.Change{}}
	var errs []error
	for _, p := range n.pipelines() {
		changes, err := p.Compare(ctx)
		for _, c := range changes {
			out.Changes = append(out.Changes, tables.ChangeOf(c))
		}
		errs = append(errs, err)
	}
	differ, err := n.compareDecisions(n.onKernelPath())
	for _, k := range slices.SortedFunc(maps.Keys(differ), compareKeys) {
		out.Changes = append(out.Changes, differ[k])
	}
	return out, errors.Join(append(errs, err)...)
}
