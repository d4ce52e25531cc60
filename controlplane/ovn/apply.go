package ovn

import (
	"maps"
	"slices"
)

// Dirty is what a batch touched.
type Dirty struct {
	// Routers are the router datapaths whose translation may have changed,
	// the removed ones too.
	Routers map[UUID]struct{}
	// All: facts of the node itself changed; every router is touched.
	All bool
	// Exposure: what may be exposed without EVPN changed (Needs.Exposure).
	Exposure bool
	// VMs: something changed of the VMs here, of how they are plugged, or of what
	// else Needs.Metadata and Needs.ACLs follow of them.
	VMs bool
	// Switches are those with VMs here, or with some until now, of which something
	// changed that their VIPs, or who balances these, may depend on (Needs.Clients).
	Switches map[UUID]struct{}
	// relations: the change is of what Discover or Role reads.
	relations bool
}

// join adds another batch's marks.
func (d *Dirty) join(o Dirty) {
	if d.Routers == nil {
		d.Routers, d.Switches = map[UUID]struct{}{}, map[UUID]struct{}{}
	}
	maps.Copy(d.Routers, o.Routers)
	maps.Copy(d.Switches, o.Switches)
	d.All = d.All || o.All
	d.Exposure = d.Exposure || o.Exposure
	d.VMs = d.VMs || o.VMs
	d.relations = d.relations || o.relations
}

// Apply brings a batch into the store and says what it touches.
func (r *Rows) Apply(batch []Change) Dirty {
	d := Dirty{Routers: map[UUID]struct{}{}, Switches: map[UUID]struct{}{}}
	local := slices.ContainsFunc(batch, func(c Change) bool {
		return c.Table >= TableOpenvSwitch && c.Table <= TableSSL || c.Table == TableChassis
	})
	var before map[string]string
	if local {
		before = r.nodeFacts()
	}
	own, _ := r.OwnChassis()
	for _, c := range batch {
		old := r.ports[c.UUID]
		d.Exposure = d.Exposure || r.concernsExposure(c, own.UUID)
		d.VMs = d.VMs || r.concernsVMs(c, own.UUID)
		d.relations = d.relations || r.relates(c, own.UUID)
		switches := touch{r, own.UUID, d.Switches}
		clients, other := r.concernsClients(c, own.UUID), r.counterpart(c)
		r.touched(c, asPort(c), d.Routers)
		if clients {
			switches.switches(c, c.New)
		}
		r.put(c)
		if c.Table != TableServiceMonitor {
			clear(r.lists)
		}
		r.touched(c, old, d.Routers)
		if clients {
			switches.switches(c, other)
		}
	}
	if local {
		r.mappings = ParseMappings(r.External("ovn-bridge-mappings"))
		d.All = !maps.Equal(before, r.nodeFacts())
	}
	return d
}

// relates tells, before the change is applied, whether it is of what Discover or
// Role reads. What they read of bridges is among the node's facts. The work that
// follows is on all routers of the node, so a VM's tap must not lead to it.
func (r *Rows) relates(c Change, own UUID) bool {
	switch c.Table {
	case TablePortBinding:
		// The type of a row that is not there reads as a host's.
		next, _ := c.New.(PortBinding)
		return !isHost(r.ports[c.UUID].Type) || !isHost(next.Type) || r.vmMoves(c, own) || r.servedMoves(c, own)
	case TableDatapathBinding:
		old, had := r.datapaths[c.UUID]
		next, has := c.New.(DatapathBinding)
		return had != has || old.IsRouter() != next.IsRouter() || old.NBUUID() != next.NBUUID() ||
			vrfNames(old.ExternalIDs) != vrfNames(next.ExternalIDs) || r.vms && old.Network() != next.Network()
	case TableHAChassis:
		old, had := r.ha[c.UUID]
		next, has := c.New.(HAChassis)
		return had != has || old != next
	case TableChassis, TableHAChassisGroup, TableOpenvSwitch:
		return true
	case TableNAT, TableLogicalRouterPort, TableLogicalSwitchPort:
		return r.exposes || r.aclRows.relates(c)
	case TableACL, TablePortGroup:
		return r.aclRows.relates(c)
	case TableLoadBalancer, TableLoadBalancerGroup, TableServiceMonitor, TableDatapathGroup:
		return r.lbRows.relates(c)
	case TableAdvertisedRoute:
		return r.advertisedRelates(c)
	case TableLogicalSwitch:
		old, had := r.switches[c.UUID]
		next, has := c.New.(LogicalSwitch)
		return had != has || !maps.Equal(old.ExternalIDs, next.ExternalIDs) || !slices.Equal(old.ACLs, next.ACLs) ||
			!slices.Equal(old.LoadBalancers, next.LoadBalancers) || !slices.Equal(old.LoadBalancerGroups, next.LoadBalancerGroups)
	case TableLogicalRouter:
		old, had := r.routers[c.UUID]
		next, has := c.New.(LogicalRouter)
		return had != has || !slices.Equal(old.Ports, next.Ports) || !slices.Equal(old.NAT, next.NAT) ||
			!slices.Equal(old.StaticRoutes, next.StaticRoutes) || !slices.Equal(old.LoadBalancers, next.LoadBalancers) ||
			!slices.Equal(old.LoadBalancerGroups, next.LoadBalancerGroups) || vrfNames(old.Options) != vrfNames(next.Options)
	}
	return false
}

// vrfNames are the options of a router that name its VRF.
func vrfNames(options map[string]string) [2]string {
	return [2]string{options["dynamic-routing-vrf-id"], options["dynamic-routing-vrf-name"]}
}

func isHost(kind string) bool { return kind == TypeVIF || kind == TypeVirtual }

// nodeFacts are the facts of the node that every router's translation reads.
func (r *Rows) nodeFacts() map[string]string {
	own, _ := r.OwnChassis()
	f := map[string]string{"name": r.SystemID(), "chassis": string(own.UUID), "bridge": r.IntegrationBridge()}
	for network, bridge := range r.mappings {
		f["map "+network] = bridge
		f["host "+bridge] = r.hostFact(bridge)
		if r.OnlyOVN(bridge) {
			f["only "+bridge] = "ovn"
		}
	}
	return f
}

// touched adds the routers that the row with c's key concerns, as the store
// knows it at this moment; it is called before and after the change, with the
// port as it is on the other side of the change.
func (r *Rows) touched(c Change, other PortBinding, into map[UUID]struct{}) {
	switch c.Table {
	case TablePortBinding:
		if p, ok := r.ports[c.UUID]; ok {
			r.touchedByPort(p, other, into)
		}
	case TableDatapathBinding:
		if d, ok := r.datapaths[c.UUID]; ok {
			r.addRouters(d.UUID, into)
		}
	case TableMACBinding:
		if b, ok := r.bindings[c.UUID]; ok {
			for id := range r.byName.All(b.LogicalPort) {
				r.addRouters(r.ports[id].Datapath, into)
			}
		}
	case TableChassisPrivate:
		if p, ok := r.private[c.UUID]; ok && p.Name != r.SystemID() {
			for id := range r.gatewaysAt.All(p.Chassis) {
				r.addRouters(r.ports[id].Datapath, into)
			}
		}
	case TableHAChassisGroup:
		for id := range r.byGroup.All(c.UUID) {
			r.addRouters(r.ports[id].Datapath, into)
		}
	case TableLogicalRouter:
		r.addNBRouter(c.UUID, into)
	case TableLogicalSwitch:
		for id := range r.byNB.All(c.UUID) {
			r.addRouters(id, into)
		}
	case TableAdvertisedRoute:
		if a, ok := r.advertised[c.UUID]; ok && r.isRouter(a.Datapath) {
			into[a.Datapath] = struct{}{}
		}
	case TableLoadBalancer:
		r.touchedByBalancer(c.UUID, into)
	case TableHealthCheck, TableServiceMonitor:
		r.touchedByHealth(c, into)
	case TableTemplateVar, TableNBGlobal:
		r.touchedByAll(into)
	case TableNAT, TableStaticRoute, TableLoadBalancerGroup:
		for id := range r.childOf.All(c.UUID) {
			r.addNBRouter(id, into)
		}
	case TableLogicalRouterPort:
		if p, ok := r.routerPorts[c.UUID]; ok {
			for id := range r.byName.All(p.Name) {
				r.addRouters(r.ports[id].Datapath, into)
			}
		}
	}
}

func (r *Rows) touchedByPort(p, other PortBinding, into map[UUID]struct{}) {
	// A router reads the other ends of its ports, whatever they became. (The
	// name is unique in the table: an index of Port_Binding.)
	for id := range r.byPeer.All(p.LogicalPort) {
		if q := r.ports[id]; r.isRouter(q.Datapath) {
			into[q.Datapath] = struct{}{}
		}
	}
	if p.Type != TypePatch && p.Type != TypeL3Gateway {
		r.addRouters(p.Datapath, into)
		return
	}
	peer, ok := r.Peer(p)
	// What the port answers for is a known address to the other routers of its
	// switch; nothing else of it concerns them.
	known := !slices.Equal(p.MAC, other.MAC) || !slices.Equal(p.NATAddresses, other.NATAddresses) ||
		p.Options["peer"] != other.Options["peer"] || p.Datapath != other.Datapath || p.Type != other.Type
	if known {
		r.addProvider(p.Datapath, into)
		if ok {
			r.addProvider(peer.Datapath, into)
		}
	}
	if r.isRouter(p.Datapath) {
		into[p.Datapath] = struct{}{}
	} else if ok {
		r.addRouters(peer.Datapath, into)
	}
}

// addProvider adds the routers of a switch when it is a provider switch whose
// other addresses matter: one on a bridge with nobody but OVN.
func (r *Rows) addProvider(datapath UUID, into map[UUID]struct{}) {
	ln, ok := r.Localnet(datapath)
	if !ok {
		return
	}
	if bridge, ok := r.BridgeOf(ln.Options["network_name"]); ok && r.OnlyOVN(bridge) {
		r.addRouters(datapath, into)
	}
}

// addRouters adds a router, or the routers attached to a switch.
func (r *Rows) addRouters(datapath UUID, into map[UUID]struct{}) {
	if r.isRouter(datapath) {
		into[datapath] = struct{}{}
		return
	}
	for id := range r.routerSide.All(datapath) {
		if peer, ok := r.Peer(r.ports[id]); ok && peer.Datapath != datapath {
			into[peer.Datapath] = struct{}{}
		}
	}
}

func (r *Rows) addNBRouter(id UUID, into map[UUID]struct{}) {
	for dp := range r.byNB.All(id) {
		into[dp] = struct{}{}
	}
}

func (r *Rows) isRouter(datapath UUID) bool { return r.datapaths[datapath].IsRouter() }

func (r *Rows) put(c Change) {
	switch c.Table {
	case TablePortBinding:
		r.putPort(c)
	case TableDatapathBinding:
		old := store(r.datapaths, c)
		r.byNB.Delete(old.NBUUID(), c.UUID)
		if d, ok := r.datapaths[c.UUID]; ok {
			r.byNB.Add(d.NBUUID(), c.UUID)
		}
	case TableChassis:
		store(r.chassis, c)
	case TableChassisPrivate:
		old := store(r.private, c)
		r.privateOf.Delete(old.Chassis, c.UUID)
		if p, ok := r.private[c.UUID]; ok && p.Chassis != "" {
			r.privateOf.Add(p.Chassis, c.UUID)
		}
	case TableHAChassis:
		store(r.ha, c)
	case TableHAChassisGroup:
		store(r.haGroups, c)
	case TableMACBinding:
		old := store(r.bindings, c)
		r.boundAt.Delete(old.LogicalPort, c.UUID)
		if b, ok := r.bindings[c.UUID]; ok {
			r.boundAt.Add(b.LogicalPort, c.UUID)
		}
	case TableOpenvSwitch:
		store(r.openvswitch, c)
	case TableBridge, TablePort, TableInterface:
		r.putVSwitch(c)
	case TableACL, TablePortGroup, TableAddressSet, TableNBGlobal:
		r.aclRows.put(c)
	case TableSSL:
		store(r.ssl, c)
	case TableLogicalRouter:
		r.putRouter(c)
	case TableLogicalRouterPort:
		old := store(r.routerPorts, c)
		r.lrpByName.Delete(old.Name, c.UUID)
		if p, ok := r.routerPorts[c.UUID]; ok {
			r.lrpByName.Add(p.Name, c.UUID)
		}
	case TableNAT:
		r.putNAT(c)
	case TableStaticRoute:
		store(r.static, c)
	case TableLogicalSwitch:
		r.putSwitch(c)
	case TableAdvertisedRoute:
		r.putAdvertised(c)
	case TableLoadBalancer, TableLoadBalancerGroup, TableHealthCheck, TableServiceMonitor, TableTemplateVar, TableDatapathGroup, TableSBGlobal:
		r.lbRows.put(c)
	case TableLogicalSwitchPort, TableDHCPOptions:
		r.putVM(c)
	}
}

// store puts or removes the row and returns the one that was there.
func store[R Row](into map[UUID]R, c Change) R {
	old := into[c.UUID]
	if row, ok := c.New.(R); ok {
		into[c.UUID] = row
	} else {
		delete(into, c.UUID)
	}
	return old
}

func (r *Rows) putPort(c Change) {
	if old, ok := r.ports[c.UUID]; ok {
		r.portsChange(old)
		r.indexPort(old, func(x index[UUID], k UUID) { x.Delete(k, old.UUID) })
		r.indexClients(old, index[place].Delete, index[string].Delete)
		r.byName.Delete(old.LogicalPort, old.UUID)
		r.byPeer.Delete(old.Options["peer"], old.UUID)
		if !r.byDatapath.Has(old.Datapath) {
			delete(r.changed, old.Datapath)
		}
	}
	store(r.ports, c)
	if p, ok := r.ports[c.UUID]; ok {
		r.indexPort(p, func(x index[UUID], k UUID) { x.Add(k, p.UUID) })
		r.indexClients(p, index[place].Add, index[string].Add)
		r.byName.Add(p.LogicalPort, p.UUID)
		if peer := p.Options["peer"]; peer != "" {
			r.byPeer.Add(peer, p.UUID)
		}
		r.portsChange(p)
	}
}

// portsChange gives the datapaths that p concerns another number: its own, and
// those of the ports that name it as their peer.
func (r *Rows) portsChange(p PortBinding) {
	r.changes++
	r.changed[p.Datapath] = r.changes
	for id := range r.byPeer.All(p.LogicalPort) {
		r.changed[r.ports[id].Datapath] = r.changes
	}
}

func (r *Rows) indexPort(p PortBinding, put func(index[UUID], UUID)) {
	put(r.byDatapath, p.Datapath)
	r.indexServed(p, put)
	if p.Chassis != "" && (p.Type == TypeChassisRedirect || p.Type == TypeL3Gateway) {
		put(r.gatewaysAt, p.Chassis)
	}
	if p.HAChassisGroup != "" {
		put(r.byGroup, p.HAChassisGroup)
	}
	switch p.Type {
	case TypeVIF, TypeVirtual:
		if r.exposes && p.Chassis != "" {
			put(r.vmsAt, p.Chassis)
		}
	case TypeLocalnet:
		put(r.localnets, p.Datapath)
	case TypePatch, TypeL3Gateway:
		put(r.routerSide, p.Datapath)
	}
}

func (r *Rows) putRouter(c Change) {
	old := store(r.routers, c)
	for _, child := range slices.Concat(old.NAT, old.StaticRoutes, old.LoadBalancers, old.LoadBalancerGroups) {
		r.childOf.Delete(child, c.UUID)
	}
	lr := r.routers[c.UUID]
	for _, child := range slices.Concat(lr.NAT, lr.StaticRoutes, lr.LoadBalancers, lr.LoadBalancerGroups) {
		r.childOf.Add(child, c.UUID)
	}
}
