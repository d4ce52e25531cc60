package tapbalancing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// lists are made when they are asked for, once for all who ask until something changes: steps
// are many more.
type lists struct {
	balanced []loadbalancer.Balanced
	vms      []VM
	made     struct{ balanced, vms bool }
}

// Tables is a copy of all tables.
func (t *Translator) Tables() wanted.Set {
	out := wanted.NewSet()
	for _, s := range t.scopes {
		maps.Copy(wanted.Edit(out, intent.ClientVIPs), s.vips)
		maps.Copy(wanted.Edit(out, intent.ClientNeighbors), s.neighbors)
	}
	for _, list := range t.claims {
		wanted.Put(out, intent.TapClients, list[0].row)
	}
	return out
}

// Balanced lists the VIPs of the switches with VMs here, sorted. Nobody may change it.
func (t *Translator) Balanced() []loadbalancer.Balanced {
	if t.lists.made.balanced {
		return t.lists.balanced
	}
	var out []loadbalancer.Balanced
	for _, vni := range slices.Sorted(maps.Keys(t.scopes)) { // by which VIPs are sorted first
		from := len(out)
		for _, id := range slices.Sorted(maps.Keys(t.scopes[vni].at)) {
			out = append(out, t.outcomes[id].balanced...)
		}
		slices.SortStableFunc(out[from:], func(x, y loadbalancer.Balanced) int { return x.VIP.Key.Compare(y.VIP.Key) })
	}
	t.lists.balanced, t.lists.made.balanced = out, true
	return out
}

// VMs lists the VMs here on switches with VIPs, by name. Nobody may change it.
func (t *Translator) VMs() []VM {
	if t.lists.made.vms {
		return t.lists.vms
	}
	var out []VM
	for id, o := range t.outcomes {
		for _, m := range o.vms {
			m, _ = t.settled(id, m)
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y VM) int { return cmp.Compare(x.Port, y.Port) })
	t.lists.vms, t.lists.made.vms = out, true
	return out
}

// settled is a VM as it is with what others claim. lost: its tap is another one's.
func (t *Translator) settled(at ovn.UUID, m VM) (out VM, lost bool) {
	if m.Tap == (intent.Tap{}) {
		return m, false
	}
	owner := t.claims[keyOf(m.Tap)][0]
	if owner.at == at && owner.port == m.Port {
		return m, false
	}
	why := fmt.Sprintf("port %s has the tap %s with VLAN %d", owner.port, m.Tap.Name, m.Tap.VLAN)
	m.Tap, m.State = intent.Tap{}, status.Error
	m.Choice = loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.TapConflict, Detail: why}
	return m, true
}

func keyOf(tap intent.Tap) intent.TapClientKey {
	return intent.TapClientKey{IfIndex: tap.IfIndex, VLAN: tap.VLAN}
}

// Complaints is another number whenever Objects has changed.
func (t *Translator) Complaints() uint64 { return t.changes }

// Objects is what is wrong, or held back, or waited for.
func (t *Translator) Objects() []status.Object {
	var out []status.Object
	if t.odd != "" {
		out = append(out, status.Object{Kind: kindBalancer, Key: "NB_Global", State: status.Error, Reason: reason.BadLoadBalancer, Error: t.odd})
	}
	for id, o := range t.outcomes {
		out = append(out, o.objects...)
		for _, m := range o.vms {
			if m, lost := t.settled(id, m); lost {
				out = append(out, complaint(m))
			}
		}
	}
	slices.SortFunc(out, func(x, y status.Object) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Error, y.Error), cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.State, y.State))
	})
	return slices.Compact(out)
}
