package octavia

import (
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// reached is where a row belongs: the UUIDs of routers and switches, by name.
type reached struct{ routers, switches map[string]string }

func (b *Balancer) reachBefore(uuid string) reached {
	row := b.before[uuid]
	if row == nil {
		return reached{}
	}
	out := reached{routers: map[string]string{}, switches: map[string]string{}}
	for _, lr := range northbound.Find(b.from, northbound.RouterOfLoadBalancer, uuid, "name") {
		out.routers[lr.Name] = lr.UUID
	}
	for _, ls := range northbound.Find(b.from, northbound.SwitchOfLoadBalancer, uuid, "name") {
		out.switches[ls.Name] = ls.UUID
	}
	return out
}

// associate makes the difference in the rows of switches and routers.
func (b *Balancer) associate(uuid string, before, after reached) {
	for name, lr := range after.routers {
		if _, had := before.routers[name]; !had {
			b.refer(&nb.LogicalRouter{UUID: lr}, uuid, true)
		}
	}
	for name, ls := range after.switches {
		if _, had := before.switches[name]; !had {
			b.refer(&nb.LogicalSwitch{UUID: ls}, uuid, true)
		}
	}
	for name, lr := range before.routers {
		if _, has := after.routers[name]; !has {
			b.refer(&nb.LogicalRouter{UUID: lr}, uuid, false)
		}
	}
	for name, ls := range before.switches {
		if _, has := after.switches[name]; !has {
			b.refer(&nb.LogicalSwitch{UUID: ls}, uuid, false)
		}
	}
}

// refer adds a load balancer to a switch or router, or takes it away. What others add and take
// away there meanwhile stays: the column is not guarded.
func (b *Balancer) refer(row interface{ GetUUID() string }, uuid string, add bool) {
	change := func(list []string) []string {
		list = slices.DeleteFunc(slices.Clone(list), func(u string) bool { return u == uuid })
		if add {
			list = append(list, uuid)
		}
		return list
	}
	switch row.(type) {
	case *nb.LogicalSwitch:
		if ls, ok := northbound.Peek[*nb.LogicalSwitch](b.tx, row.GetUUID()); ok {
			b.tx.Update(&nb.LogicalSwitch{UUID: ls.UUID, LoadBalancer: change(ls.LoadBalancer)}, "load_balancer")
		}
	case *nb.LogicalRouter:
		if lr, ok := northbound.Peek[*nb.LogicalRouter](b.tx, row.GetUUID()); ok {
			b.tx.Update(&nb.LogicalRouter{UUID: lr.UUID, LoadBalancer: change(lr.LoadBalancer)}, "load_balancer")
		}
	}
}

// reach finds the switches that a row counts, the routers that serve its VIPs and members there,
// and the other switches of these routers: OVN balances where a packet enters a switch, and on
// routers only at their gateway.
func reach(r northbound.Reader, row rowform.Row) reached {
	out := reached{routers: map[string]string{}, switches: map[string]string{}}
	for _, name := range switchesOf(r, row) {
		ls, ok := northbound.One(r, northbound.SwitchByName, name, "name")
		if !ok {
			continue
		}
		if row.Switches.Get(name) > 0 {
			out.switches[name] = ls.UUID
		}
		for _, i := range network.Interfaces(r, ls) {
			if !i.Gateway && i.Serves(addresses(row)...) {
				out.through(r, i.Row, row)
			}
		}
	}
	return out
}

// through adds the router of a port, and the switches at its other ports that have addresses of
// the family of a VIP.
func (o reached) through(r northbound.Reader, port string, row rowform.Row) {
	for _, lr := range northbound.Find(r, northbound.RouterOfPort, port, "name", "ports") {
		o.routers[lr.Name] = lr.UUID
		for _, id := range lr.Ports {
			i, ok := network.InterfaceOf(r, id)
			if !ok || i.Gateway || !slices.ContainsFunc(i.Networks, func(p netip.Prefix) bool { return row.HasFamily(p.Addr()) }) {
				continue
			}
			for _, ls := range network.SwitchesAt(r, i) {
				o.switches[ls.Name] = ls.UUID
			}
		}
	}
}

// switchesOf are the names of the switches that a row counts, and of the one with the VIP's port,
// which a provider network's is not among.
func switchesOf(r northbound.Reader, row rowform.Row) []string {
	names := row.Switches.Names()
	for _, lsp := range northbound.Find(r, northbound.SwitchPortByName, row.VIP.Port) {
		for _, ls := range northbound.Find(r, northbound.SwitchOfPort, lsp.UUID, "name") {
			if !slices.Contains(names, ls.Name) {
				names = append(names, ls.Name)
			}
		}
	}
	return names
}

func addresses(row rowform.Row) (out []netip.Addr) {
	for _, v := range slices.Concat([]rowform.VIP{row.VIP}, row.Additional) {
		out = append(out, v.Address)
	}
	for _, p := range row.Pools {
		for _, m := range p.Members {
			out = append(out, m.Addr.Addr())
		}
	}
	return out
}
