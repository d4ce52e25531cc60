package ovn

import (
	"maps"
	"slices"
)

// concernsClients tells, before the change is applied, whether it is of what is read of the
// VMs here for the VIPs of their switches: load balancers, where frames to backends go,
// taps, ACLs.
func (r *Rows) concernsClients(c Change, own UUID) bool {
	if !r.clients {
		return false
	}
	switch c.Table {
	case TablePortBinding:
		return portConcernsClients(r.ports[c.UUID], asPort(c), own)
	case TableDatapathBinding:
		old, next := changed(r.datapaths, c)
		return old.TunnelKey != next.TunnelKey || old.NBUUID() != next.NBUUID() || old.Network() != next.Network()
	case TableInterface:
		old, next := changed(r.interfaces, c)
		return old != next
	case TableBridge, TableLoadBalancer, TableHealthCheck:
		return true
	case TablePort:
		old, next := changed(r.vsPorts, c)
		return !slices.Equal(old.Interfaces, next.Interfaces)
	case TableLogicalSwitch:
		old, next := changed(r.switches, c)
		return old.UUID != next.UUID || !slices.Equal(old.ACLs, next.ACLs) || !slices.Equal(old.LoadBalancers, next.LoadBalancers) ||
			!slices.Equal(old.LoadBalancerGroups, next.LoadBalancerGroups)
	case TableLoadBalancerGroup:
		old, next := changed(r.lbGroups, c)
		return old.UUID != next.UUID || !slices.Equal(old.LoadBalancers, next.LoadBalancers)
	case TableServiceMonitor:
		old, next := changed(r.monitors, c)
		return old != next
	case TableTemplateVar:
		old, next := changed(r.templates, c)
		return old.Chassis != next.Chassis || !maps.Equal(old.Variables, next.Variables)
	case TableNBGlobal:
		old, next := changed(r.globals, c)
		return old.differs(next)
	case TableDatapathGroup, TableSBGlobal:
		return r.south.concerns(c)
	case TableACL, TablePortGroup, TableAddressSet, TableLogicalSwitchPort:
		return r.aclRows.follows && r.aclConcernsClients(c)
	}
	return false
}

// aclConcernsClients is concernsClients of rows that say which ACLs a port has.
func (r *Rows) aclConcernsClients(c Change) bool {
	switch c.Table {
	case TableACL:
		old, next := changed(r.aclRows.acls, c)
		return old.UUID != next.UUID || old.FromPort != next.FromPort || next.FromPort && old != next
	case TableAddressSet:
		old, next := changed(r.sets, c)
		return old.Name != next.Name || !slices.Equal(old.Addresses, next.Addresses)
	case TableLogicalSwitchPort:
		old, next := changed(r.switchPorts, c)
		return old.Name != next.Name
	}
	return true
}

// portConcernsClients is concernsClients of a row of Port_Binding.
func portConcernsClients(old, next PortBinding, own UUID) bool {
	return old.LogicalPort != next.LogicalPort || old.Datapath != next.Datapath || old.Type != next.Type || !slices.Equal(old.MAC, next.MAC) ||
		old.Options["peer"] != next.Options["peer"] || old.Options["distributed-port"] != next.Options["distributed-port"] ||
		old.servedHere(own) != next.servedHere(own) || old.ParentPort != next.ParentPort || old.Tag != next.Tag
}

// changed is a row before and after a change; the zero value where there is none.
func changed[R Row](rows map[UUID]R, c Change) (old, next R) {
	next, _ = c.New.(R)
	return rows[c.UUID], next
}

// counterpart is the row that a change replaces, of tables whose rows have long lists: what
// is in both is not concerned.
func (r *Rows) counterpart(c Change) Row {
	switch c.Table {
	case TableBridge:
		return r.bridges[c.UUID]
	case TablePortGroup:
		return r.groups[c.UUID]
	}
	return nil
}

// switches adds the switches that the row with c's key concerns, as the store knows it at
// this moment; it is called before and after the change, with the row as it is on the other
// side of it.
func (t touch) switches(c Change, other Row) {
	r := t.rows
	switch c.Table {
	case TablePortBinding:
		if p, ok := r.ports[c.UUID]; ok {
			t.port(p)
		}
	case TableDatapathBinding:
		t.add(c.UUID)
	case TableInterface:
		t.tap(r.interfaces[c.UUID].IfaceID)
	case TablePort:
		t.interfaces(r.vsPorts[c.UUID].Interfaces)
	case TableBridge:
		b, o := r.bridges[c.UUID], asRow[Bridge](other)
		t.vsPorts(beside(b.Ports, o.Ports, b.Name == o.Name))
	case TableACL:
		t.acl(c.UUID)
	case TablePortGroup:
		g, o := r.groups[c.UUID], asRow[PortGroup](other)
		t.members(beside(g.Ports, o.Ports, g.Name == o.Name && slices.Equal(g.ACLs, o.ACLs)))
	case TableAddressSet:
		for id := range r.aclsBy.All(r.sets[c.UUID].Name) {
			t.acl(id)
		}
	case TableLogicalSwitchPort:
		t.vm(r.switchPorts[c.UUID].Name)
	case TableNBGlobal, TableSBGlobal:
		t.all()
	case TableLogicalSwitch:
		t.northbound(c.UUID)
	case TableLoadBalancer:
		t.balancer(c.UUID)
	case TableLoadBalancerGroup:
		t.holders(c.UUID)
	case TableHealthCheck:
		for id := range r.lbOfCheck.All(c.UUID) {
			t.balancer(id)
		}
	case TableServiceMonitor:
		if m, ok := r.monitors[c.UUID]; ok {
			t.monitor(m)
		}
	case TableTemplateVar:
		t.templated() // rows of other chassis are not followed
	case TableDatapathGroup:
		// It says, too, which probes are of the backends of a load balancer.
		for id := range r.south.lbAt.All(c.UUID) {
			t.balancer(id)
		}
	}
}

func asRow[R Row](row Row) R {
	out, _ := row.(R)
	return out
}

// beside are the members of a list that another one has not; all, unless what else is said of
// them is the same. Most lists differ in one place.
func beside(list, other []UUID, same bool) []UUID {
	if !same {
		return list
	}
	for len(list) > 0 && len(other) > 0 && list[0] == other[0] {
		list, other = list[1:], other[1:]
	}
	for len(list) > 0 && len(other) > 0 && list[len(list)-1] == other[len(other)-1] {
		list, other = list[:len(list)-1], other[:len(other)-1]
	}
	if len(list) == 0 || len(other) == 0 {
		return list
	}
	has := make(map[UUID]struct{}, len(other))
	for _, id := range other {
		has[id] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(list), func(id UUID) bool { _, yes := has[id]; return yes })
}

// touch collects the switches with VMs here that a row concerns.
type touch struct {
	rows *Rows
	own  UUID
	into map[UUID]struct{}
}

// add is for a switch; one without VMs here is none of them.
func (t touch) add(datapath UUID) {
	if t.rows.servedOn.Has(place{t.own, datapath}) {
		t.into[datapath] = struct{}{}
	}
}

// all adds every switch.
func (t touch) all() {
	for id := range t.rows.servedAt.All(t.own) {
		t.add(t.rows.ports[id].Datapath)
	}
}

// northbound adds the datapath of a row of Logical_Switch.
func (t touch) northbound(id UUID) {
	for datapath := range t.rows.byNB.All(id) {
		t.add(datapath)
	}
}

// vm adds the switch of a VM's port.
func (t touch) vm(name string) {
	for id := range t.rows.byName.All(name) {
		t.add(t.rows.ports[id].Datapath)
	}
}

// tap adds the switch of a port, and those of its subports, whose frames come in there, too.
func (t touch) tap(name string) {
	if name == "" {
		return
	}
	t.vm(name)
	for id := range t.rows.subports.All(name) {
		t.add(t.rows.ports[id].Datapath)
	}
}

// port adds the switches that read a row of Port_Binding: the port's own among others.
func (t touch) port(p PortBinding) {
	t.tap(p.LogicalPort)
	// A switch reads the routers at the other ends of its ports, and all ports of these.
	t.ends(p.LogicalPort)
	for id := range t.rows.routerSide.All(p.Datapath) {
		t.ends(t.rows.ports[id].LogicalPort)
	}
	for id := range t.rows.probesOf.All(p.LogicalPort) {
		t.monitor(t.rows.monitors[id])
	}
}

// ends adds the switches with ports that name one as their peer.
func (t touch) ends(name string) {
	for id := range t.rows.byPeer.All(name) {
		t.add(t.rows.ports[id].Datapath)
	}
}

// interfaces adds the switches of the ports that Interfaces are of.
func (t touch) interfaces(ids []UUID) {
	for _, id := range ids {
		t.tap(t.rows.interfaces[id].IfaceID)
	}
}

// vsPorts adds the switches of the ports that are plugged by rows of the vswitch database's
// Port.
func (t touch) vsPorts(ids []UUID) {
	for _, id := range ids {
		t.interfaces(t.rows.vsPorts[id].Interfaces)
	}
}

// holders adds the switches whose row of Logical_Switch names an ACL, a load balancer or a
// group of these.
func (t touch) holders(id UUID) {
	for sw := range t.rows.heldBy.All(id) {
		t.northbound(sw)
	}
}

// acl adds the switches of the VMs that an ACL may apply to.
func (t touch) acl(id UUID) {
	t.holders(id)
	for group := range t.rows.groupsBy.All(id) {
		t.members(t.rows.groups[group].Ports)
	}
}

// members adds the switches of rows of Logical_Switch_Port.
func (t touch) members(ids []UUID) {
	for _, id := range ids {
		if p, ok := t.rows.switchPorts[id]; ok {
			t.vm(p.Name)
		}
	}
}

// balancer adds the switches that a load balancer is on.
func (t touch) balancer(id UUID) {
	t.holders(id)
	for group := range t.rows.lbGroupsOf.All(id) {
		t.holders(group)
	}
	for _, at := range t.rows.balancers[id].At {
		t.add(at)
		for _, datapath := range t.rows.south.groups[at].Datapaths {
			t.add(datapath)
		}
	}
}

// monitor adds the switches with load balancers that a probe may be of.
func (t touch) monitor(m ServiceMonitor) {
	if !t.rows.south.follows {
		for id := range t.rows.lbOfPort.All(m.LogicalPort) {
			t.balancer(id)
		}
		return
	}
	for id := range t.rows.lbWith.All(m.probed().at.Addr()) {
		t.balancer(id)
	}
	t.templated() // whose backends are known with this chassis's variables only
}

// templated adds the switches whose load balancers read Chassis_Template_Var.
func (t touch) templated() {
	for id := range t.rows.templated {
		t.balancer(id)
	}
}
