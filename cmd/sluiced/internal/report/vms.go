package report

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// VMs lists those of this node on switches with VIPs.
func (r *Report) VMs() []status.VM {
	all, w := r.balancing.VMs(), r.balancing.Running()
	out := []status.VM{}
	for _, m := range all {
		one := status.VM{Port: m.Port, Switch: m.Switch, Device: m.Tap.Name, VLAN: m.Tap.VLAN,
			Path: string(m.Choice.Path), Reason: m.Choice.Reason, ReasonDetail: m.Choice.Detail, State: m.State}
		switch {
		case m.Tap == (intent.Tap{}):
		case w == nil:
			one.State = status.Pending
		default:
			// A row that is in place says nothing of what was decided.
			if state, _, wrong := tables.StateOf(tables.Of(w.Tables, intent.TapClients).State(intent.TapClientKey{IfIndex: m.Tap.IfIndex, VLAN: m.Tap.VLAN})); state != status.OK {
				one.State, one.Error = state, wrong
			}
		}
		out = append(out, one)
	}
	return out
}

// leaves tells why OVN balances a VM's sessions, whatever the VIP; empty: it does not, or the
// VM is not here.
func (r *Report) leaves(q status.VIPQuery) string {
	for _, m := range r.VMs() {
		if m.Switch != q.Switch || m.Path == string(loadbalancer.PathEBPF) {
			continue
		}
		is := false
		r.follower.View(func(r *ovn.Rows) {
			p, _ := r.ServedPort(m.Port)
			list, _ := ovn.ParseMACColumn(p.MAC)
			is = slices.ContainsFunc(list, func(a ovn.PortAddresses) bool {
				return slices.ContainsFunc(a.Prefixes, func(p netip.Prefix) bool { return p.Addr() == q.Client.Addr() })
			})
		})
		if is {
			return fmt.Sprintf("OVN balances for VM %s (%s: %s)", m.Port, m.Reason, m.ReasonDetail)
		}
	}
	return ""
}
