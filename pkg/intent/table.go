package intent

import "net/netip"

// Table is one of the contract's: values V by their keys. Tables are compared by their address:
// there is one variable for each.
type Table[K, V comparable] struct {
	// Name is the table's, Kind that of an object which one of its rows is: in status, metrics,
	// differences and logs.
	Name, Kind string
	// Key is a row's own.
	Key func(V) K
}

// The tables of a gateway node.
var (
	// Bridges are provider bridges that need a veth pair.
	Bridges = &Table[BridgeKey, Bridge]{"bridges", "bridge", func(b Bridge) BridgeKey { return b.Name }}
	// KernelVRFs are devices of a VRF on the kernel path.
	KernelVRFs = &Table[VNI, KernelVRF]{"kernel-vrfs", "kernel-vrf", func(v KernelVRF) VNI { return v.VNI }}
	// KernelGateways are where packets of such a VRF enter OVN.
	KernelGateways = &Table[GatewayKey, KernelGateway]{"kernel-gateways", "kernel-gateway", func(g KernelGateway) GatewayKey { return g.Key }}
	// KernelRoutes are its destinations, which Routes does not have then.
	KernelRoutes = &Table[RouteKey, Route]{"kernel-routes", "kernel-route", routeKey}
	// VRFs are tenants' routing tables.
	VRFs = &Table[VNI, VRF]{"vrfs", "vrf", func(v VRF) VNI { return v.VNI }}
	// Gateways are where a VRF's traffic enters and leaves OVN.
	Gateways = &Table[GatewayKey, Gateway]{"gateways", "gateway", func(g Gateway) GatewayKey { return g.Key }}
	// ServedNextHops are answered by Sluice: ARP and neighbour discovery.
	ServedNextHops = &Table[ServedKey, Served]{"served", "next-hop", func(s Served) ServedKey { return s.Key }}
	// VTEPs are outer sources that fabric_in accepts.
	VTEPs = &Table[netip.Addr, VTEP]{"vteps", "vtep", func(v VTEP) netip.Addr { return v.Addr }}
	// BackendRoutes lead to backends of VIPs.
	BackendRoutes = &Table[RouteKey, BackendRoute]{"backend-routes", "backend-route", func(r BackendRoute) RouteKey { return r.Key }}
	// VIPs are balanced where packets come from the fabric.
	VIPs = &Table[VIPKey, VIP]{"vips", "vip", func(v VIP) VIPKey { return v.Key }}
	// Routes are destinations of VRFs, local and remote.
	Routes = &Table[RouteKey, Route]{"routes", "route", routeKey}
	// UnderlayDevices are where packets for the default VRF come in.
	UnderlayDevices = &Table[string, UnderlayDevice]{"underlay-devices", "underlay-device", func(d UnderlayDevice) string { return d.Name }}
	// SteeringFlows are OpenFlow rows on provider bridges.
	SteeringFlows = &Table[SteeringKey, Steering]{"steering", "flow", func(s Steering) SteeringKey { return s.Key }}
	// Policies are what BGP imports into VRFs and attaches to what they announce.
	Policies = &Table[VNI, VRFPolicy]{"policies", "policy", func(p VRFPolicy) VNI { return p.VNI }}
	// Announcements are what BGP tells the fabric.
	Announcements = &Table[RouteKey, Announcement]{"announcements", "announcement", func(a Announcement) RouteKey { return a.Key }}
	// LearnedRoutes are given back to OVN.
	LearnedRoutes = &Table[LearnedKey, LearnedRoute]{"learned-routes", "learned-route", func(r LearnedRoute) LearnedKey { return r.Key }}
)

// Tables that others are made of: no driver programs them.
var (
	// Relays are routes to what is behind gateway ports that may come to the node. One without
	// next hops is one that is not known yet.
	Relays = &Table[RouteKey, Route]{"relays", "relay", routeKey}
	// Standby has where these gateway ports are.
	Standby = &Table[GatewayKey, Place]{"standby", "standby-gateway", func(p Place) GatewayKey { return p.Gateway }}
	// Learners are the gateway ports here that routes can be given to OVN by.
	Learners = &Table[GatewayKey, Learner]{"learners", "learner", func(l Learner) GatewayKey { return l.Gateway }}
)

// The tables of VMs that are balanced on their taps.
var (
	// ClientNeighbors are addresses on switches with VIPs.
	ClientNeighbors = &Table[NeighborKey, Neighbor]{"client-neighbors", "client-neighbor", func(n Neighbor) NeighborKey { return n.Key }}
	// ClientVIPs are balanced where VMs send.
	ClientVIPs = &Table[VIPKey, VIP]{"client-vips", "client-vip", func(v VIP) VIPKey { return v.Key }}
	// TapClients are VMs whose connections to VIPs are balanced.
	TapClients = &Table[TapClientKey, TapClient]{"clients", "client", func(c TapClient) TapClientKey { return c.Key }}
)

// The tables of metadata.
var (
	// MetadataNetworks are metadata ports of OVN that are namespaces of the node.
	MetadataNetworks = &Table[string, MetadataNetwork]{"metadata-networks", "metadata-network", func(n MetadataNetwork) string { return n.Network }}
	// MetadataPorts are ports whose requests are answered.
	MetadataPorts = &Table[string, MetadataPort]{"metadata-ports", "metadata-port", func(p MetadataPort) string { return p.Port }}
)

// The tables of the underlay.
var (
	// UnderlayRoutes are the node's own, in the kernel's main table.
	UnderlayRoutes = &Table[netip.Prefix, UnderlayRoute]{"underlay-routes", "underlay-route", func(r UnderlayRoute) netip.Prefix { return r.Prefix }}
	// UnderlayAnnouncements are what BGP tells the underlay.
	UnderlayAnnouncements = &Table[netip.Prefix, UnderlayAnnouncement]{"underlay-announcements", "underlay-announcement", func(a UnderlayAnnouncement) netip.Prefix { return a.Prefix }}
)

func routeKey(r Route) RouteKey { return r.Key }
