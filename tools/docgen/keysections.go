package main

const keysIntro = `# Keys in OVN and Open vSwitch

Tenants are configured in ` + "`external_ids`" + ` of OVN rows. ovn-northd copies the keys of Northbound ports to ` + "`Port_Binding`" + `,
where every node's Sluice reads them. Nodes need no configuration per tenant.

A router is exposed through two kinds of switch port, both of type ` + "`router`" + `:

- the **gateway port**: the Logical_Switch_Port on the provider switch whose ` + "`router-port`" + ` is the router's gateway port.
  The node that the gateway port is bound to has the VRF;
- the **interface**: the Logical_Switch_Port on a tenant's switch whose ` + "`router-port`" + ` is an interface of the same router.
  Sluice exposes its subnets. The interface must have the gateway port's VNI. Another VNI is an error of the interface,
  ` + "`vni-mismatch`" + `; an interface without a VNI is not exposed.

The first of these places with a VNI counts for a port. Write the same VNI in all places that you use:

| # | place | database | applies to |
| --- | --- | --- | --- |
| 1 | ` + "`neutron_bgpvpn:vni`" + ` of the Logical_Switch_Port | Southbound | gateway port, interface |
| 2 | ` + "`vni`" + ` of the Logical_Router_Port | Southbound | gateway port, interface |
| 3 | ` + "`neutron_bgpvpn:vni`" + ` of the Logical_Switch that the port is on | Northbound (` + "`ovn.nb`" + `) | gateway port, interface |
| 4 | ` + "`vni`" + ` of the port that Neutron's EVPN service adds to the router: a gateway port on no provider network | Southbound | gateway ports of the router |
| 5 | ` + "`dynamic-routing-vrf-name`" + ` of the Logical_Router, if it is ` + "`vrf-VNI` or `evpnvrf-VNI`" + ` | Southbound from OVN 25.03 on, else Northbound | gateway ports of the router |
| 6 | ` + "`dynamic-routing-vrf-id`" + ` of the Logical_Router, with ` + "`evpn.dynamicRouting: on`" + ` | Southbound from OVN 25.03.2 on, else Northbound | gateway ports of the router |

A later place with another VNI, or with an unreadable one, is a warning of the port, ` + "`other-vni`" + `. ` + "`sluicectl explain`" + ` names the
place that counts. The AS and the route targets are read beside the VNI. Without them there, those of the Logical_Switch_Port
count, then those of the Logical_Switch, unless it names another VNI or a type other than ` + "`l3`" + `.

With ` + "`evpn.dynamicRouting: on`" + ` Sluice also exposes the routes that OVN advertises for a router (Southbound table Advertised_Route, OVN
25.03 and later; ` + "`dynamic-routing` and `dynamic-routing-redistribute`" + ` switch them on): a subnet as a subnet, a single address as
a host, behind the gateway port whose VNI the interface names, or the router's only VNI. On a gateway port itself only
addresses of load balancers outside the provider network count; other routes are ` + "`left-out`" + `.

Sluice ignores two keys:

- ` + "`neutron_bgpvpn:rd`" + `: each node has its own route distinguishers, so that routes of several nodes to one prefix stay apart;
- ` + "`vlan`" + ` beside ` + "`vni`" + `: a VLAN inside the bridge of Neutron's own agent. The VLAN of a provider network is the ` + "`tag`" + ` of its
  localnet port.

A value that cannot be read is an error of its object, in ` + "`sluicectl status`" + `, metric and log. Other objects are served.
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
	{"Tenants", "In `external_ids`, unless the column `where` says `options`. The keys `neutron_bgpvpn:` are those of ovn-bgp-agent's EVPN driver. Nothing in Neutron writes them: networking-bgpvpn has no driver for OVN, and Neutron's EVPN service, whose routers have `evpn_vni`, writes other keys.", []key{
		{"neutron_bgpvpn:vni", bothPorts + ", or their Logical_Switch", "1 to 16777215, decimal", "the next place counts", "Names the VRF. All gateway ports with one VNI, of several routers too, form one VRF. They must name the same AS and route targets; otherwise the later port is an error, `vrf-conflict`.", you},
		{"neutron_bgpvpn:as", gatewayOrSwitch, "1 to 4294967295", "`bgp.asn`", "The AS number in the automatic route target, (AS & 0xFFFF):VNI. The AS of the BGP session is `bgp.asn`.", you},
		{"neutron_bgpvpn:rt", gatewayOrSwitch, targets, "see the next two", "Route targets to import and to export.", you},
		{"neutron_bgpvpn:it", gatewayOrSwitch, targets, "without `rt`: the VNI as the number, of any AS", "Route targets to import, besides those of `rt`. `evpn.vrfs` of the configuration has precedence.", you},
		{"neutron_bgpvpn:et", gatewayOrSwitch, targets, "without `rt`: the automatic one", "Route targets to export, besides those of `rt`. `evpn.vrfs` of the configuration has precedence.", you},
		{"neutron_bgpvpn:type", bothPorts + ", or their Logical_Switch", "`l3`", "`l3`", "Any other value is an error: Sluice speaks EVPN Type-5 routes only.", you},
		{"vni", "Logical_Router_Port of the gateway port and of the interfaces", "1 to 16777215, decimal", "the next place counts", "Names the VRF, as `neutron_bgpvpn:vni` does.", "Neutron's EVPN service, or you"},
		{"dynamic-routing-vrf-name", "Logical_Router, `options`", "a device: `vrf-1001`, `evpnvrf-1001`", "the next place counts", "Names the VRF by the number at its end. Sluice ignores any other name.", "the cloud, or you"},
		{"dynamic-routing-vrf-id", "Logical_Router, `options`", "a routing table, 1 to 16777215", "the port is not exposed", "Names the VRF, with `evpn.dynamicRouting: on`. Otherwise Sluice only compares it with the name.", "Neutron's EVPN service, or you"},
		{"dynamic-routing", "Logical_Router, `options`; OVN 25.03 and later", "`true`, `false`", "`false`", "OVN advertises routes of the router, and learns routes from a routing table: `dynamic-routing-vrf-id`, or the tunnel key of the router. The table of a VRF on the kernel path, which prefers the VNI as its number, is an error there: `ovn-table`. With `evpn.learnedRoutes: on` Sluice writes a VRF's imported routes into the routing table; see [learned-routes.md](../learned-routes.md).", "the cloud, or you"},
		{"dynamic-routing-port-name", "Logical_Router_Port, `options`; OVN 25.03 and later", "a name", "the port learns from any device", "The port learns routes of one device only: the device with this name on the node. Several ports of one router on a node need the key with `evpn.learnedRoutes: on`: `learn-ports`.", "the cloud, or you"},
		{"dynamic-routing-no-learning", "Logical_Router or Logical_Router_Port, `options`; OVN 26.03 and later", "`true`, `false`", "`false`", "The port learns no routes, and Sluice writes none into its router's table for it.", "the cloud, or you"},
		{"dynamic-routing-port-mapping", local, "`NAME=DEVICE,…`", "no name stands for a device", "The devices of `dynamic-routing-port-name` on the node. `sluice-learned` is the device of Sluice's routes.", setup},
		{"sluice-expose", bothPorts + ", their Logical_Router_Ports, and Logical_Switch_Ports of VMs", "`true`, `false`", "`true`", "`false` withholds the object, with and without EVPN (`exposure`); a gateway port with its floating IPs. Sluice blocks the address of such a VM in an exposed subnet. `true` on an interface exposes it even if its switch has a localnet port; otherwise an interface on a provider network is withheld, `provider-network`.", you},
		{"sluice-announce", bothPorts + ", their Logical_Router_Ports, and Logical_Switch_Ports of VMs", "`hosts`, `subnets`, `both`", "`evpn.announce`", "What BGP announces of an exposed subnet. The nearest key counts: the VM's port, then the interface, then the gateway port; on each the switch's side first. Sluice forwards to the whole subnet in any case.", you},
		{"sluice-next-hops", "Logical_Router_Port of the gateway port; Logical_Switch_Port of a VM on a provider network, with `exposure`", "addresses, separated by commas or blanks", "`fabric.nextHops`", "Next hops of the router's routes for which Sluice answers ARP and ND. Each must be on a network of the port.", you},
		{"sluice-path", gatewayPort + ", or its Logical_Router_Port", "`auto`, `ebpf`, `kernel`", "`path`", "The path of the VRF's packets. The VRF's first gateway port with a path counts. `evpn.vrfs.<VNI>.path` of the configuration has precedence, and so has `path: kernel`, which is for the whole node.", you},
		{"neutron:cidrs", "Logical_Switch_Port of a VM", "addresses with prefix length, separated by blanks", "the port has no address", "The addresses of a port whose `addresses` are `unknown`, as with port security off. For metadata, the addresses of a network's metadata port.", "Neutron"},
	}},
	{"The node", "In `external_ids`, as ovn-controller reads them: `KEY-SYSTEMID` has precedence over `KEY`.", []key{
		{"system-id", local, "text", "nothing starts", "The chassis name. `ovn.systemID` has precedence.", setup},
		{"ovn-remote", local, "`tcp:`, `ssl:` or `unix:` endpoints, separated by commas", "nothing starts", "The Southbound database. `ovn.sb` has precedence.", setup},
		{"ovn-encap-ip", local, "an address, or several: the first counts", "`fabric.vtep`, or the global address on lo", "The VTEP, if neither the configuration nor lo has one.", setup},
		{"ovn-bridge-mappings", local, "`NETWORK:BRIDGE,…`", "gateway ports are errors: `no-bridge-mapping`", "The provider bridge of a gateway port's physical network.", setup},
		{"ovn-bridge", local, "a bridge", "`br-int`", "The integration bridge.", setup},
		{"ovn-cms-options", local, "a list with `enable-chassis-as-gw`", "a gateway port that is bound here, or may fail over to here, makes the node a gateway", "Makes the node a gateway node from the start.", setup},
	}},
	{"Keys of OVN", "Keys that connect OVN's rows. Only the MTU may be set for Sluice.", []key{
		{"gateway_mtu", "Logical_Router_Port of the gateway port, `options`", "68 to 65535", "the MTU of the veth pair", "The largest packet to the router.", "Neutron, or you"},
		{"network_name", "Logical_Switch_Port of type localnet, `options`", "a physical network", "`no-bridge-mapping`", "The name that Sluice looks up in `ovn-bridge-mappings`.", "Neutron, or you"},
		{"router", "DHCP_Options of the Logical_Switch_Port of a VM on a provider network, `options`", "an IPv4 address", "the next hops of static routes alone", "The VM's default gateway. With `exposure` and `ovn.nb` Sluice answers for it where nobody else can; see `exposure.md`.", "Neutron, or you"},
		{"virtual-ip", "Logical_Switch_Port of type virtual, `options`", "an address", "the port's `addresses`", "The exposed address of a virtual port without addresses on a provider network, with `exposure`.", "Neutron, or you"},
		{"peer", "Port_Binding, `options`", "a port", "no router behind the port", "Connects a switch's port with a router's.", northd},
		{"distributed-port", "Port_Binding of type chassisredirect, `options`", "a port", "no gateway", "Connects the bound `cr-…` row with its router port.", northd},
		{"logical-router", "Datapath_Binding, `external_ids`", "UUID", "the datapath is a switch", "The Northbound row of a router.", northd},
		{"logical-switch", "Datapath_Binding, `external_ids`", "UUID", "", "The Northbound row of a switch.", northd},
		{"name", "Datapath_Binding, `external_ids`", "text", "", "The name in messages.", northd},
		{"name2", "Datapath_Binding, `external_ids`", "text", "`name`", "Neutron's name of the object, in messages.", northd},
		{"lb_force_snat_ip", "Logical_Router, `options`", "`router_ip`, or addresses", "balanced packets keep their source", "Any address of the router may be the source of translated packets. OVN balances the router's VIPs of the families in the value (`router_ip`: both), unless the load balancer has `skip_snat`.", "the cloud"},
		{"dnat_force_snat_ip", "Logical_Router, `options`", "set or not", "", "If set, any address of the router may be the source of translated packets.", "the cloud"},
		{"ovn-localnet-port", "Port of the local Open vSwitch, `external_ids`", "set or not", "", "Marks OVN's patch ports. A provider bridge without other ports is OVN's alone.", "ovn-controller"},
		{"ovn-l2gateway-port", "Port of the local Open vSwitch, `external_ids`", "set or not", "", "Marks OVN's patch ports, as `ovn-localnet-port` does.", "ovn-controller"},
	}},
	{"Metadata", "In `external_ids`, with `metadata` in the configuration. The node replicates no other ports of a network.", []key{
		{"neutron:device_id", "Logical_Switch_Port of a VM; Logical_Switch_Port of a network's metadata port, a localport", "Nova's instance, or any other name; `ovnmeta-NETWORK`", "requests of the VM are answered with 404: `no-instance`; the network can have no namespace: `no-metadata-port`", "The instance whose metadata a VM gets. A trunk's subport without the key has the instance of the trunk's port. NETWORK is the name of the Logical_Switch without `neutron-`.", "Neutron, or you"},
		{"neutron:project_id", "Logical_Switch_Port of a VM", "text", "an empty project", "The project that Sluice names to Nova beside the instance.", "Neutron, or you"},
		{"neutron:network_name", "Logical_Switch_Port of a VM", "name of the Logical_Switch", "the VM waits for the row of its switch", "The network's name for the first VM of a network on a node, until the network's rows arrive.", "Neutron, or you"},
		{"neutron:mtu", "Logical_Switch_Port of the metadata port", "68 to 65535", "the device's default", "The MTU of the namespace's device.", "Neutron, or you"},
		{"apply-after-lb", "ACL, `options`; with `metadata.securityGroups: respect`, and for VIPs of VMs", "`true`", "the first round", "The ACL is in the second round, after load balancing. A packet must pass both rounds. The second round sees backends, whoever balances.", "you"},
		{"default_acl_drop", "NB_Global, `options`; with `metadata.securityGroups: respect`, and for VIPs of VMs", "`true`", "packets that no ACL matches pass", "Packets that no ACL matches are dropped.", "you"},
		{"iface-id", "Interface of the local Open vSwitch", "a port", "the port has no tap: `tap-missing`", "The port of an Interface on the integration bridge. The Interface of a network's namespace names the metadata port.", "Nova, or libvirt; Sluice for a network's namespace"},
		{"neutron:ovn-metadata-id", "Chassis_Private of the node", "UUID", "", "Written, if absent, so that `openstack network agent list` shows an agent. Sluice derives it from the chassis name as Neutron does.", "Sluice, or Neutron's agent"},
		{"neutron:ovn-metadata-sb-cfg", "Chassis_Private of the node", "a number", "", "Written: `nb_cfg` of SB_Global, within 10 s of a change, while the proxy is alive. Without it Neutron shows the agent as dead after a while.", "Sluice, or Neutron's agent"},
		{"neutron:ovn-bridge", "Chassis_Private of the node", "a bridge", "", "Written: the integration bridge.", "Sluice, or Neutron's agent"},
		{"neutron-metadata-proxy-networks", "Chassis of the node", "networks, separated by commas", "", "Written with `metadata.publishNetworks: on`: the networks whose requests are answered here. Sluice adds a network when the proxy is alive and serves a port of the network from its tap, or listens in its namespace. Sluice removes the network before that ends. `sluice-metadata-networks` beside it marks the list as Sluice's, and is removed with it; Sluice removes no list of others.", "Sluice"},
	}},
	{"Load balancers", "In `options` of Load_Balancer, with `loadBalancing.enabled` in the configuration.", []key{
		{"template", balancer, "`true`", "nothing is a template", "Words that begin with `^` are variables of the chassis. A VIP with a variable that the chassis lacks is an error, `bad-load-balancer`.", "OVN-Kubernetes, or you"},
		{"address-family", balancer, "`ipv4`, `ipv6`", "`ipv4`", "With `template`: the family of the VIPs. An IPv6 address in a variable has no brackets.", "OVN-Kubernetes, or you"},
		{"affinity_timeout", balancer, "seconds, to 65535", "no affinity", "How long a client without a new connection keeps its backend.", "Octavia, OVN-Kubernetes, or you"},
		{"reject", balancer, "`true`", "packets are dropped", "OVN tells clients that there is no backend. OVN balances the VIP as long as it has none.", "OVN-Kubernetes, or you"},
		{"event", balancer, "`true`", "packets are dropped", "OVN reports packets to a VIP without a backend (Controller_Event), so that somebody may start one. OVN balances the VIP as long as it has none.", "OVN-Kubernetes"},
		{"skip_snat", balancer, "`true`", "", "Routers with `lb_force_snat_ip` keep the source of the load balancer's packets, so eBPF may balance them.", "OVN-Kubernetes, or you"},
		{"ct_flush", balancer, "`true`", "sessions continue", "Sessions end when their backend, or their VIP, is removed from `vips`.", "you"},
		{"hash_fields", balancer + " in Southbound; `selection_fields` in Northbound", "fields", "addresses and ports", "Without a `tp_` field the backend of a session depends on its addresses alone.", "Octavia, or you"},
		{"sluice-weights", balancer, "`BACKEND=WEIGHT,…`, 0 to 256", "1 each", "Shares of new sessions. A backend with 0 gets no new ones and keeps its sessions. Weights stay when a backend is removed from `vips`, and count again when it is added.", "you, by `sluicectl lb drain` or by hand; `sluice-controller`"},
		{"sluice-weight-", "NB_Global; behind it the _uuid of the Load_Balancer, a dash, and the backend", "0 to 256", "", "Written by `sluicectl lb drain` with `sluice-weights`, for the Load_Balancer with that _uuid, so that the drain survives when the row's owner replaces its `options`. Counts if `sluice-weights` does not name the backend. `sluicectl lb undrain` removes it.", "Sluice"},
		{"sluice-path", balancer, "`auto`, `ovn`", "`auto`", "The path of the row's VIPs: OVN, or eBPF where nothing prevents it.", you},
		{"sluice-m", balancer + "; NB_Global, for all rows without", "1021, 4093, 16381 or 65521", "the smallest with 100 slots for each of the row's backends", "The size of the Maglev tables of the row's VIPs. All nodes must read the same value.", you},
	}},
	{"Keys that Sluice writes into Open vSwitch", "In `external_ids` of its own ports in the local Open vSwitch database. A port without `sluice` has another owner.", []key{
		{"sluice", ownPort, "`bridge`, `vrf`, `metadata`", "the port is not Sluice's", "The port's purpose: `bridge`, steering on a provider bridge; `vrf`, a VRF on the kernel path; `metadata`, the namespace of a network.", "Sluice"},
		{"sluice-vni", ownPort + ", `sluice=vrf`", "1 to 16777215", "the port is not Sluice's", "The VRF.", "Sluice"},
		{"sluice-vlan", ownPort + ", `sluice=vrf`", "1 to 4094", "no VLAN", "The VLAN of the provider network.", "Sluice"},
		{"sluice-network", ownPort + ", `sluice=metadata`", "a network", "the port is not Sluice's", "The network of the namespace, as in `neutron:device_id` of its metadata port. The Interface has `iface-id`.", "Sluice"},
		{"sluice-mtu", ownPort + ", `sluice=metadata`", "`any`", "the MTU is `neutron:mtu`", "The metadata port names no MTU, and Sluice leaves the device's MTU alone.", "Sluice"},
	}},
}

const keysExample = `
## Other keys that Sluice writes

sluiced writes ` + "`sluice-version`, `sluice-vtep` and `sluice-router-mac`" + ` into ` + "`external_ids`" + ` of the node's own Chassis_Private row. In the Northbound database
` + "`sluicectl lb drain`" + ` and ` + "`lb undrain`" + ` write ` + "`sluice-weights` and `sluice-weight-`" + `; sluiced writes nothing else there.
` + "`sluice-controller`" + ` writes [keys of its own](controller-keys.md).

## With plain ovn-nbctl

Router ` + "`red`" + ` has the gateway port ` + "`lrp-red-gw`" + ` with the switch port ` + "`lsp-red-gw`" + `, and an interface with the switch port
` + "`lsp-red-net`" + `. Write the colon in a key as ` + "`\\:`" + `, and quote the backslash for the shell:

` + "```sh" + `
# expose it as VNI 1001
ovn-nbctl set logical_switch_port lsp-red-gw 'external_ids:neutron_bgpvpn\:vni=1001'
ovn-nbctl set logical_switch_port lsp-red-net 'external_ids:neutron_bgpvpn\:vni=1001'

# announce single hosts only, and withhold one VM
ovn-nbctl set logical_switch_port lsp-red-net external_ids:sluice-announce=hosts
ovn-nbctl set logical_switch_port red-vm3 external_ids:sluice-expose=false

# withdraw it
ovn-nbctl remove logical_switch_port lsp-red-gw external_ids 'neutron_bgpvpn\:vni'
ovn-nbctl remove logical_switch_port lsp-red-net external_ids 'neutron_bgpvpn\:vni'
` + "```" + `
`
