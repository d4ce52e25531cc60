package reason

import "slices"

// Reasons of objects that OVN's rows make: gateway ports, interfaces, hosts, VRFs.
const (
	BadVNI           = "bad-vni"
	BadAS            = "bad-as"
	BadRouteTarget   = "bad-route-target"
	UnsupportedType  = "unsupported-type"
	BadAnnounce      = "bad-announce"
	BadExpose        = "bad-expose"
	BadMAC           = "bad-mac"
	BadCIDRs         = "bad-cidrs"
	BadNextHop       = "bad-next-hop"
	BadMTU           = "bad-mtu"
	BadVLAN          = "bad-vlan"
	BadPath          = "bad-path"
	PathConflict     = "path-conflict"
	NoLocalnet       = "no-localnet"
	NoBridgeMapping  = "no-bridge-mapping"
	VNIMismatch      = "vni-mismatch"
	NoGateway        = "no-gateway"
	DuplicateGateway = "duplicate-gateway"
	DuplicateAddress = "duplicate-address"
	Overlap          = "overlap"
	OverlapElsewhere = "overlap-elsewhere"
	VRFConflict      = "vrf-conflict"
	OtherVNI         = "other-vni"
	VRFLimit         = "vrf-limit"
	NoIndex          = "no-index"
	NotKept          = "not-kept"
	NotRead          = "not-read"
	OptedOut         = "opted-out"
	ProviderNetwork  = "provider-network"
	NAT              = "nat"
	NATPending       = "nat-pending"
	NATUnknown       = "nat-unknown"
	SNATSource       = "snat-source"
	Standby          = "standby"
	LeftOut          = "left-out"
	OVNTable         = "ovn-table"
	LearnPorts       = "learn-ports"
	OldOVN           = "old-ovn"
	NoSecret         = "no-secret"
	LearnNextHop     = "learn-next-hop"
	PortDown         = "port-down"
	PortDisabled     = "port-disabled"
	NoDevice         = "no-device"
	HostAddress      = "host-address"
	InEVPN           = "in-evpn"
	NoNextHop        = "no-next-hop"
	BadNATAddresses  = "bad-nat-addresses"
	NoGatewayPort    = "no-gateway-port"
	NoLiveBackend    = "no-live-backend"
	BalancersUnknown = "load-balancers-unknown"
	BadLoadBalancer  = "bad-load-balancer"
	SessionsEvicted  = "sessions-evicted"
)

// Reasons of rows that cannot be programmed, or are not yet, and of BGP's objects.
const (
	Foreign      = "foreign"
	Full         = "full"
	Permission   = "permission"
	Failed       = "failed"
	Waiting      = "waiting"
	Missing      = "missing"
	Overdue      = "overdue"
	Held         = "held"
	SameRouterID = "same-router-id"
	SameVTEP     = "same-vtep"
	PrefixLimit  = "prefix-limit"
	Unreadable   = "unreadable-updates"
	NotOffered   = "family-not-offered"
	CutOff       = "cut-off"
	PathMTU      = "path-mtu"
	DeviceDrops  = "device-drops"

	MissingCapability = "missing-capability"
)

// Reasons of what may join two tenants by mistake.
const (
	VNICollision = "vni-collision"
	TargetShared = "route-target-shared"
	RDShared     = "route-distinguisher-shared"
	BFDDown      = "bfd-down"
	PathDiffers  = "path-differs"
	PinsLost     = "pins-lost"
	HashPolicy   = "hash-policy"
)

// Objects lists the reasons of objects.
func Objects() []Entry {
	gateway, iface, vrf := []string{"gateway"}, []string{"interface"}, []string{"vrf"}
	annotated := []string{"gateway", "interface"}
	ports := []string{"gateway", "interface", "host", "port", "floating-ip"}
	exposed := []string{"port", "gateway", "floating-ip"}
	listed := []string{"rows of `route list` and `vrf list` only"}
	rows := []string{"bridge", "vrf", "gateway", "next-hop", "vtep", "route", "flow", "policy", "announcement", "learned-route", "kernel-vrf", "kernel-gateway", "kernel-route", "metadata-network", "metadata-port"}
	return append([]Entry{
		{BadVNI, annotated, broken, "`neutron_bgpvpn:vni` is no VNI.", "Write a number from 1 to 16777215."},
		{BadAS, annotated, broken, "`neutron_bgpvpn:as` is no AS number.", "Write a number from 1 to 4294967295, or remove the key."},
		{BadRouteTarget, annotated, broken, "One of `neutron_bgpvpn:rt`, `it` and `et` is no list of route targets.", "Write targets such as `64512:1001`, separated by commas."},
		{UnsupportedType, annotated, broken, "`neutron_bgpvpn:type` is not `l3`.", "Write `l3`, or remove the key: Type-5 routes carry no other type."},
		{BadAnnounce, ports, broken, "`sluice-announce` is none of `hosts`, `subnets` and `both`. The object is not exposed.", "Correct the key, or remove it."},
		{BadExpose, ports, broken, "`sluice-expose` is neither `true` nor `false`. The object is not exposed.", "Correct the key, or remove it."},
		{BadMAC, append(slices.Clone(ports), "network"), broken, "The row's column `mac` is empty, or an element is no MAC with addresses. Readable elements count.", "Correct the port's addresses in the Northbound database."},
		{BadCIDRs, []string{"host", "port", "network"}, broken, "`neutron:cidrs` of the port, or of a network's metadata port, is no list of addresses.", "Correct the addresses in Neutron, which writes the key."},
		{BadNextHop, []string{"gateway", "port"}, broken, "`sluice-next-hops` has a value that is no address, is the port's own, or is on no network of the port. The other values are served.", "List addresses of the port's networks that the router has routes to."},
		{BadMTU, []string{"gateway", "network"}, broken, "`gateway_mtu`, or `neutron:mtu` of a metadata port, is no MTU. The key is ignored.", "Write a number from 68 to 65535, or remove the key."},
		{BadVLAN, exposed, broken, "The tag of the localnet port is no VLAN.", "Set a tag from 1 to 4094, or none."},
		{BadPath, gateway, broken, "`sluice-path` is none of `auto`, `ebpf` and `kernel`. The key is ignored.", "Correct the key, or remove it."},
		{PathConflict, gateway, broken, "An earlier gateway port of the VRF names another path in `sluice-path`, or the configuration has `path: kernel` for the whole node.", "Name the same path on both ports, or on one alone. With `path: kernel`, write `kernel` or nothing."},
		{NoLocalnet, gateway, broken, "The gateway port's switch has no localnet port, so no bridge of this node carries it.", "Attach the router to a provider network."},
		{NoBridgeMapping, exposed, broken, "This node's `ovn-bridge-mappings` lack the physical network of the localnet port.", "Add the network there, or keep the gateway from being scheduled on this node."},
		{VNIMismatch, iface, broken, "The interface names another VNI than its router's gateway ports here.", "Write one VNI on both (`neutron_bgpvpn:vni`)."},
		{OtherVNI, annotated, warning, "Another place names another VNI for the port, or cannot be read. The first place in the order of `external-ids.md` counts.", "Write the same in both, or remove one."},
		{NoGateway, iface, withheld, "No gateway port of the router on this node has a usable VNI.", "Nothing, if the gateway is on another node. Otherwise correct the gateway port's errors, or write the VNI there."},
		{DuplicateGateway, gateway, broken, "Another gateway port has the same MAC on the same bridge and VLAN.", "Give one of them another MAC."},
		{DuplicateAddress, []string{"gateway", "host", "port", "floating-ip", "load-balancer"}, broken, "Another port of the VRF has the same address and keeps it. For metadata: another port of the network here has the address; a namespace cannot tell them apart, and answers with 404.", "Change or remove one of the two."},
		{OverlapElsewhere, iface, warning, "Another node's router with the same VNI has a network that overlaps this subnet, and BGP has a route to or into the subnet: two tenants may have one VNI, and get each other's packets. Nothing is withdrawn.", "Give the tenants their own VNIs, or renumber one subnet. Nothing, if both routers lead into one network on purpose."},
		{Overlap, append(slices.Clone(annotated), "load-balancer"), broken, "A subnet, or the port's own address, overlaps an earlier subnet of the VRF.", "Give the tenants VNIs of their own, or renumber one subnet."},
		{VRFConflict, gateway, broken, "Another gateway port with the VNI names another AS or other route targets, and keeps the VNI.", "Write the same on both, or give one another VNI."},
		{VRFLimit, vrf, broken, "The node has as many VRFs as `evpn.maxVRFs` allows.", "Raise the limit (`dataplane.sizes.vrfs` too), or move gateways to other nodes."},
		{NoIndex, vrf, broken, "All 65535 indices for route distinguishers of VRFs are taken.", "Move gateways to other nodes."},
		{NotKept, []string{"node"}, broken, "sluiced cannot write the indices of VRFs to the state directory. A loss of the maps may change route distinguishers.", "Make the directory writable; the error names the file."},
		{NotRead, []string{"node"}, warning, "The file with the indices of VRFs was damaged when sluiced started, and is set aside. VRFs missing in the pinned maps got new indices: their route distinguishers have changed.", "Find out what wrote into the state directory. The next start does not repeat the warning."},
		{ProviderNetwork, iface, withheld, "The interface's switch is a provider network: it has a localnet port, and its hosts are reached there. The interface is not exposed.", "Nothing; or set `sluice-expose=true` on the interface to expose it anyway."},
		{OptedOut, ports, withheld, "`sluice-expose` is `false`.", nothing},
		{NAT, []string{"interface", "host"}, withheld, "A NAT row of the router translates the subnet or address, so others should not send to it.", "Nothing, or set `evpn.nat: announce` to expose it anyway."},
		{NATPending, iface, withheld, "The Northbound database has not sent the NAT rows yet.", "Wait. If it stays, see the component `nb`."},
		{NATUnknown, annotated, warning, "This node does not follow the Northbound database, or it has not answered since the start and no saved rows are usable: NAT rows are unknown. Subnets are exposed anyway, or withheld with `evpn.natUnknown: hold`.", "Set `ovn.nb` to a read-only session; see the component `nb`."},
		{SNATSource, gateway, withheld, "The port's own address may be the source of translated packets, and Sluice does not serve the router's default next hop. The address is not exposed.", "Nothing, if nobody has to reach the router itself. Otherwise let Sluice serve the next hop (`sluice-next-hops`)."},
		{Standby, gateway, fine, "The port is bound to another chassis and may fail over to this one. Everything but its routes and announcements is programmed.", nothing},
		{OVNTable, gateway, broken, "The router's routing table on this node (`dynamic-routing-vrf-id`, or the tunnel key) has another owner: a VRF on the kernel path, another router, or the kernel. OVN would learn such a VRF's routes, and OVN's blackholes would hit the VRF. The router gets no imported routes (`evpn.learnedRoutes`).", "Give the router another `dynamic-routing-vrf-id` (OVN 25.03.2 and later) and name the VNI elsewhere. Or move the VRF to the eBPF path or to another VNI."},
		{LearnPorts, gateway, broken, "With `evpn.learnedRoutes: on` OVN would learn imported routes on another port of the router too, or on none. The router gets none.", "Set `dynamic-routing-port-name` on every port of the router. Map this port's name to `sluice-learned` in `external_ids:dynamic-routing-port-mapping` of the node's Open_vSwitch."},
		{NoSecret, []string{"setting"}, warning, "Sluice asks Nova for metadata without a shared secret, so Nova believes whoever reaches its metadata API.", "Write a secret to the file `metadata.nova.secretFile` on all nodes, and to `[neutron] metadata_proxy_shared_secret` in Nova."},
		{OldOVN, []string{"setting"}, warning, "The setting has no effect: it needs a newer OVN than the Southbound database's.", "Upgrade OVN, or remove the setting."},
		{LearnNextHop, gateway, broken, "With `evpn.learnedRoutes: on` Sluice serves no next hop for a family on the port's networks. The router gets no routes of that family.", "List a next hop in `sluice-next-hops` or `fabric.nextHops`."},
		{LeftOut, annotated, withheld, "OVN advertises routes through the port that the VRF leaves out. The error names them and the cause.", nothing},
		{PortDown, exposed, withheld, "The VM's port is bound to this chassis, and OVN has not programmed its flows yet (`Port_Binding.up`). Exposure without EVPN waits for that.", "Wait. If it stays, start the VM, or read ovn-controller's log."},
		{PortDisabled, exposed, withheld, "The VM's port is disabled in the Northbound database (`Logical_Switch_Port.enabled`): OVN drops its packets. Its addresses are not exposed without EVPN.", "Nothing, or enable the port."},
		{HostAddress, exposed, broken, "The node itself has the address. The address is not exposed, because OVN would get the node's packets.", "Remove the address from one of the two, or exclude it with `exposure.prefixes` or `sluice-expose`."},
		{InEVPN, exposed, withheld, "EVPN exposes the address behind the same gateway port, and packets from the address enter that VRF. The default VRF does not expose it too.", "Nothing, or remove the address from EVPN."},
		{NoNextHop, []string{"network"}, fine, "Addresses of the physical network are exposed without EVPN, and Sluice serves none of its next hops: packets enter through this node, and replies leave through the network's own gateway.", "Nothing, if that gateway leads into the underlay. Otherwise list the next hop in `fabric.nextHops`."},
		{NoDevice, []string{"underlay-device"}, broken, "Exposure without EVPN lacks a device of the underlay: no device has this name, or no route leads to this neighbour. Without any device nothing is announced. If other devices remain, packets enter by them, and the object is a warning.", "Correct `exposure.devices`; or give the node a route to a BGP neighbour, or name the devices there."},
		{BadNATAddresses, []string{"floating-ip"}, broken, "An element of `nat_addresses` of a router's port cannot be read. The other elements count.", "Correct `options:nat-addresses` of the Logical_Switch_Port."},
		{NoGatewayPort, []string{"floating-ip"}, broken, "The router has several gateway ports, none on a network with the external address, and the NAT row names none. OVN ignores the row, and Sluice does not expose the address.", "Set `gateway_port` of the NAT row in the Northbound database."},
		{NoLiveBackend, []string{"floating-ip"}, withheld, "Only VIPs have the address, and none of their backends is there and answers probes (Service_Monitor). The address is withdrawn, so clients may connect elsewhere. With `options:reject` or `options:event` it stays.", "See `sluicectl lb list`, and the backends."},
		{BalancersUnknown, []string{"node"}, warning, "With `loadBalancing.enabled`: this node has gateway ports, and does not follow the Northbound database, or gets no answer. The load balancers of the routers are unknown: `sluicectl lb list` lacks their VIPs, OVN balances them, and nobody announces them.", "Set `ovn.nb` to a read-only session; see the component `nb`."},
		{BadLoadBalancer, []string{"load-balancer"}, broken, "A VIP or an option of the row cannot be read. Other VIPs of the row are served. With a bad option of Sluice's, OVN balances all of them. A bad option of OVN's counts as in OVN; the error says how.", "Correct the row; the error names the key."},
		{SessionsEvicted, []string{"sessions"}, warning, "The map `sessions` or `flows` was full within two hours, and evicted the sessions of all tenants that were idle longest. Replies continue where the Maglev tables identify their VIP; others wait for the client's next packet (drop reason `session_evicted`).", "Find the VIP with many new sessions (`sluice_vip_sessions_total`), or raise `dataplane.sizes.sessionEntries`."},
		{Foreign, rows, broken, "An object without Sluice's mark is in the place: a device, a flow with the same match, a map.", "Remove the object, if nobody needs it, or adopt it from the agent that created it (`sluicectl adopt`). The error names it."},
		{Full, rows, broken, "The map has no room for another row, or the kernel has no memory.", "See `sluice_map_rows`; raise the size below `dataplane.sizes`."},
		{Permission, rows, broken, "The kernel refused the operation.", "Give sluiced the capabilities that the unit and the DaemonSet list."},
		{Failed, rows, broken, "The operation failed for another reason. sluiced retries it.", "Read the error; if it stays, read the log."},
		{MissingCapability, []string{"capability"}, warning, "sluiced lacks a capability (capabilities(7)), and part of it does nothing. Without CAP_NET_RAW sluiced learns no path MTU from ICMP: larger packets to a VTEP behind a smaller link are lost, unless `fabric.mtu` is small enough. It also finds no neighbour of `bgp.neighbors[].interface`. Components that cannot start report that themselves.", "Give sluiced the capability, as the unit and the DaemonSet do, and restart it. Or set `fabric.mtu` to an MTU that fits everywhere."},
		{Missing, []string{"bridge", "gateway"}, broken, "A provider bridge, OVN's patch port on it, or an answer of ovs-vswitchd has been missing for more than 5 seconds. The tenants behind the gateway port are cut: their routes are withdrawn until it is back. The error names bridge or port and VRF.", "Add the bridge again (`ovs-vsctl add-br`), or correct `ovn-bridge-mappings`. Without OVN's patch port, start ovn-controller. Check whether ovs-vswitchd runs."},
		{Waiting, listed, pending, "The row waits for something; the error names it.", "Wait. If it stays, look at what the row waits for."},
		{Withdrawn, listed, pending, "The node is being drained, and has withdrawn its routes.", "Run `sluicectl undrain` when the node may serve again."},
		{Drained, listed, pending, "The node is drained, and announces no route.", "Run `sluicectl undrain` when the node may serve again."},
		{Broken, listed, broken, "Nothing is announced, as the component `fabric` reports: `sluice-vxlan` or its program differs from what sluiced created.", "Remove what the error names."},
		{Overdue, []string{"table"}, warning, "Rows have waited for more than 30 seconds for a row of another table, a device, or an index of a VRF. The error has their number and one example. The warning clears within 10 seconds. Not counted: rows that wait for a bridge or port (`missing`) or for a component with a problem, rows of a drained node, and gateway ports on other chassis.", "Look at the problem of the object in the error. Without one, run `sluicectl explain` and read the log."},
		{Held, listed, pending, "No source asks for the row now. The row stays while a source is not in sync, or for its linger time.", "Wait. If it stays, see the components `sb` and `bgp`."},
		{NoVTEP, []string{"vtep", "route", "vrf"}, broken, "The node lacks its tunnel address: packets from other nodes do not arrive. Nothing is announced.", "Add the address again, or set its device up; the error names both. Then add the routes with it as preferred source (`src`): the kernel deleted them too, and BGP has no session without them. Sluice announces the address by itself."},
		{SameRouterID, []string{"vtep"}, broken, "Another node has this node's router ID. A route reflector takes the two for one, and their routes hide each other.", "Set `bgp.routerID` on one of them."},
		{RouteUnreachable, []string{"vtep"}, broken, "The node has no route to the VTEP: none at all, or an `unreachable`, `blackhole` or `prohibit` one; with `fabric.resolveViaDefault: false` only a default route. Other paths carry the packets; a route without another path is deleted from the map.", actOnUnreachable},
		{CutOff, []string{"vtep"}, broken, "The node has no route to any VTEP or BGP neighbour: the node itself is cut off from the fabric. Routes of VRFs stay until their BGP sessions' time ends (the neighbours' restart time, or `bgp.peerLinger`). BGP restores them when the node's route is back.", "Check the node's links and routes (`ip route get NEIGHBOUR`). Begin with `no-vtep`, if it is reported too. Deleting an address also deletes the routes with it as preferred source (`src`); adding the address does not restore them."},
		{PathMTU, []string{"vtep", "device"}, warning, "The path MTU of the VTEP, or of all VTEPs behind the device, is below the underlay's MTU: by ICMP of a router, or by the MTU of the route or the device. Sluice uses the path MTU in replies to senders (fragmentation needed, packet too big), or fragments packets (`fabric.df`).", "Raise the MTU of the narrow link: every link of the underlay needs the nodes' MTU. A learned MTU expires after ten minutes; `ip route flush cache` deletes it at once. Restart sluiced if the device's new MTU is the underlay's."},
		{DeviceDrops, []string{"device"}, warning, "The kernel drops packets on a device of the path to the fabric: sluice-vxlan, a `sluice<N>`, or a device of the underlay. The error names the rising counters (`sluice_device_dropped_packets_total`), and VTEPs without a route or with a small path MTU. The warning clears a minute after the last drop.", "sluice-vxlan, rx errors: find who sends VXLAN with unsupported header bits (group policy, generic protocol extension), and switch them off there. sluice-vxlan, tx: see the objects of VTEPs, and `ip route get VTEP`. Other devices: run `ethtool -S`."},
		{SameVTEP, []string{"vtep"}, broken, "Another node, for example a clone, has this node's VTEP: packets for one reach the other. Two other nodes with one VTEP are a warning. The error names both by router ID and router MAC.", "Give one of them its own address, or another `fabric.vtep`."},
		{VNICollision, []string{"vni"}, warning, "Ports in OVN or routes in BGP use the VNI with disjoint route targets: two tenants may have one VNI. Forwarding is unchanged.", "Give one of them another VNI. If they are one tenant, give them a common route target."},
		{TargetShared, []string{"route-target"}, warning, "A VNI imports a route target that another VNI exports or imports, and this node's configuration names it for neither: two tenants may be joined. Forwarding is unchanged.", "Give one of them other route targets. If intended, name the route target in `evpn.vrfs.VNI.import` or `export` of one of them."},
		{RDShared, []string{"route-distinguisher"}, warning, "Routes of several nodes have one route distinguisher. A route reflector passes on one of two routes to a prefix, so paths are missing.", "Give each node, and each border gateway, route distinguishers of its own, for example by its router ID."},
		{RouteMaxPrefixes, []string{"vrf"}, broken, "The VRF has imported as many prefixes as its `maxPrefixes`. The first ones stay; others are left out.", "Find out who announces so many (`sluicectl bgp routes`). Raise `evpn.vrfs.VNI.maxPrefixes` if they are wanted."},
		{Unreadable, []string{"neighbor"}, warning, "Sluice ignored UPDATEs of the neighbour with unreadable routes (RFC 7606). The neighbour's routes may differ from those shown.", "Find out what the neighbour sends. Then run `clear bgp` at the neighbour, or restart it."},
		{NotOffered, []string{"neighbor"}, warning, "The session is up without a configured address family. No route of that family is exchanged.", "Enable the address family at the neighbour (FRR: `neighbor … activate` below `address-family …`), or remove it from `bgp.neighbors[].families`."},
		{PrefixLimit, []string{"neighbor"}, broken, "The neighbour sent more routes than its `maxPrefixes`, which ended the session. sluiced retries after a while.", "Raise `bgp.neighbors[].maxPrefixes`, or make the neighbour send fewer."},
		{PinsLost, []string{"pins"}, broken, "The pins' bpffs was unmounted or mounted over, or pins were removed, and sluiced cannot restore them. Forwarding and announcements continue, but a restart would begin without pins.", "Mount a bpffs where the error says (`mount -t bpf bpf /sys/fs/bpf`), or remove what blocks the pin. sluiced pins again at once, without a restart."},
		{PathDiffers, []string{"kernel-route"}, broken, "The kernel would forward packets to the destination differently from the eBPF path; the error has the actual and the wanted result. Every 10 seconds sluiced checks a part of the routes and restores them; the next check clears the error.", "If it stays, look for rules (`ip rule`), foreign routes in the VRF's table (`ip route show vrf vrf-VNI`), and a destination of the VRF that is an address of the node."},
		{HashPolicy, []string{"sysctl"}, warning, "A VRF on the kernel path has routes with several next hops, and the kernel ignores ports in its choice: all connections between two VMs take one path. The eBPF path spreads them. sluiced checks every 10 seconds.", "Set the named sysctl to 1; it applies to the whole node, so Sluice does not."},
		{BFDDown, []string{"neighbor"}, warning, "BFD with the neighbour was up and is down, or something on this node blocks BFD.", "See the error and `sluicectl bgp neighbors`. An address in use means another BFD daemon; TTL means a neighbour further away than configured."},
	}, append(Refusing(), metadataObjects()...)...)
}
