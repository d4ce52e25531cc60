package main

import (
	"cmp"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// machines lists those of this node on switches with VIPs.
func (c *clientsPart) machines() []status.Machine {
	c.d.mu.Lock()
	all, w := c.translator.Machines(), c.at
	c.d.mu.Unlock()
	out := []status.Machine{}
	for _, m := range all {
		one := status.Machine{Port: m.Port, Switch: m.Switch, Device: m.Tap.Name, VLAN: m.Tap.VLAN,
			Path: string(m.Choice.Path), Reason: m.Choice.Reason, ReasonDetail: m.Choice.Detail, State: m.State}
		switch {
		case m.Tap == (intent.Tap{}):
		case w == nil:
			one.State = status.Pending
		default:
			one.State, _, one.Error = stateOf(w.tables.Clients.State(intent.ClientKey{IfIndex: m.Tap.IfIndex, VLAN: m.Tap.VLAN}))
		}
		out = append(out, one)
	}
	return out
}

// machineMetrics counts them by path and reason.
func (c *clientsPart) machineMetrics() []metrics.Machines {
	count := map[metrics.Machines]int{}
	for _, m := range c.machines() {
		count[metrics.Machines{Path: m.Path, Reason: m.Reason}]++
	}
	var out []metrics.Machines
	for m, n := range count {
		m.Count = n
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b metrics.Machines) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}
