package ovn

import (
	"cmp"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// FollowClients says whether the load balancers of machines' switches are followed, before
// any row is there.
func (r *Rows) FollowClients(yes bool) { r.clients = yes }

// clients adds the conditions of the load balancers of switches with machines here.
func (d *discovery) clients(own UUID, w Wanted) {
	byUUID := func(table string, ids []UUID) {
		for _, id := range ids {
			if ovsdb.UUID(id).Valid() {
				w.NB[table] = append(w.NB[table], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
			}
		}
	}
	switches := map[UUID]struct{}{}
	for id := range d.rows.servedAt.all(own) {
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

// concernsClients tells whether a change is of load balancers, or of where frames to their
// backends go. Of ports those are followed that are here, and those of switches with load
// balancers and of their routers.
func (r *Rows) concernsClients(c Change) bool {
	if !r.clients {
		return false
	}
	switch c.Table {
	case TableLoadBalancer, TableLoadBalancerGroup, TableHealthCheck, TableServiceMonitor, TableTemplateVar, TableNBGlobal, TableLogicalSwitch:
		return true
	case TableDatapathGroup, TableSBGlobal:
		return r.south.concerns(c)
	case TablePortBinding:
		old, next := r.ports[c.UUID], asPort(c)
		return !slices.Equal(old.MAC, next.MAC) || old.Datapath != next.Datapath || old.Type != next.Type || old.Options["peer"] != next.Options["peer"]
	}
	return false
}

// RoutersOn lists the router ports that a switch is connected to, by name.
func (r *Rows) RoutersOn(datapath UUID) []PortBinding {
	var out []PortBinding
	for id := range r.routerSide.all(datapath) {
		if peer, ok := r.Peer(r.ports[id]); ok && peer.Datapath != datapath {
			out = append(out, peer)
		}
	}
	slices.SortFunc(out, func(a, b PortBinding) int { return cmp.Compare(a.LogicalPort, b.LogicalPort) })
	return out
}
