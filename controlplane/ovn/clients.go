package ovn

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// FollowClients says whether the load balancers of VMs' switches are followed, before
// any row is there.
func (r *Rows) FollowClients(yes bool) { r.clients = yes }

// clients adds the conditions of the load balancers of switches with VMs here.
func (d *discovery) clients(own UUID, w Wanted) {
	byUUID := func(table string, ids []UUID) {
		for _, id := range ids {
			if ovsdb.UUID(id).Valid() {
				w.NB[table] = append(w.NB[table], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
			}
		}
	}
	switches := map[UUID]struct{}{}
	for id := range d.rows.servedAt.All(own) {
		switches[d.rows.ports[id].Datapath] = struct{}{}
	}
	if d.rows.south.follows {
		w.SB["SB_Global"] = []ovsdb.Clause{ovsdb.All()}
		for _, m := range d.rows.monitors {
			d.portNames[m.LogicalPort] = struct{}{}
		}
	}
	for datapath := range switches {
		byUUID("Logical_Switch", []UUID{d.rows.datapaths[datapath].NBUUID()})
		sw, _ := d.rows.Switch(datapath)
		d.rows.lbRows.wanted(sw.LoadBalancers, sw.LoadBalancerGroups, byUUID)
		balanced := len(sw.LoadBalancers)+len(sw.LoadBalancerGroups) > 0
		if d.rows.south.follows {
			balanced = d.southBalancers(datapath, w.SB)
		}
		if !balanced {
			continue
		}
		d.everybody(datapath)
		for _, port := range d.rows.RoutersOn(datapath) {
			d.portsOn[port.Datapath] = struct{}{}
		}
	}
}

// place is a switch on a chassis.
type place struct{ chassis, datapath UUID }

// ServedSwitches lists the switches with ports of ServedPorts, sorted.
func (r *Rows) ServedSwitches() []UUID {
	own, ok := r.OwnChassis()
	if !ok {
		return nil
	}
	set := map[UUID]struct{}{}
	for id := range r.servedAt.All(own.UUID) {
		set[r.ports[id].Datapath] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}

// ServedOn lists those of ServedPorts that are on a switch, by name. It is kept with
// Needs.Clients only. A name is one port's: of several rows with it, which are there for a
// moment, the first by identifier counts.
func (r *Rows) ServedOn(datapath UUID) []PortBinding {
	own, ok := r.OwnChassis()
	if !ok {
		return nil
	}
	return slices.DeleteFunc(r.byPortName(r.servedOn.All(place{own.UUID, datapath})), func(p PortBinding) bool {
		first, _ := r.served(own.UUID, p.LogicalPort)
		return first.UUID != p.UUID
	})
}

// ServedPort finds one of ServedPorts by its name.
func (r *Rows) ServedPort(name string) (PortBinding, bool) {
	own, ok := r.OwnChassis()
	if !ok {
		return PortBinding{}, false
	}
	return r.served(own.UUID, name)
}

func (r *Rows) served(own UUID, name string) (best PortBinding, found bool) {
	for id := range r.byName.All(name) {
		if p := r.ports[id]; p.servedHere(own) && (!found || p.UUID < best.UUID) {
			best, found = p, true
		}
	}
	return best, found
}

// SwitchesAt lists the switches of the VMs here whose frames may come in by the
// device of an Interface of that name. It is kept with Needs.Clients only.
func (r *Rows) SwitchesAt(iface string) []UUID {
	own, ok := r.OwnChassis()
	if !ok {
		return nil
	}
	t := touch{r, own.UUID, map[UUID]struct{}{}}
	for id := range r.ifaceBy.All(iface) {
		t.tap(r.interfaces[id].IfaceID)
	}
	return slices.Sorted(maps.Keys(t.into))
}

// RoutersOn lists the router ports that a switch is connected to, by name.
func (r *Rows) RoutersOn(datapath UUID) []PortBinding {
	var out []PortBinding
	for id := range r.routerSide.All(datapath) {
		peer, ok := r.Peer(r.ports[id])
		if ok && peer.Datapath != datapath && (peer.Type == TypePatch || peer.Type == TypeL3Gateway) {
			out = append(out, peer)
		}
	}
	slices.SortFunc(out, func(a, b PortBinding) int { return cmp.Compare(a.LogicalPort, b.LogicalPort) })
	return out
}

// indexClients keeps the indices of ports that balancing needs.
func (r *Rows) indexClients(p PortBinding, at func(index[place], place, UUID), name func(index[string], string, UUID)) {
	if !r.clients {
		return
	}
	if p.ParentPort != "" {
		name(r.subports, p.ParentPort, p.UUID)
	}
	if !isServed(p.Type) {
		return
	}
	for _, chassis := range append([]UUID{p.Chassis}, p.AdditionalChassis...) {
		if chassis != "" {
			at(r.servedOn, place{chassis, p.Datapath}, p.UUID)
		}
	}
}

// putSwitch takes a row of Logical_Switch.
func (r *Rows) putSwitch(c Change) {
	old := store(r.switches, c)
	for _, child := range slices.Concat(old.ACLs, old.LoadBalancers, old.LoadBalancerGroups) {
		r.heldBy.Delete(child, c.UUID)
	}
	sw := r.switches[c.UUID]
	for _, child := range slices.Concat(sw.ACLs, sw.LoadBalancers, sw.LoadBalancerGroups) {
		r.heldBy.Add(child, c.UUID)
	}
}
