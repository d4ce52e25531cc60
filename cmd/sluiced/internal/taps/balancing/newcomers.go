package balancing

import (
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/tapbalancing"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// balancedByOVN are the ports of the VMs that OVN balances since they have no tap that
// programs can be put on. One that is only not there yet is none of them.
func balancedByOVN(list []tapbalancing.VM) map[string]bool {
	out := map[string]bool{}
	for _, m := range list {
		if m.Tap == (intent.Tap{}) && m.Choice.Path == loadbalancer.PathOVN && m.State != status.Pending {
			out[m.Port] = true
		}
	}
	return out
}

// newcomers tells who has balanced the VMs whose rows are new. One that was not here
// before may have come from another node with its connections.
func newcomers(set map[intent.TapClientKey]intent.TapClient, had func(intent.TapClientKey) bool, byOVN map[string]bool, now func() []tapbalancing.VM) map[intent.TapClientKey]intent.Before {
	out := map[intent.TapClientKey]intent.Before{}
	for k := range set {
		if !had(k) {
			out[k] = intent.BeforeNode
		}
	}
	if len(out) == 0 || len(byOVN) == 0 {
		return out
	}
	for _, m := range now() {
		k := intent.TapClientKey{IfIndex: m.Tap.IfIndex, VLAN: m.Tap.VLAN}
		if _, is := out[k]; is && byOVN[m.Port] {
			out[k] = intent.BeforeOVN
		}
	}
	return out
}
