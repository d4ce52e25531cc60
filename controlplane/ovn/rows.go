package ovn

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/multimap"
)

// Change is one row of a batch: New is nil when the row is gone.
type Change struct {
	Table Table
	UUID  UUID
	New   Row
}

// Set is the change that inserts or replaces a row.
func Set(r Row) Change { return Change{Table: r.table(), UUID: r.Key(), New: r} }

// Delete is the change that removes a row.
func Delete(t Table, id UUID) Change { return Change{Table: t, UUID: id} }

// Rows is the store: the rows that this node follows, with indices. It is not
// safe for use by two goroutines at once. Rows that it returns must not be
// changed.
type Rows struct {
	ports     map[UUID]PortBinding
	datapaths map[UUID]DatapathBinding
	chassis   map[UUID]Chassis
	private   map[UUID]ChassisPrivate
	ha        map[UUID]HAChassis
	haGroups  map[UUID]HAChassisGroup
	bindings  map[UUID]MACBinding

	advertised map[UUID]AdvertisedRoute

	openvswitch map[UUID]OpenvSwitch
	bridges     map[UUID]Bridge
	vsPorts     map[UUID]Port
	ssl         map[UUID]SSL
	interfaces  map[UUID]Interface

	routers     map[UUID]LogicalRouter
	routerPorts map[UUID]LogicalRouterPort
	nat         map[UUID]NAT
	static      map[UUID]StaticRoute
	switches    map[UUID]LogicalSwitch
	switchPorts map[UUID]LogicalSwitchPort
	dhcp        map[UUID]DHCPOptions
	aclRows
	lbRows

	// Indices.
	byName     index[string]
	byPeer     index[string] // options:peer → ports
	byDatapath index[UUID]
	gatewaysAt index[UUID]   // chassis → the gateway ports bound to it
	byGroup    index[UUID]   // HA_Chassis_Group → ports
	privateOf  index[UUID]   // chassis → its Chassis_Private
	boundAt    index[string] // router port → its MAC_Bindings
	localnets  index[UUID]   // switch → its localnet ports
	routerSide index[UUID]   // datapath → its patch and l3gateway ports
	vmsAt      index[UUID]   // chassis → ports of VMs, with exposes
	natOfPort  index[string] // VM's port → NB NAT rows that name it
	byNB       index[UUID]   // NB router or switch → SB datapath
	childOf    index[UUID]   // NB NAT, static route → routers
	heldBy     index[UUID]   // NB ACL, load balancer, group of these → switches
	lrpByName  index[string]
	lspByName  index[string]
	bridgeName index[string]

	// With VMs: chassis → the ports that VMs have there, switch → its metadata
	// ports, iface-id → Interfaces, name → Interfaces, Interface → its Port, Port → its Bridge.
	servedAt, localportsOn    index[UUID]
	ifaceOf, ifaceBy          index[string]
	portOfIface, bridgeOfPort index[UUID]

	// With clients: the ports that VMs have on a switch, parent_port → ports.
	servedOn index[place]
	subports index[string]

	advertisedOn, advertisedBy index[UUID] // router, router port → its Advertised_Routes

	mappings map[string]string
	// changed is what PortsChanged tells; changes counts the changes of all ports.
	changed map[UUID]uint64
	changes uint64
	// expectsNB: a router's rows of the Northbound database are to be expected.
	expectsNB bool
	// exposes is what Expose was told.
	exposes bool
	// vms is what FollowVMs was told.
	vms bool
	// clients is what FollowClients was told.
	clients bool
	// named is Config.SystemID.
	named string
	// host is what SetHostAddresses was told.
	host HostAddresses
}

// NewRows is an empty store.
func NewRows() *Rows {
	return &Rows{
		ports: map[UUID]PortBinding{}, datapaths: map[UUID]DatapathBinding{}, chassis: map[UUID]Chassis{},
		private: map[UUID]ChassisPrivate{}, ha: map[UUID]HAChassis{}, haGroups: map[UUID]HAChassisGroup{}, bindings: map[UUID]MACBinding{},
		openvswitch: map[UUID]OpenvSwitch{}, bridges: map[UUID]Bridge{}, vsPorts: map[UUID]Port{},
		ssl: map[UUID]SSL{}, interfaces: map[UUID]Interface{},
		routers: map[UUID]LogicalRouter{}, routerPorts: map[UUID]LogicalRouterPort{},
		nat: map[UUID]NAT{}, static: map[UUID]StaticRoute{}, switches: map[UUID]LogicalSwitch{},
		switchPorts: map[UUID]LogicalSwitchPort{}, dhcp: map[UUID]DHCPOptions{}, lspByName: index[string]{},
		advertised: map[UUID]AdvertisedRoute{}, advertisedOn: index[UUID]{}, advertisedBy: index[UUID]{},
		byName: index[string]{}, byPeer: index[string]{}, byDatapath: index[UUID]{}, gatewaysAt: index[UUID]{}, byGroup: index[UUID]{}, privateOf: index[UUID]{}, boundAt: index[string]{},
		localnets: index[UUID]{}, routerSide: index[UUID]{}, vmsAt: index[UUID]{}, natOfPort: index[string]{},
		byNB: index[UUID]{}, childOf: index[UUID]{}, heldBy: index[UUID]{}, lrpByName: index[string]{}, bridgeName: index[string]{},
		servedAt: index[UUID]{}, localportsOn: index[UUID]{}, ifaceOf: index[string]{}, ifaceBy: index[string]{}, servedOn: index[place]{}, subports: index[string]{}, portOfIface: index[UUID]{}, bridgeOfPort: index[UUID]{},
		changed: map[UUID]uint64{}, aclRows: newACLRows(), lbRows: newLBRows(),
	}
}

// Port finds a Port_Binding by logical_port.
func (r *Rows) Port(name string) (PortBinding, bool) {
	id, ok := multimap.First(r.byName, name)
	if !ok {
		return PortBinding{}, false
	}
	return r.ports[id], true
}

// ExpectsNB tells whether what is not known of the Northbound database is about to
// be: it is followed, and has answered or may still.
func (r *Rows) ExpectsNB() bool { return r.expectsNB }

// ExpectNB sets what ExpectsNB tells.
func (r *Rows) ExpectNB(yes bool) { r.expectsNB = yes }

// withoutSB is a new store with the same rows of the other databases.
func (r *Rows) withoutSB() *Rows {
	out := NewRows()
	out.expectsNB, out.named, out.host, out.exposes, out.vms, out.clients = r.expectsNB, r.named, r.host, r.exposes, r.vms, r.clients
	out.aclRows.follows, out.south.follows = r.aclRows.follows, r.south.follows
	var all []Change
	for _, rows := range append(r.allNB(), values(r.openvswitch), values(r.bridges), values(r.vsPorts), values(r.ssl), values(r.interfaces)) {
		for _, row := range rows {
			all = append(all, Set(row))
		}
	}
	out.Apply(all)
	return out
}

// allNB are the rows of the Northbound database, by table.
func (r *Rows) allNB() [][]Row {
	return append(append(r.aclRows.allNB(), r.lbRows.allNB()...), values(r.routers), values(r.routerPorts), values(r.nat), values(r.static),
		values(r.switches), values(r.switchPorts), values(r.dhcp))
}

// goneNB are deletions of the Northbound rows that list does not have.
func (r *Rows) goneNB(list []Change) []Change {
	has := make(map[UUID]struct{}, len(list))
	for _, c := range list {
		has[c.UUID] = struct{}{}
	}
	var out []Change
	for _, rows := range r.allNB() {
		for _, row := range rows {
			if _, ok := has[row.Key()]; !ok {
				out = append(out, Delete(row.table(), row.Key()))
			}
		}
	}
	return out
}

func values[R Row](m map[UUID]R) []Row {
	out := make([]Row, 0, len(m))
	for _, row := range m {
		out = append(out, row)
	}
	return out
}

// PortsChanged is another number after each change of a port of the datapath, or
// of one that a port of it names as its peer. Numbers of two stores say nothing
// of each other.
func (r *Rows) PortsChanged(datapath UUID) uint64 { return r.changed[datapath] }

// PortsOn lists the Port_Bindings of a datapath, by name.
func (r *Rows) PortsOn(datapath UUID) []PortBinding {
	out := make([]PortBinding, 0, r.byDatapath.Count(datapath))
	for id := range r.byDatapath.All(datapath) {
		out = append(out, r.ports[id])
	}
	slices.SortFunc(out, func(a, b PortBinding) int {
		return cmp.Or(cmp.Compare(a.LogicalPort, b.LogicalPort), cmp.Compare(a.UUID, b.UUID))
	})
	return out
}

// Datapath finds a Datapath_Binding.
func (r *Rows) Datapath(id UUID) (DatapathBinding, bool) {
	d, ok := r.datapaths[id]
	return d, ok
}

// Routers lists the router datapaths, sorted.
func (r *Rows) Routers() []UUID {
	var out []UUID
	for id, d := range r.datapaths {
		if d.IsRouter() {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Peer is the other end of a patch or l3gateway port (options:peer). Both ends
// have to name each other.
func (r *Rows) Peer(p PortBinding) (PortBinding, bool) {
	name := p.Options["peer"]
	if name == "" {
		return PortBinding{}, false
	}
	peer, ok := r.Port(name)
	return peer, ok && peer.Options["peer"] == p.LogicalPort
}

// SystemID is this node's name in OVN: the configured one, or else
// Open_vSwitch.external_ids:system-id.
func (r *Rows) SystemID() string {
	if r.named != "" {
		return r.named
	}
	return r.external()["system-id"]
}

// External reads a key of Open_vSwitch.external_ids the way ovn-controller
// does: KEY-SYSTEMID before KEY.
func (r *Rows) External(key string) string {
	ext := r.external()
	if v, ok := ext[key+"-"+r.SystemID()]; ok {
		return v
	}
	return ext[key]
}

func (r *Rows) external() map[string]string {
	ids := slices.Sorted(maps.Keys(r.openvswitch))
	if len(ids) == 0 {
		return nil
	}
	return r.openvswitch[ids[0]].ExternalIDs // the table has one row
}

// OwnChassis is the Chassis row whose name is this node's system-id.
func (r *Rows) OwnChassis() (Chassis, bool) {
	name := r.SystemID()
	if name == "" {
		return Chassis{}, false
	}
	var best Chassis
	for _, c := range r.chassis {
		if c.Name == name && (best.UUID == "" || c.UUID < best.UUID) {
			best = c
		}
	}
	return best, best.UUID != ""
}

// Router is the Northbound row of a router datapath; false when there is no
// Northbound session or the row has not come.
func (r *Rows) Router(datapath UUID) (LogicalRouter, bool) {
	lr, ok := r.routers[r.datapaths[datapath].NBUUID()]
	return lr, ok
}

// RouterPort is the Northbound row of a router port.
func (r *Rows) RouterPort(name string) (LogicalRouterPort, bool) {
	id, ok := multimap.First(r.lrpByName, name)
	if !ok {
		return LogicalRouterPort{}, false
	}
	return r.routerPorts[id], true
}

// NATOf lists a router's NAT rows. It is false when they are unknown: no
// Northbound session, or not all rows are there.
func (r *Rows) NATOf(datapath UUID) ([]NAT, bool) {
	lr, ok := r.Router(datapath)
	if !ok {
		return nil, false
	}
	return collect(lr.NAT, r.nat)
}

// StaticRoutesOf lists a router's static routes; false as in NATOf.
func (r *Rows) StaticRoutesOf(datapath UUID) ([]StaticRoute, bool) {
	lr, ok := r.Router(datapath)
	if !ok {
		return nil, false
	}
	return collect(lr.StaticRoutes, r.static)
}

// Neighbours lists the addresses that a router port learned under the next-hop
// MAC (SB MAC_Binding), lowest first.
func (r *Rows) Neighbours(routerPort string) []netip.Addr {
	var out []netip.Addr
	for id := range r.boundAt.All(routerPort) {
		// ovn-controller writes nothing but addresses here.
		if a, err := netip.ParseAddr(r.bindings[id].IP); err == nil {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

func collect[R any](ids []UUID, from map[UUID]R) ([]R, bool) {
	out := make([]R, 0, len(ids))
	for _, id := range slices.Sorted(slices.Values(ids)) {
		row, ok := from[id]
		if !ok {
			return nil, false
		}
		out = append(out, row)
	}
	return out, true
}
