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
	rows := []string{"bridge", "vrf", "gateway", "next-hop", "vtep", "route", "flow", "policy", "announcement", "learned-route", "kernel-vrf", "kernel-gateway", "kernel-route", "metadata-network", "metadata-port"}
	return append([]Entry{
		{BadVNI, annotated, broken, "`neutron_bgpvpn:vni` is no VNI.", "Write a number from 1 to 16777215."},
		{BadAS, annotated, broken, "`neutron_bgpvpn:as` is no AS number.", "Write a number from 1 to 4294967295, or remove the key."},
		{BadRouteTarget, annotated, broken, "One of `neutron_bgpvpn:rt`, `it` and `et` is no list of route targets.", "Write targets such as `64512:1001`, separated by commas."},
		{UnsupportedType, annotated, broken, "`neutron_bgpvpn:type` is another than `l3`.", "Write `l3`, or remove the key: other types cannot be carried as Type-5 routes."},
		{BadAnnounce, ports, broken, "`sluice-announce` is none of `hosts`, `subnets` and `both`. The object is not exposed.", "Correct it, or remove the key."},
		{BadExpose, ports, broken, "`sluice-expose` is neither `true` nor `false`. The object is not exposed.", "Correct it, or remove the key."},
		{BadMAC, append(slices.Clone(ports), "network"), broken, "The column `mac` of the row is empty, or an element of it is no MAC with addresses. What can be read of it counts.", "Correct the port's addresses in the Northbound database."},
		{BadCIDRs, []string{"host", "port", "network"}, broken, "`neutron:cidrs` of the port, or of a network's metadata port, is no list of addresses.", "Correct it where it is written: Neutron."},
		{BadNextHop, []string{"gateway", "port"}, broken, "`sluice-next-hops` has a value that is no address, is the port's own, or is on no network of the port. The others are served.", "List addresses of the port's networks that the router has routes to."},
		{BadMTU, []string{"gateway", "network"}, broken, "`gateway_mtu`, or `neutron:mtu` of a metadata port, is no MTU. It counts as not set.", "Write a number from 68 to 65535, or remove the key."},
		{BadVLAN, exposed, broken, "The tag of the localnet port is no VLAN.", "Set a tag from 1 to 4094, or none."},
		{BadPath, gateway, broken, "`sluice-path` is none of `auto`, `ebpf` and `kernel`. It counts as not set.", "Correct it, or remove the key."},
		{PathConflict, gateway, broken, "Another gateway port of the VRF names another path with `sluice-path`, and was first; or the configuration has `path: kernel` for the whole node.", "Name the same path on both, or on one alone; with `path: kernel`, none or `kernel`."},
		{NoLocalnet, gateway, broken, "The gateway port's switch has no localnet port, so no bridge of this node carries it.", "Attach the router to a provider network."},
		{NoBridgeMapping, exposed, broken, "The physical network of the localnet port is not among this node's `ovn-bridge-mappings`.", "Add it there, or keep the gateway from being scheduled on this node."},
		{VNIMismatch, iface, broken, "The interface names another VNI than the gateway ports of its router here.", "Write one VNI on both; `neutron_bgpvpn:vni`."},
		{OtherVNI, annotated, warning, "Another place names another VNI for the port, or cannot be read. The one that comes first counts; `external-ids.md` has the order.", "Write the same in both, or remove one."},
		{NoGateway, iface, withheld, "No gateway port of the router on this node has a usable VNI.", "Nothing, if the gateway is on another node; else see the errors of the gateway port, or write the VNI there."},
		{DuplicateGateway, gateway, broken, "Another gateway port has the same MAC on the same bridge and VLAN.", "Give one of them another MAC."},
		{DuplicateAddress, []string{"gateway", "host", "port", "floating-ip", "load-balancer"}, broken, "Another port of the VRF has the same address and keeps it. For metadata: another port here on the network has the same, and in a namespace the two cannot be told apart; requests from there are answered with 404.", "Change or remove one of the two."},
		{OverlapElsewhere, iface, warning, "A router on another node has the same VNI and a network that overlaps this subnet, and BGP has a route to or into the subnet: two tenants may have one VNI. In the fabric the two are one: packets for either may reach the other. Nothing is withdrawn.", "Give the tenants VNIs of their own, or renumber one subnet. Nothing, if both routers lead into one network on purpose."},
		{Overlap, append(slices.Clone(annotated), "load-balancer"), broken, "A subnet, or the port's own address, overlaps a subnet of the VRF that was taken before.", "Give the tenants VNIs of their own, or renumber one subnet."},
		{VRFConflict, gateway, broken, "Another gateway port with the VNI names another AS or other route targets; it keeps the VNI.", "Write the same on both, or give one another VNI."},
		{VRFLimit, vrf, broken, "The node has as many VRFs as `evpn.maxVRFs` allows.", "Raise it (`dataplane.sizes.vrfs` too), or move gateways to other nodes."},
		{NoIndex, vrf, broken, "No index is left for the VRF's route distinguisher: all 65535 are taken.", "Move gateways to other nodes."},
		{NotKept, []string{"node"}, broken, "The indices of VRFs cannot be written to the state directory. After a loss of the maps, route distinguishers may change.", "Make the directory writable; see the error for the file."},
		{NotRead, []string{"node"}, warning, "The file with the indices of VRFs was damaged when sluiced started, and was set aside. VRFs that the pinned maps did not show were numbered anew: their route distinguishers are others than before.", "Nothing: the next start does not say it again. Find out what wrote into the state directory."},
		{ProviderNetwork, iface, withheld, "The interface is on a provider network: its switch has a localnet port, and its hosts are reached there. It is not exposed.", "Nothing; or `sluice-expose=true` on the interface, to expose it all the same."},
		{OptedOut, ports, withheld, "`sluice-expose` is `false`.", nothing},
		{NAT, []string{"interface", "host"}, withheld, "A NAT row of the router translates the subnet or address, so it is not what others should send to.", "Nothing, or `evpn.nat: announce` to expose it all the same."},
		{NATPending, iface, withheld, "The Northbound database has not said yet which addresses are translated.", "Nothing; if it stays, see the component `nb`."},
		{NATUnknown, annotated, warning, "This node does not follow the Northbound database, or waits for it in vain, so NAT rows cannot be seen. Subnets are exposed all the same, or held back with `evpn.natUnknown: hold`.", "Set `ovn.nb` to a read-only session; see the component `nb`."},
		{SNATSource, gateway, withheld, "The port's own address may be the source of translated packets, and Sluice does not serve the router's default next hop: the address is not exposed.", "Nothing, if nobody has to reach the router itself; else have Sluice serve the next hop (`sluice-next-hops`)."},
		{Standby, gateway, fine, "The port is bound to another chassis and may come to this one. All but its routes and announcements is programmed.", nothing},
		{OVNTable, gateway, broken, "ovn-controller reads and writes a routing table of this node for the router, by its `dynamic-routing-vrf-id` or its tunnel key, that belongs to somebody else: a VRF on the kernel path, whose routes OVN would learn and which its blackholes would hit, another router, or the kernel. No imported routes are given to the router (`evpn.learnedRoutes`).", "Give the router another `dynamic-routing-vrf-id` (OVN 25.03.2 and later) and name the VNI elsewhere, or put the VRF on the eBPF path or under another VNI."},
		{LearnPorts, gateway, broken, "With `evpn.learnedRoutes: on` imported routes would get into OVN by another port of the router as well, or by none. None are given to it.", "See the error: `dynamic-routing-port-name` on every port of the router, and `external_ids:dynamic-routing-port-mapping` of Open_vSwitch on the node with `sluice-learned` for this one's name."},
		{NoSecret, []string{"setting"}, warning, "Nova is asked for metadata without a shared secret, so it believes whoever reaches its metadata API.", "Write a secret to the file `metadata.nova.secretFile` on all nodes, and as `[neutron] metadata_proxy_shared_secret` in Nova."},
		{OldOVN, []string{"setting"}, warning, "The setting needs a newer OVN than the one whose Southbound database is followed, and has no effect.", "Upgrade OVN, or take the setting out."},
		{LearnNextHop, gateway, broken, "With `evpn.learnedRoutes: on` imported routes of a family have no next hop on the port's networks that Sluice serves. They are not given to the router.", "List a next hop: `sluice-next-hops` or `fabric.nextHops`."},
		{LeftOut, annotated, withheld, "OVN advertises routes by way of the port that the VRF does not take; the error says which and why.", nothing},
		{PortDown, exposed, withheld, "The port of the VM is bound to this chassis, and OVN has not made its flows yet (`Port_Binding.up`). Its addresses are exposed without EVPN once it has.", "If it stays so: start the VM, or look into ovn-controller's log."},
		{PortDisabled, exposed, withheld, "The port of the VM is disabled in the Northbound database (`Logical_Switch_Port.enabled`), so OVN drops its packets. Its addresses are not exposed without EVPN.", "Nothing; or enable the port."},
		{HostAddress, exposed, broken, "The address is one of the node's own: packets for the node would go to OVN, so it is not exposed.", "Take the address off one of the two, or leave it out with `exposure.prefixes` or `sluice-expose`."},
		{InEVPN, exposed, withheld, "EVPN exposes the address behind the same gateway port, and packets from it go into that VRF. It is not exposed in the default VRF too.", "Nothing, or take it out of EVPN."},
		{NoNextHop, []string{"network"}, fine, "Addresses of the physical network are exposed without EVPN, and Sluice serves none of its next hops: packets for them come in by this node, what they answer leaves by the network's own gateway.", "Nothing, if that gateway leads into the underlay; else list the next hop in `fabric.nextHops`."},
		{NoDevice, []string{"underlay-device"}, broken, "Exposure without EVPN lacks a device of the underlay: there is none of this name, or no way to this neighbour. While there is none at all nothing is announced without EVPN; else packets come in by the others, and the object is a warning.", "Correct `exposure.devices`; or give the node a route to a BGP neighbour, or name the devices there."},
		{BadNATAddresses, []string{"floating-ip"}, broken, "An element of `nat_addresses` of a router's port cannot be read. The others count.", "Correct `options:nat-addresses` of the Logical_Switch_Port."},
		{NoGatewayPort, []string{"floating-ip"}, broken, "The router has several gateway ports, the external address is on no network of one, and the NAT row names none: OVN leaves the row out, and Sluice does not expose the address.", "Set `gateway_port` of the NAT row in the Northbound database."},
		{NoLiveBackend, []string{"floating-ip"}, withheld, "The address is one of VIPs alone, and no backend of any of them is there and answers probes (Service_Monitor). It is not exposed, so that clients may go elsewhere; with `options:reject` or `options:event` it stays.", "See `sluicectl lb list`, and the backends."},
		{BalancersUnknown, []string{"node"}, warning, "With `loadBalancing.enabled`: this node has gateway ports, and does not follow the Northbound database, or waits for it in vain. Which load balancers hang on their routers is not known: `sluicectl lb list` lacks their VIPs, which OVN balances and nobody announces.", "Set `ovn.nb` to a read-only session; see the component `nb`."},
		{BadLoadBalancer, []string{"load-balancer"}, broken, "A VIP of the row, or one of its options, cannot be read. The row's other VIPs are served. With a bad option of Sluice's OVN balances all of them; one of OVN's counts as it does in OVN, which the error says.", "Correct the row; the error names the key."},
		{SessionsEvicted, []string{"sessions"}, warning, "The map of sessions, or of flows, was full within two hours: connections to VIPs that were idle for longest were forgotten, of all tenants. Answers go on where the Maglev tables tell their VIP; others wait for the client's next packet (drop reason `session_evicted`).", "Find the VIP with many new flows (`sluice_vip_flows_total`), or raise `dataplane.sizes.flows`."},
		{Foreign, rows, broken, "Something that does not carry Sluice's mark is in the place: a device, a flow with the very match, a map.", "Remove it, if nobody needs it, or take it over from the agent that made it (`sluicectl adopt`); the error names it."},
		{Full, rows, broken, "The map has no place for another row, or the kernel no memory.", "See `sluice_map_rows`; raise the size below `dataplane.sizes`."},
		{Permission, rows, broken, "The kernel refused it.", "Give sluiced the capabilities that the unit and the DaemonSet list."},
		{Failed, rows, broken, "It failed in another way, and is tried again.", "See the error; if it stays, the log."},
		{MissingCapability, []string{"capability"}, warning, "sluiced goes on without a capability (capabilities(7)), and a part of it does nothing. Without CAP_NET_RAW: a path MTU is not learned from ICMP, so larger packets to a VTEP behind a smaller link are lost, unless `fabric.mtu` says what fits; and no neighbour of `bgp.neighbors[].interface` is found. What does not start without a capability is told by its component.", "Give sluiced the capability, as the unit and the DaemonSet do, and restart it; or set `fabric.mtu` to what fits everywhere."},
		{Missing, []string{"bridge", "gateway"}, broken, "A provider bridge, OVN's patch port on it, or what ovs-vswitchd is asked for has been missing for more than 5 seconds, and the tenants behind the gateway port are cut: their routes are withdrawn. The error names bridge or port and VRF. It goes when the thing is back.", "Make the bridge again (`ovs-vsctl add-br`), or correct `ovn-bridge-mappings`; without OVN's patch port, start ovn-controller; see whether ovs-vswitchd runs."},
		{Waiting, []string{"route", "vrf"}, pending, "In `sluicectl route list` and `vrf list` only: something that the row needs is not in place yet; the error names it.", "Nothing, unless it stays: then see what it waits for."},
		{Withdrawn, []string{"route", "vrf"}, pending, "In `sluicectl route list` and `vrf list` only: the node is being drained, and has withdrawn its routes.", "`sluicectl undrain` puts the node back."},
		{Drained, []string{"route", "vrf"}, pending, "In `sluicectl route list` and `vrf list` only: the node is drained, and announces no route.", "`sluicectl undrain` puts the node back."},
		{Broken, []string{"route", "vrf"}, broken, "In `sluicectl route list` and `vrf list` only: `sluice-vxlan` or its program is not as it was made, and nothing is announced. The component `fabric` tells the same.", "Remove what the error names."},
		{Overdue, []string{"table"}, warning, "Rows of the table have waited for more than 30 seconds for something that is not there: a row of another table, a device, an index of a VRF. The error has their number, and what one of them waits for. It goes up to 10 seconds after the last. Waits for a missing bridge or port are `missing`; nothing is said while a component tells what is waited for, of a drained node, and of gateway ports on other chassis.", "Look at what the error names: its own problem, if there is one, else `sluicectl explain` and the log."},
		{Held, []string{"route", "vrf"}, pending, "In `sluicectl route list` and `vrf list` only: nothing asks for the row now; it is kept while a source is not in sync, or for a while.", "Nothing, unless it stays: then see the components `sb` and `bgp`."},
		{NoVTEP, []string{"vtep", "route", "vrf"}, broken, "The node does not have its tunnel address, so that nothing that others send arrives. Nothing is announced.", "Add the address again, or set its device up: the error names both. Then add the routes that had it as preferred source (`src`): the kernel has removed them with the address, and BGP stays without a session until they are there. The address is announced again by itself."},
		{SameRouterID, []string{"vtep"}, broken, "Another node has this node's router ID, so a route reflector takes them for one and their routes hide each other.", "Set `bgp.routerID` on one of them."},
		{RouteUnreachable, []string{"vtep"}, broken, "The node has no route to the VTEP: none at all, or an `unreachable`, `blackhole` or `prohibit` one; with `fabric.resolveViaDefault: false` none but a default route. Its paths are not used: others carry the packets, and a route without another path is withdrawn from the map.", actOnUnreachable},
		{CutOff, []string{"vtep"}, broken, "The node has no route to any VTEP, and none to a BGP neighbour: it is cut off from the fabric itself. The routes of VRFs stay as they are, until the time of their BGP sessions is over (`bgp.gracefulRestart`, `bgp.vtepLinger`); BGP brings them again when the node's route is back.", "Look at the node's links and routes (`ip route get NEIGHBOUR`). With `no-vtep` beside it begin there. An address that was deleted took the routes along that had it as preferred source (`src`), and they do not come back with it."},
		{PathMTU, []string{"vtep", "device"}, warning, "Outer packets to the VTEP, or all that leave by the device, have to be smaller than the underlay's MTU: the kernel was told by a router on the way (ICMP), or the route or the device has a smaller MTU. Sluice takes that MTU for the VTEP, in answers to senders (fragmentation needed, packet too big) or in what it has fragmented (`fabric.df`).", "Mend the MTU where it shrinks: every link of the underlay needs that of the nodes. What the kernel has learned it forgets after ten minutes, `ip route flush cache` at once. Restart sluiced when the device's MTU is meant to be the underlay's from now on."},
		{DeviceDrops, []string{"device"}, warning, "The kernel counts packets that it did not deliver on a device of the way to the fabric: sluice-vxlan, a `sluice<N>`, or a device of the underlay. The error has which counts rise, and what is known of the paths of VTEPs; `sluice_device_dropped_packets_total` has the counts. It goes a minute after the last.", "sluice-vxlan, rx errors: somebody sends VXLAN with header bits that the kernel does not know (group policy, generic protocol extension): switch them off there; tx: see the objects of VTEPs, and `ip route get VTEP`. Other devices: `ethtool -S`."},
		{SameVTEP, []string{"vtep"}, broken, "Another node has this node's VTEP, as a cloned one has: packets for one of them reach the other. A warning where two other nodes have one. The error names both by router ID and router MAC.", "Give one of them an address of its own, or another `fabric.vtep`."},
		{VNICollision, []string{"vni"}, warning, "Ports in OVN or routes in BGP use the VNI with route targets that have nothing in common: two tenants may have one VNI. Nothing is taken down.", "Give one of them another VNI; or, if they are one tenant, a route target in common."},
		{TargetShared, []string{"route-target"}, warning, "A VNI imports a route target that another VNI exports or imports, and this node's configuration names it for neither: two tenants may be joined. Nothing is taken down.", "Give one of them other route targets; or, if it is meant, name the route target in `evpn.vrfs.VNI.import` or `export` of one of the two."},
		{RDShared, []string{"route-distinguisher"}, warning, "Routes of several nodes have one route distinguisher: of two for one prefix a route reflector passes on one, so paths are missing.", "Have each node, and each border gateway, use route distinguishers of its own, as with its router ID."},
		{RouteMaxPrefixes, []string{"vrf"}, broken, "The VRF has imported as many prefixes as its `maxPrefixes`; those that came first stay, others are left out.", "Find out who announces so many (`sluicectl bgp routes`); raise `evpn.vrfs.VNI.maxPrefixes` if they are wanted."},
		{Unreadable, []string{"neighbor"}, warning, "Routes in UPDATEs of the neighbour could not be read, and the UPDATEs were ignored (RFC 7606): its routes may be others than are shown.", "Find out what the neighbour sends; `clear bgp` at the neighbour, or a restart of it, makes the two agree again."},
		{NotOffered, []string{"neighbor"}, warning, "The session is up without an address family that it is to have, so no route of that family goes to the neighbour or comes from it.", "Switch the address family on at the neighbour (FRR: `neighbor … activate` below `address-family …`), or take it out of `bgp.neighbors[].families`."},
		{PrefixLimit, []string{"neighbor"}, broken, "The neighbour sent more routes than its `maxPrefixes`, which ended the session. It is tried again after a while.", "Raise `bgp.neighbors[].maxPrefixes`, or have the neighbour send fewer."},
		{PinsLost, []string{"pins"}, broken, "Pins cannot be made again after their bpffs was unmounted, another file system was mounted over it, or pins were removed. Forwarding and announcements go on, but a restart would begin without them.", "Mount a bpffs where the error says (`mount -t bpf bpf /sys/fs/bpf`), or remove what is in the way of the pin that it names: the pins are made again at once, without a restart."},
		{PathDiffers, []string{"kernel-route"}, broken, "The kernel would not do with packets for the destination what the eBPF path does: the error says what, and what is wanted. Looked at every 10 seconds, a part of the routes at a time. What is missing or changed is made again, and the report goes with the next look.", "If it stays: look for rules (`ip rule`), routes of others in the VRF's table (`ip route show vrf vrf-VNI`), and an address of the node that is a destination of the VRF."},
		{HashPolicy, []string{"sysctl"}, warning, "A VRF on the kernel path has routes with several next hops, and the kernel does not look at ports when it chooses one: all connections between two VMs go one way. On the eBPF path they do not. Looked at every 10 seconds.", "Set the named sysctl to 1: it holds for the whole node, so Sluice does not."},
		{BFDDown, []string{"neighbor"}, warning, "BFD was up with the neighbour and is not any more, or something on this node is in its way.", "See the error and `sluicectl bgp neighbors`; an address in use is another BFD daemon's; TTL is a neighbour further away than configured."},
	}, metadataObjects()...)
}
