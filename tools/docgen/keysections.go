package main

const keysIntro = `# What Sluice reads from OVN, key by key

Tenants are not in Sluice's configuration: they are in ` + "`external_ids`" + ` of OVN rows. ovn-northd copies those of
Northbound ports to ` + "`Port_Binding`" + `, where every node's Sluice reads them; nothing has to be told to a node.

A router is exposed through two kinds of switch port, both of type ` + "`router`" + `:

- the **gateway port**: the Logical_Switch_Port on the provider switch whose ` + "`router-port`" + ` is the router's gateway port.
  It makes the VRF, on the node that the gateway port is bound to;
- the **interface**: the Logical_Switch_Port on a tenant's switch whose ` + "`router-port`" + ` is an interface of the same router.
  Its subnets are exposed. It has to carry the same VNI as the gateway port; another one is an error of the
  interface, with the reason ` + "`vni-mismatch`" + `, and an interface without one is not exposed.

Port by port, the VNI is what the first of these places says; one that is written in several places is best written the
same:

| # | place | where it is seen | what it names |
| --- | --- | --- | --- |
| 1 | ` + "`neutron_bgpvpn:vni`" + ` of the Logical_Switch_Port | Southbound | gateway port, interface |
| 2 | ` + "`vni`" + ` of the Logical_Router_Port | Southbound | gateway port, interface |
| 3 | ` + "`neutron_bgpvpn:vni`" + ` of the Logical_Switch that the port is on | Northbound (` + "`ovn.nb`" + `) | gateway port, interface |
| 4 | ` + "`vni`" + ` of the port that Neutron's EVPN service adds to the router: a gateway port on no provider network | Southbound | gateway ports of the router |
| 5 | ` + "`dynamic-routing-vrf-name`" + ` of the Logical_Router, if it is ` + "`vrf-VNI` or `evpnvrf-VNI`" + ` | Southbound from OVN 25.03 on, else Northbound | gateway ports of the router |
| 6 | ` + "`dynamic-routing-vrf-id`" + ` of the Logical_Router, with ` + "`evpn.dynamicRouting: on`" + ` | Southbound from OVN 25.03.2 on, else Northbound | gateway ports of the router |

A later place that names another VNI, or cannot be read, is a warning of the port, ` + "`other-vni`" + `. ` + "`sluicectl explain`" + ` names the
place that counts. The AS and the route targets are those beside the VNI, if there are any; else those of the
Logical_Switch_Port, else those of the Logical_Switch, unless it names another VNI or another type than ` + "`l3`" + `.

With ` + "`evpn.dynamicRouting: on`" + ` what OVN advertises of a router is exposed too (Southbound table Advertised_Route, OVN 25.03 and
later; ` + "`dynamic-routing` and `dynamic-routing-redistribute`" + ` ask for it): a subnet as a subnet, a single address as a host,
behind the gateway port whose VNI the interface names, or the router's only VNI. Of routes on a gateway port itself only
load balancers' addresses outside the provider network count; the others are ` + "`left-out`" + `.

Not read: ` + "`neutron_bgpvpn:rd`" + `, since each node has route distinguishers of its own, so that routes of several nodes for one
prefix stay apart; and ` + "`vlan`" + ` beside ` + "`vni`" + `, which is a VLAN inside the bridge of Neutron's own agent. The VLAN of a
provider network is the ` + "`tag`" + ` of its localnet port.

A value that cannot be read is an error of that one object, in ` + "`sluicectl status`" + `, metric and log; all else goes on.
`

// key is a row of the page.
type key struct{ name, where, values, without, does, writer string }

type keySection struct {
	title, text string
	keys        []key
}

const (
	balancer        = "Load_Balancer"
	bothPorts       = "Logical_Switch_Port of the gateway port and of the interfaces"
	gatewayPort     = "Logical_Switch_Port of the gateway port"
	gatewayOrSwitch = gatewayPort + ", or its Logical_Switch"
	you             = "you"
	northd          = "ovn-northd"
	local           = "Open_vSwitch of the node"
	ownPort         = "Port of the local Open vSwitch"
	setup           = "whoever installs OVN on the node"
	targets         = "a list of route targets: `64512:1001,64512:7` or `['64512:1001']`"
)

var keySections = []keySection{
	{"Which tenants, and how", "In `external_ids`, but for options, which say so. The first ones are the vocabulary of ovn-bgp-agent's EVPN driver. Nothing in Neutron writes them: networking-bgpvpn has no driver for OVN.", []key{
		{"neutron_bgpvpn:vni", bothPorts + ", or their Logical_Switch", "1 to 16777215, decimal", "the next place counts", "Names the VRF. Gateway ports with one VNI, of several routers too, are one VRF, if they name the same AS and route targets: else the later one is an error, `vrf-conflict`.", you},
		{"neutron_bgpvpn:as", gatewayOrSwitch, "1 to 4294967295", "`bgp.asn`", "The AS number in the automatic route target, (AS & 0xFFFF):VNI. It is not the AS of the BGP session.", you},
		{"neutron_bgpvpn:rt", gatewayOrSwitch, targets, "see the next two", "Route targets to import and to export.", you},
		{"neutron_bgpvpn:it", gatewayOrSwitch, targets, "with no `rt` either: the VNI as the number, of any AS", "Route targets to import, besides those of `rt`. `evpn.vrfs` of the configuration goes before.", you},
		{"neutron_bgpvpn:et", gatewayOrSwitch, targets, "with no `rt` either: the automatic one", "Route targets to export, besides those of `rt`. `evpn.vrfs` of the configuration goes before.", you},
		{"neutron_bgpvpn:type", bothPorts + ", or their Logical_Switch", "`l3`", "`l3`", "Any other value is an error: only EVPN Type-5 routes are spoken.", you},
		{"vni", "Logical_Router_Port of the gateway port and of the interfaces", "1 to 16777215, decimal", "the next place counts", "Names the VRF, as `neutron_bgpvpn:vni` does.", "Neutron's EVPN service, or you"},
		{"dynamic-routing-vrf-name", "Logical_Router, `options`", "a device: `vrf-1001`, `evpnvrf-1001`", "the next place counts", "Names the VRF by the number at its end; any other name says nothing.", "the cloud, or you"},
		{"dynamic-routing-vrf-id", "Logical_Router, `options`", "a routing table, 1 to 16777215", "the port is not exposed", "Names the VRF, with `evpn.dynamicRouting: on`; without, it is only compared with the name.", "Neutron's EVPN service, or you"},
		{"dynamic-routing", "Logical_Router, `options`; OVN 25.03 and later", "`true`, `false`", "`false`", "OVN advertises routes of the router, and learns into it from a routing table: `dynamic-routing-vrf-id`, or the tunnel key of the router. That must not be the table of a VRF on the kernel path, which prefers the VNI as its number: `ovn-table`. What a VRF imports is put there with `evpn.learnedRoutes: on`; [learned-routes.md](../learned-routes.md) says how.", "the cloud, or you"},
		{"dynamic-routing-port-name", "Logical_Router_Port, `options`; OVN 25.03 and later", "a name", "the port learns by any device", "The port learns only routes through the device that the name stands for on the node. Several ports of one router on a node need it with `evpn.learnedRoutes: on`: `learn-ports`.", "the cloud, or you"},
		{"dynamic-routing-no-learning", "Logical_Router or Logical_Router_Port, `options`; OVN 26.03 and later", "`true`, `false`", "`false`", "The port learns nothing, and Sluice puts nothing into its router's table for it.", "the cloud, or you"},
		{"dynamic-routing-port-mapping", local, "`NAME=DEVICE,…`", "no name stands for a device", "What `dynamic-routing-port-name` means on the node. `sluice-learned` is the device of what Sluice gives.", setup},
		{"sluice-expose", bothPorts + ", their Logical_Router_Ports, and Logical_Switch_Ports of VMs", "`true`, `false`", "`true`", "`false` takes the object out, of EVPN and of what is exposed without it (`exposure`), a gateway port with the floating IPs behind it. The address of a VM that is taken out of an exposed subnet is blocked. `true` on an interface exposes it also where its switch has a localnet port: on a provider network it is `provider-network` otherwise.", you},
		{"sluice-announce", bothPorts + ", their Logical_Router_Ports, and Logical_Switch_Ports of VMs", "`hosts`, `subnets`, `both`", "`evpn.announce`", "What BGP says of an exposed subnet. The nearest counts: the VM's port, then the interface, then the gateway port; on each the switch's side first. All of a subnet is forwarded in any case.", you},
		{"sluice-next-hops", "Logical_Router_Port of the gateway port; Logical_Switch_Port of a VM on a provider network, with `exposure`", "addresses, separated by commas or blanks", "`fabric.nextHops`", "Next hops of the router's routes that Sluice answers ARP and ND for. Each has to be on a network of the port.", you},
		{"sluice-path", gatewayPort + ", or its Logical_Router_Port", "`auto`, `ebpf`, `kernel`", "`path`", "What carries the VRF's packets. The first gateway port of the VRF that names a path counts. `evpn.vrfs.<VNI>.path` of the configuration goes before, and `path: kernel`, which is for the whole node.", you},
		{"neutron:cidrs", "Logical_Switch_Port of a VM", "addresses with prefix length, separated by blanks", "the port has no address", "The addresses of a port whose `addresses` are `unknown`, as with port security off; and for metadata, of a network's metadata port.", "Neutron"},
	}},
	{"What the node is", "In `external_ids`, as ovn-controller reads them: `KEY-SYSTEMID` goes before `KEY`.", []key{
		{"system-id", local, "text", "nothing starts", "The chassis name. `ovn.systemID` goes before.", setup},
		{"ovn-remote", local, "`tcp:`, `ssl:` or `unix:` endpoints, separated by commas", "nothing starts", "The Southbound database. `ovn.sb` goes before.", setup},
		{"ovn-encap-ip", local, "an address, or several: the first counts", "`fabric.vtep`, or the global address on lo", "The VTEP, if neither the configuration nor lo has one.", setup},
		{"ovn-bridge-mappings", local, "`NETWORK:BRIDGE,…`", "gateway ports are errors: `no-bridge-mapping`", "Which provider bridge a gateway port's localnet is on.", setup},
		{"ovn-bridge", local, "a bridge", "`br-int`", "The integration bridge.", setup},
		{"ovn-cms-options", local, "a list with `enable-chassis-as-gw`", "a gateway port that is, or may come, here makes the node a gateway", "Makes the node a gateway node from the start.", setup},
	}},
	{"What OVN itself says", "Nothing to set for Sluice here, but for the MTU: how rows hang together.", []key{
		{"gateway_mtu", "Logical_Router_Port of the gateway port, `options`", "68 to 65535", "the MTU of the veth pair", "The largest packet that goes to the router.", "Neutron, or you"},
		{"network_name", "Logical_Switch_Port of type localnet, `options`", "a physical network", "`no-bridge-mapping`", "Looked up in `ovn-bridge-mappings`.", "Neutron, or you"},
		{"router", "DHCP_Options of the Logical_Switch_Port of a VM on a provider network, `options`", "an address of IPv4", "the next hops of static routes alone", "The VM's default gateway: with `exposure` and `ovn.nb` Sluice answers for it where nobody else can; `exposure.md` says when.", "Neutron, or you"},
		{"virtual-ip", "Logical_Switch_Port of type virtual, `options`", "an address", "the port's `addresses`", "What is exposed of a virtual port on a provider network that has no addresses, with `exposure`.", "Neutron, or you"},
		{"peer", "Port_Binding, `options`", "a port", "no router behind the port", "Ties a switch's side to a router's.", northd},
		{"distributed-port", "Port_Binding of type chassisredirect, `options`", "a port", "no gateway", "Ties the bound `cr-…` row to its router port.", northd},
		{"logical-router", "Datapath_Binding, `external_ids`", "UUID", "the datapath is a switch", "The Northbound row of a router.", northd},
		{"logical-switch", "Datapath_Binding, `external_ids`", "UUID", "", "The Northbound row of a switch.", northd},
		{"name", "Datapath_Binding, `external_ids`", "text", "", "The name in messages.", northd},
		{"name2", "Datapath_Binding, `external_ids`", "text", "`name`", "Neutron's name of the object, in messages.", northd},
		{"lb_force_snat_ip", "Logical_Router, `options`", "`router_ip`, or addresses", "balanced packets keep their source", "Any address of the router may be the source of translated packets; and OVN balances the router's VIPs of the families that it names (`router_ip`: of both), unless the load balancer has `skip_snat`.", "the cloud"},
		{"dnat_force_snat_ip", "Logical_Router, `options`", "set or not", "", "If set, any address of the router may be the source of translated packets.", "the cloud"},
		{"ovn-localnet-port", "Port of the local Open vSwitch, `external_ids`", "set or not", "", "Marks OVN's patch ports: a provider bridge with no others is OVN's alone.", "ovn-controller"},
		{"ovn-l2gateway-port", "Port of the local Open vSwitch, `external_ids`", "set or not", "", "The same.", "ovn-controller"},
	}},
	{"Metadata", "In `external_ids`, with `metadata` in the configuration. Of all other ports of a network nothing is replicated to the node.", []key{
		{"neutron:device_id", "Logical_Switch_Port of a VM; Logical_Switch_Port of a network's metadata port, a localport", "Nova's instance, or any other name; `ovnmeta-NETWORK`", "requests of the VM are answered with 404: `no-instance`; the network can have no namespace: `no-metadata-port`", "Whose metadata a VM gets. A trunk's subport without one has that of the trunk's port. NETWORK is the name of the Logical_Switch without `neutron-`.", "Neutron, or you"},
		{"neutron:project_id", "Logical_Switch_Port of a VM", "text", "an empty project", "Told to Nova beside the instance.", "Neutron, or you"},
		{"neutron:network_name", "Logical_Switch_Port of a VM", "name of the Logical_Switch", "the VM waits for the row of its switch", "The first VM of a network on a node is served under this name before the rows of the network have come.", "Neutron, or you"},
		{"neutron:mtu", "Logical_Switch_Port of the metadata port", "68 to 65535", "the device's default", "The MTU of the namespace's device.", "Neutron, or you"},
		{"apply-after-lb", "ACL, `options`; with `metadata.securityGroups: respect`, and for VIPs of VMs", "`true`", "the first round", "The ACL is of the second round, after load balancing: a packet has to be let through both. It sees backends, whoever balances.", "you"},
		{"default_acl_drop", "NB_Global, `options`; with `metadata.securityGroups: respect`, and for VIPs of VMs", "`true`", "what no ACL speaks of is let through", "What no ACL speaks of is dropped.", "you"},
		{"iface-id", "Interface of the local Open vSwitch", "a port", "the port has no tap: `tap-missing`", "Which Interface of the integration bridge is the port's. That of a network's namespace has the metadata port.", "Nova, or libvirt; Sluice for a network's namespace"},
		{"neutron:ovn-metadata-id", "Chassis_Private of the node", "UUID", "", "Written, where there is none: with it `openstack network agent list` shows an agent. As Neutron makes it from the name of the chassis.", "Sluice, or Neutron's agent"},
		{"neutron:ovn-metadata-sb-cfg", "Chassis_Private of the node", "a number", "", "Written: `nb_cfg` of SB_Global, within 10 s of a change, while the proxy is alive. Without, the agent is shown as dead after a while.", "Sluice, or Neutron's agent"},
		{"neutron:ovn-bridge", "Chassis_Private of the node", "a bridge", "", "Written: the integration bridge.", "Sluice, or Neutron's agent"},
		{"neutron-metadata-proxy-networks", "Chassis of the node", "networks, separated by commas", "", "Written with `metadata.publishNetworks: on`: the networks whose requests are answered here. One enters the key when a port of it is served from its tap, or the proxy listens in its namespace, and the proxy is alive; it leaves the key before that goes. `sluice-metadata-networks` beside it says that it is Sluice's, and goes with it; another's list is not taken away.", "Sluice"},
	}},
	{"Load balancers", "In `options` of Load_Balancer, with `loadBalancing.enabled` in the configuration.", []key{
		{"template", balancer, "`true`", "nothing is a template", "Words that begin with `^` stand for variables of the chassis. A VIP with one that the chassis does not have is an error, `bad-load-balancer`.", "OVN-Kubernetes, or you"},
		{"address-family", balancer, "`ipv4`, `ipv6`", "`ipv4`", "With `template`: the family of the VIPs. Of IPv6 the variable of an address has no brackets.", "OVN-Kubernetes, or you"},
		{"affinity_timeout", balancer, "seconds, to 65535", "each connection by itself", "How long a client without a new connection keeps its backend.", "Octavia, OVN-Kubernetes, or you"},
		{"reject", balancer, "`true`", "packets are dropped", "Clients are told when there is no backend: OVN balances the VIP as long as it has none, and tells them.", "OVN-Kubernetes, or you"},
		{"event", balancer, "`true`", "packets are dropped", "OVN tells of packets to a VIP that has no backend (Controller_Event), so that somebody may start one. It balances the VIP as long as it has none.", "OVN-Kubernetes"},
		{"skip_snat", balancer, "`true`", "", "Routers with `lb_force_snat_ip` leave the source of its packets alone, so eBPF may balance them.", "OVN-Kubernetes, or you"},
		{"ct_flush", balancer, "`true`", "flows that are known go on", "Flows of a backend that is taken out of `vips` end with it, and all with their VIP.", "you"},
		{"hash_fields", balancer + " in Southbound; `selection_fields` in Northbound", "fields", "addresses and ports", "Without a `tp_` field the backend of a flow depends on its addresses alone.", "Octavia, or you"},
		{"sluice-weights", balancer, "`BACKEND=WEIGHT,…`, 0 to 256", "1 each", "Shares of new flows. A backend with 0 gets none and keeps those that it has. Weights stay when a backend leaves `vips`, and count again when it comes back.", "you, by `sluicectl lb drain` or by hand"},
		{"sluice-weight-", "NB_Global; behind it the _uuid of the Load_Balancer, a dash, and the backend", "0 to 256", "", "Written by `sluicectl lb drain` with `sluice-weights`, for the Load_Balancer with that _uuid: the drain holds when the row's owner writes its `options` as a whole. It counts where `sluice-weights` does not name the backend. `sluicectl lb undrain` removes it.", "Sluice"},
		{"sluice-path", balancer, "`auto`, `ovn`", "`auto`", "What serves the row's VIPs: OVN, or eBPF where nothing speaks against it.", you},
		{"sluice-m", balancer + "; NB_Global, for all rows without", "1021, 4093, 16381 or 65521", "the smallest that is 100 times the row's backends", "The size of the Maglev tables of the row's VIPs. All nodes have to read the same.", you},
	}},
	{"What Sluice writes into Open vSwitch", "In `external_ids` of its own ports in the local Open vSwitch database. A port without `sluice` is somebody else's.", []key{
		{"sluice", ownPort, "`bridge`, `vrf`, `metadata`", "the port is not Sluice's", "What the port is for: `bridge`, steering on a provider bridge; `vrf`, a VRF on the kernel path; `metadata`, the namespace of a network.", "Sluice"},
		{"sluice-vni", ownPort + ", `sluice=vrf`", "1 to 16777215", "the port is not Sluice's", "The VRF.", "Sluice"},
		{"sluice-vlan", ownPort + ", `sluice=vrf`", "1 to 4094", "no VLAN", "The VLAN of the provider network.", "Sluice"},
		{"sluice-network", ownPort + ", `sluice=metadata`", "a network", "the port is not Sluice's", "Whose namespace is behind it: the network's name as `neutron:device_id` of its metadata port has it. Its Interface has `iface-id`.", "Sluice"},
		{"sluice-mtu", ownPort + ", `sluice=metadata`", "`any`", "the MTU is that of `neutron:mtu`", "The metadata port names no MTU: that of the device is left as it is.", "Sluice"},
	}},
}

const keysExample = `
## What else Sluice writes

` + "`sluice-version`" + ` in ` + "`external_ids`" + ` of the node's own Chassis_Private row, and what the two sections above say. Nothing
in the Northbound database, but ` + "`sluice-weights`" + ` with ` + "`sluicectl lb drain`" + ` and ` + "`lb undrain`" + `.

## With plain ovn-nbctl

Router ` + "`red`" + ` has the gateway port ` + "`lrp-red-gw`" + `, whose switch port is ` + "`lsp-red-gw`" + `, and an interface whose switch port
is ` + "`lsp-red-net`" + `. The colon in a key is written ` + "`\\:`" + `, and the shell wants its backslash quoted:

` + "```sh" + `
# expose it as VNI 1001
ovn-nbctl set logical_switch_port lsp-red-gw 'external_ids:neutron_bgpvpn\:vni=1001'
ovn-nbctl set logical_switch_port lsp-red-net 'external_ids:neutron_bgpvpn\:vni=1001'

# announce single hosts only, and keep one VM out
ovn-nbctl set logical_switch_port lsp-red-net external_ids:sluice-announce=hosts
ovn-nbctl set logical_switch_port red-vm3 external_ids:sluice-expose=false

# take it back
ovn-nbctl remove logical_switch_port lsp-red-gw external_ids 'neutron_bgpvpn\:vni'
ovn-nbctl remove logical_switch_port lsp-red-net external_ids 'neutron_bgpvpn\:vni'
` + "```" + `
`
