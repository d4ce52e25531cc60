package ovn

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/multimap"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// ProviderSwitch is a switch with a localnet port whose physical network is mapped
// to a bridge of this node.
type ProviderSwitch struct {
	Datapath UUID
	Localnet PortBinding
	// Network is the physical network, Bridge what it is mapped to.
	Network, Bridge string
}

// FloatingIP is a NAT row of the Northbound database that names a VM's port,
// with its router's ports and static routes.
type FloatingIP struct {
	NAT          NAT
	Router       UUID
	RouterPorts  []LogicalRouterPort
	StaticRoutes []StaticRoute
}

// ProviderSwitchOf is a switch as a provider network of this node. Of several
// localnet ports that with the lowest name counts whose network is mapped here.
func (r *Rows) ProviderSwitchOf(datapath UUID) (ProviderSwitch, bool) {
	var best ProviderSwitch
	for id := range r.localnets.All(datapath) {
		p := r.ports[id]
		bridge, mapped := r.mappings[p.Options["network_name"]]
		if mapped && (best.Bridge == "" || p.LogicalPort < best.Localnet.LogicalPort) {
			best = ProviderSwitch{Datapath: datapath, Localnet: p, Network: p.Options["network_name"], Bridge: bridge}
		}
	}
	return best, best.Bridge != ""
}

// ProviderSwitches lists those of this node, by datapath.
func (r *Rows) ProviderSwitches() []ProviderSwitch {
	var out []ProviderSwitch
	for datapath := range r.localnets {
		if s, ok := r.ProviderSwitchOf(datapath); ok {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b ProviderSwitch) int { return cmp.Compare(a.Datapath, b.Datapath) })
	return out
}

// VMs lists the ports of VMs, and the virtual ports, that are bound to a
// chassis, by name. It is kept with Needs.Exposure only.
func (r *Rows) VMs(chassis UUID) []PortBinding { return r.byPortName(r.vmsAt.All(chassis)) }

// RouterSides lists the ports of a switch that lead to routers, by name.
func (r *Rows) RouterSides(datapath UUID) []PortBinding {
	return r.byPortName(r.routerSide.All(datapath))
}

// GatewayPortsAt lists the gateway ports of all routers that are bound to chassis,
// by name.
func (r *Rows) GatewayPortsAt(chassis UUID) []GatewayPort {
	var out []GatewayPort
	for _, p := range r.byPortName(r.gatewaysAt.All(chassis)) {
		if d, ok := r.datapaths[p.Datapath]; !ok || !d.IsRouter() {
			continue // the switch's side of a gateway router's port
		}
		if g, ok := r.gatewayPort(p); ok {
			out = append(out, g)
		}
	}
	return out
}

func (r *Rows) byPortName(ids func(func(UUID) bool)) []PortBinding {
	var out []PortBinding
	for id := range ids {
		out = append(out, r.ports[id])
	}
	slices.SortFunc(out, func(a, b PortBinding) int {
		return cmp.Or(cmp.Compare(a.LogicalPort, b.LogicalPort), cmp.Compare(a.UUID, b.UUID))
	})
	return out
}

// FloatingIPs lists the NAT rows that name a VM's port, by identifier, as far
// as their routers are there.
func (r *Rows) FloatingIPs(port string) []FloatingIP {
	var out []FloatingIP
	for _, id := range slices.Sorted(r.natOfPort.All(port)) {
		router, ok := multimap.First(r.childOf, id)
		if !ok {
			continue
		}
		f := FloatingIP{NAT: r.nat[id], Router: router}
		for _, p := range r.routers[router].Ports {
			if lrp, ok := r.routerPorts[p]; ok {
				f.RouterPorts = append(f.RouterPorts, lrp)
			}
		}
		for _, s := range r.routers[router].StaticRoutes {
			if route, ok := r.static[s]; ok {
				f.StaticRoutes = append(f.StaticRoutes, route)
			}
		}
		out = append(out, f)
	}
	return out
}

func (r *Rows) putNAT(c Change) {
	old := store(r.nat, c)
	r.natOfPort.Delete(old.LogicalPort, c.UUID)
	if n, ok := r.nat[c.UUID]; ok && n.LogicalPort != "" {
		r.natOfPort.Add(n.LogicalPort, c.UUID)
	}
}

// IsHostAddress tells whether the node itself has an address.
func (r *Rows) IsHostAddress(a netip.Addr) bool {
	for _, list := range r.host {
		if slices.Contains(list, a) {
			return true
		}
	}
	return false
}

// Expose says whether what is exposed without EVPN is followed, before any row is
// there.
func (r *Rows) Expose(yes bool) { r.exposes = yes }

// exposed adds the conditions of distributed floating IPs: the ports of provider
// switches, which have them in Southbound, and what Northbound has of the VMs
// here.
func (d *discovery) exposed(own UUID, nb ovsdb.Conditions) {
	if d.needs.Floating == nil {
		return
	}
	for _, s := range d.rows.ProviderSwitches() {
		if d.needs.Floating(s.Network) {
			d.portsOn[s.Datapath] = struct{}{}
		}
	}
	routers := map[UUID]struct{}{}
	for _, p := range d.rows.VMs(own) {
		nb["NAT"] = append(nb["NAT"], ovsdb.Equal("logical_port", p.LogicalPort))
		for id := range d.rows.natOfPort.All(p.LogicalPort) {
			nb["Logical_Router"] = append(nb["Logical_Router"], ovsdb.Includes("nat", ovsdb.UUID(id)))
			for router := range d.rows.childOf.All(id) {
				routers[router] = struct{}{}
			}
		}
	}
	for _, router := range slices.Sorted(maps.Keys(routers)) {
		for _, id := range d.rows.routers[router].Ports {
			nb["Logical_Router_Port"] = append(nb["Logical_Router_Port"], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
		}
		for _, id := range d.rows.routers[router].StaticRoutes {
			nb["Logical_Router_Static_Route"] = append(nb["Logical_Router_Static_Route"], ovsdb.Equal("_uuid", ovsdb.UUID(id)))
		}
	}
}

// concernsExposure tells, before the change is applied, whether it is of what is
// exposed without EVPN.
func (r *Rows) concernsExposure(c Change, own UUID) bool {
	if !r.exposes {
		return false
	}
	switch c.Table {
	case TablePortBinding:
		old, had := r.ports[c.UUID]
		next, has := c.New.(PortBinding)
		here := func(p PortBinding, there bool) bool { return there && (!isHost(p.Type) || p.Chassis == own) }
		// Whose addresses are known on a provider network is read of all ports there.
		known := (r.localnets.Has(old.Datapath) || r.localnets.Has(next.Datapath)) && !slices.Equal(old.MAC, next.MAC)
		return known || here(old, had) || here(next, has)
	case TableNAT, TableLogicalRouter, TableLogicalRouterPort, TableStaticRoute, TableLogicalSwitchPort, TableDHCPOptions, TableDatapathBinding:
		return true
	case TableLoadBalancer, TableLoadBalancerGroup, TableHealthCheck, TableServiceMonitor, TableTemplateVar, TableNBGlobal:
		return !r.south.follows // Southbound has none of routers
	}
	return false
}

// vmMoves tells, before the change is applied, whether a VM comes here or
// goes, by which Northbound rows of floating IPs are chosen.
func (r *Rows) vmMoves(c Change, own UUID) bool {
	next, _ := c.New.(PortBinding)
	return r.exposes && (r.ports[c.UUID].Chassis == own) != (next.Chassis == own)
}

// PeerNaming is the port that names another as its peer, whether that one is
// followed or not.
func (r *Rows) PeerNaming(name string) (PortBinding, bool) {
	id, ok := multimap.First(r.byPeer, name)
	if !ok {
		return PortBinding{}, false
	}
	return r.ports[id], true
}
