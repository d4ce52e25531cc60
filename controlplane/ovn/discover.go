package ovn

import (
	"iter"
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Wanted is which rows this node needs of each database.
type Wanted struct {
	SB, NB ovsdb.Conditions
}

// Needs is what the features say about rows that are needed by some nodes only.
// A nil function means no. Of the vswitch database they may read BridgeOf and
// OnlyOVN.
type Needs struct {
	// Hosts: the ports of the interface's switch are needed.
	Hosts func(*Rows, RouterInterface) bool
	// Neighbours: all ports of the gateway port's provider switch are needed,
	// with the router ports at their other ends.
	Neighbours func(*Rows, GatewayPort) bool
	// NextHopMAC, when not empty, is the address of which the MAC_Bindings are
	// needed, as ovn-controller writes it.
	NextHopMAC string
	// Advertised: what OVN advertises of the routers here is needed.
	Advertised bool
	// Exposure: what may be exposed without EVPN is followed; Dirty says when it
	// changes.
	Exposure bool
	// Floating: the distributed floating IPs on the switches of a physical network
	// are needed, with Exposure.
	Floating func(network string) bool
	// Gateways: the default gateways of VMs on a provider switch, and who else
	// has an address there, are needed, with Exposure.
	Gateways func(*Rows, ProviderSwitch) bool
	// VMs: the ports of VMs here and the Interfaces of the node are followed;
	// Dirty says when they change. The ones below are with it only.
	VMs bool
	// Metadata: the metadata ports of these VMs' switches are followed, too.
	Metadata bool
	// LoadBalancing: the load balancers of the routers here are followed, in Northbound.
	LoadBalancing bool
	// Clients: the load balancers of these VMs' switches are followed, with all ports of
	// switches that have some, and those of the routers that they are connected to.
	Clients bool
	// ACLs: the ACLs of these ports are followed, too, in Northbound.
	ACLs bool
}

// balances tells whether load balancers are followed.
func (n Needs) balances() bool { return n.LoadBalancing || n.VMs && n.Clients }

// discovery collects conditions. Sets, since many rows lead to the same one.
type discovery struct {
	rows  *Rows
	needs Needs
	// ports are the wanted Port_Bindings by datapath and by name, datapaths the
	// wanted Datapath_Bindings.
	portsOn, datapaths map[UUID]struct{}
	portNames          map[string]struct{}
}

// Discover follows the rows that are there and says which rows are needed. Rows
// that arrive make it ask for more; when it asks for no more than what was
// answered, the content is complete. In Southbound it asks for:
//   - the Chassis and Chassis_Private rows of this node, and all localnet ports;
//   - the ports bound to this chassis, and those of the HA_Chassis_Groups that
//     name it: gateway ports that are here or may come;
//   - the other members of these groups, with their Chassis_Private rows: where the
//     gateway ports may move to;
//   - of each router with such a gateway port: the router, its ports, their
//     peers, the peers' datapaths;
//   - the ports of the switches behind its interfaces, where a feature needs them;
//   - the ports of the provider switch, and their peers, where a feature does;
//   - the neighbours that any router learned under the next-hop MAC. Clauses are
//     alternatives here too, and a port may know many other neighbours;
//   - what OVN advertises of the routers, where a feature needs it;
//   - the ports of all provider switches here, where a feature needs the floating
//     IPs of VMs: a port's nat_addresses say whose they are;
//   - the ports of provider switches, and their peers, where a feature answers for
//     the default gateways of VMs: nobody else may have these addresses;
//   - of load balancers that probe, what was found out about their backends, and the
//     variables of this chassis for templates;
//   - without a Northbound session the load balancers of switches with VMs here, with
//     the groups of datapaths that they are for, and the ports that are probed;
//   - for metadata the ports that are about to move here, the switches of all ports here,
//     and of the ports there only those that are the network's metadata port; and where it
//     is to respect ACLs, the address sets that these name.
//
// In Northbound: these routers with their ports, NAT rows, static routes and load
// balancers with their health checks, the row of NB_Global, and the switches at their ports; and the NAT rows that name a VM here, with
// their routers and these routers' ports and static routes, where floating IPs are
// needed; and the
// switch ports of the VMs here that are on a provider switch or have such a NAT
// row, with their DHCP options, with Exposure; and the switch ports, switches, port groups
// and ACLs of all VMs here, where metadata is to respect them.
func Discover(rows *Rows, needs Needs) Wanted {
	name := rows.SystemID()
	if name == "" {
		return Wanted{}
	}
	w := Wanted{SB: ovsdb.Conditions{
		"Chassis":         {ovsdb.Equal("name", name)},
		"Chassis_Private": {ovsdb.Equal("name", name)},
		// Clauses of one table are alternatives, so localnet ports cannot be
		// had by switch: a condition on datapath brings all its ports. A cloud
		// has few localnet ports.
		"Port_Binding": {ovsdb.Equal("type", TypeLocalnet)},
	}}
	if needs.NextHopMAC != "" {
		w.SB["MAC_Binding"] = []ovsdb.Clause{ovsdb.Equal("mac", needs.NextHopMAC)}
	}
	own, ok := rows.OwnChassis()
	if !ok {
		return w
	}
	chassis := ovsdb.UUID(own.UUID)
	w.SB["Port_Binding"] = append(w.SB["Port_Binding"], ovsdb.Equal("chassis", chassis))
	w.SB["HA_Chassis"] = []ovsdb.Clause{ovsdb.Equal("chassis", chassis)}
	for _, id := range slices.Sorted(maps.Keys(rows.ha)) {
		if rows.ha[id].Chassis == own.UUID {
			w.SB["HA_Chassis_Group"] = append(w.SB["HA_Chassis_Group"], ovsdb.Includes("ha_chassis", ovsdb.UUID(id)))
		}
	}
	rows.others(own.UUID, w.SB)
	for _, id := range slices.Sorted(maps.Keys(rows.haGroups)) {
		w.SB["Port_Binding"] = append(w.SB["Port_Binding"], ovsdb.Equal("ha_chassis_group", ovsdb.UUID(id)))
		// ovn-northd replaces all members of a group of which one changes, as in each
		// move. The group and its ports stay in sight meanwhile.
		if rows.memberOf(id, own.UUID) {
			w.SB["HA_Chassis_Group"] = append(w.SB["HA_Chassis_Group"], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
		}
	}
	d := &discovery{rows: rows, needs: needs, portsOn: map[UUID]struct{}{}, datapaths: map[UUID]struct{}{}, portNames: map[string]struct{}{}}
	routers := rows.routersHere(own.UUID)
	for _, router := range routers {
		d.router(router)
		if needs.Advertised {
			w.SB["Advertised_Route"] = append(w.SB["Advertised_Route"], ovsdb.Equal("datapath", ovsdb.UUID(router)))
		}
	}
	w.NB = northbound(rows, routers)
	if needs.balances() || needs.ACLs {
		w.NB["NB_Global"] = []ovsdb.Clause{ovsdb.All()}
	}
	if needs.balances() {
		w.SB["Chassis_Template_Var"] = []ovsdb.Clause{ovsdb.Equal("chassis", name)}
	}
	if needs.balances() {
		for _, port := range rows.monitored() {
			w.SB["Service_Monitor"] = append(w.SB["Service_Monitor"], ovsdb.Equal("logical_port", port))
		}
	}
	d.exposed(own.UUID, w.NB)
	d.vms(own.UUID, w.NB)
	d.serves(own.UUID, w)
	for id := range d.portsOn {
		w.SB["Port_Binding"] = append(w.SB["Port_Binding"], ovsdb.Equal("datapath", ovsdb.UUID(id)))
	}
	for n := range d.portNames {
		w.SB["Port_Binding"] = append(w.SB["Port_Binding"], ovsdb.Equal("logical_port", n))
	}
	for id := range d.datapaths {
		w.SB["Datapath_Binding"] = append(w.SB["Datapath_Binding"], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
	}
	return w
}

// routersHere lists the routers with a gateway port that is bound to the chassis
// or may be: that is followed at all, since the conditions select those.
func (r *Rows) routersHere(chassis UUID) []UUID {
	set := map[UUID]struct{}{}
	add := func(ids iter.Seq[UUID]) {
		for id := range ids {
			if p := r.ports[id]; p.Type == TypeChassisRedirect || p.Type == TypeL3Gateway && r.onRouter(p) {
				set[p.Datapath] = struct{}{}
			}
		}
	}
	add(r.gatewaysAt.All(chassis))
	for id := range r.haGroups {
		add(r.byGroup.All(id))
	}
	return slices.Sorted(maps.Keys(set))
}

// onRouter tells whether an l3gateway port is the router's side of the pair: its
// mac column has addresses, where the switch's side says "router". The datapath
// row, which would say it too, is asked for only after this.
func (r *Rows) onRouter(p PortBinding) bool {
	return len(p.MAC) > 0 && p.MAC[0] != "router" && p.MAC[0] != "unknown"
}

func (d *discovery) router(router UUID) {
	d.portsOn[router] = struct{}{}
	d.datapaths[router] = struct{}{}
	for _, p := range d.rows.PortsOn(router) {
		peer := p.Options["peer"]
		if peer == "" {
			continue
		}
		d.portNames[peer] = struct{}{}
		if sw, ok := d.rows.Peer(p); ok {
			d.datapaths[sw.Datapath] = struct{}{}
		}
	}
	if d.needs.Hosts != nil {
		for _, i := range d.rows.Interfaces(router) {
			if d.needs.Hosts(d.rows, i) {
				d.portsOn[i.Switch.Datapath] = struct{}{}
			}
		}
	}
	if d.needs.Neighbours == nil {
		return
	}
	for _, p := range d.rows.PortsOn(router) {
		g, ok := d.rows.gatewayPort(p)
		if !ok || !d.needs.Neighbours(d.rows, g) {
			continue
		}
		if _, done := d.portsOn[g.Switch.Datapath]; done {
			continue
		}
		d.everybody(g.Switch.Datapath)
	}
}

// everybody asks for all ports of a switch, and the router ports at the other ends.
func (d *discovery) everybody(datapath UUID) {
	d.portsOn[datapath] = struct{}{}
	for id := range d.rows.routerSide.All(datapath) {
		if peer := d.rows.ports[id].Options["peer"]; peer != "" {
			d.portNames[peer] = struct{}{}
		}
	}
}

func northbound(rows *Rows, routers []UUID) ovsdb.Conditions {
	c, switches := ovsdb.Conditions{}, map[UUID]struct{}{}
	byUUID := func(table string, ids []UUID) {
		for _, id := range ids {
			c[table] = append(c[table], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
		}
	}
	for _, id := range routers {
		nb := rows.datapaths[id].NBUUID()
		// The server would refuse all conditions for one that is no UUID.
		if !ovsdb.UUID(nb).Valid() {
			continue
		}
		byUUID("Logical_Router", []UUID{nb})
		lr := rows.routers[nb]
		byUUID("Logical_Router_Port", lr.Ports)
		byUUID("NAT", lr.NAT)
		byUUID("Logical_Router_Static_Route", lr.StaticRoutes)
		rows.lbRows.wanted(lr.LoadBalancers, lr.LoadBalancerGroups, byUUID)
		for _, p := range rows.PortsOn(id) {
			if sw, ok := rows.Peer(p); ok && sw.Datapath != id {
				switches[rows.datapaths[sw.Datapath].NBUUID()] = struct{}{}
			}
		}
	}
	for id := range switches {
		if ovsdb.UUID(id).Valid() {
			byUUID("Logical_Switch", []UUID{id})
		}
	}
	return c
}
