package report

import (
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Status is the answer to "sluicectl status".
func (r *Report) Status() status.Status {
	ready, _ := r.reg.Ready()
	s := status.Status{Version: r.version, Started: r.started, Ready: ready, Conditions: r.reg.Conditions(), Counts: r.reg.Counts(), Problems: r.reg.Problems()}
	facts := r.role.Facts()
	s.Identity = facts.Identity()
	if n, err := r.running(); err == nil {
		s.Identity = n.Status(facts)
	}
	s.Tables = r.tables()
	return s
}

// tables are those of all parts.
func (r *Report) tables() (out []status.Table) {
	if n, err := r.running(); err == nil {
		out = tableStatus(n.Stages(), n.Dataplane().Fills())
	}
	if m := r.metadata.Running(); m != nil {
		out = append(out, tableStatus(m.Tables.Stages(), nil)...)
	}
	if b := r.balancing.Running(); b != nil {
		out = append(out, tableStatus(b.Tables.Stages(), b.Dataplane.Fills())...)
	}
	return out
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
