package main

const controllerKeysIntro = `# Keys of sluice-controller in Northbound

The Northbound database is the controller's only store. A load balancer is one ` + "`Load_Balancer`" + ` row for each protocol, in the format of
ovn-octavia-provider 8.0.0 with additional keys of Sluice's. The controller reads and changes rows of the provider in place; it leaves all
other rows alone. [Decision 29](../decisions/0029-octavia-in-northbound.md) and [decision 30](../decisions/0030-networks-in-northbound.md) say why.

Sluice's own values of load balancers are JSON with ` + "`\"v\": 1`" + `, the version of the format. A value of another version, or an unreadable one,
counts as absent.
`

const (
	provider   = "the controller, ovn-octavia-provider"
	ours       = "the controller"
	neutronML2 = "Neutron"
	vipPort    = "Logical_Switch_Port of a VIP"
)

var controllerKeySections = []keySection{
	{"Load balancers", "In `external_ids` of `Load_Balancer`; the last two are in `options`. Each listener and pool has a key `listener_ID` or `pool_ID` besides, with `:D` appended if it is disabled.", []key{
		{"enabled", balancer, "`True`, `False`", "enabled", "A disabled load balancer has no `vips`.", provider},
		{"neutron:vip", balancer, "an address", "the row is no load balancer of Octavia's", "The VIP.", provider},
		{"neutron:vip_port_id", balancer, "the ID of a port", "no port", "The VIP's port: the name of a Logical_Switch_Port.", provider},
		{"neutron:vip_fip", balancer, "an address", "none", "The floating IP of the VIP.", provider},
		{"neutron:additional_vips", balancer, "addresses, with commas", "none", "More VIPs of the load balancer.", provider},
		{"neutron:additional_vip_port_ids", balancer, "IDs of ports, with commas", "none", "The ports of the additional VIPs, in their order.", provider},
		{"neutron:additional_vip_fips", balancer, "addresses, with commas", "none", "The floating IPs of the additional VIPs.", provider},
		{"ls_refs", balancer, "JSON: names of switches, with counts", "none", "The number of the row's VIPs and members on each switch.", provider},
		{"lr_ref", balancer, "names of routers, with commas", "none", "The routers that the row is associated with.", provider},
		{"neutron:member_status", balancer, "JSON: IDs of members, with `ONLINE`, `OFFLINE`, `ERROR` or `NO_MONITOR`", "`NO_MONITOR`", "A member that is `OFFLINE` is disabled and not in `vips`.", provider},
		{"octavia:healthmonitors", balancer, "JSON: a list of IDs", "none", "The controller leaves the value as it is.", "ovn-octavia-provider"},
		{"sluice:lb", balancer, "JSON: name, description, project, tags, times, subnets, network, whether its ports are the controller's, and those that Neutron made for it", "Octavia's defaults; no project", "A load balancer's fields that the provider's rows lack.", ours},
		{"sluice:l:", balancer, "followed by a listener's ID; JSON: name, description, tags, times, limits", "the defaults", "A listener's fields that the provider's rows lack.", ours},
		{"sluice:p:", balancer, "followed by a pool's ID; JSON: name, description, tags, times, algorithm, session persistence", "the defaults", "A pool's fields that the provider's rows lack.", ours},
		{"sluice:m:", balancer, "followed by a member's ID; JSON: name, tags, times, weight, backup, whether it was made without a subnet", "the defaults; weight 1", "A member's fields that the provider's rows lack.", ours},
		{"sluice-weights", balancer + ", `options`", "`BACKEND=WEIGHT,…`, 0 to 256", "1 each", "Members' weights: shares of new sessions, where Sluice's eBPF balances.", ours + ", `sluicectl lb drain`"},
		{"affinity_timeout", balancer + ", `options`", "1 to 65535, in seconds", "none", "How long a client keeps its member after its last packet: session persistence SOURCE_IP.", provider},
	}},
	{"Networks and ports", "A network is a `Logical_Switch` (decision 30). Of these rows the controller creates the ports of VIPs only.", []key{
		{"neutron:network_name", "Logical_Switch; Logical_Switch_Port of a VIP", "a name; of a port the switch's", "the name of the switch", "The name of a network that Neutron wrote.", neutronML2 + "; of ports of VIPs " + ours},
		{"neutron:subnet_ids", "Logical_Router_Port", "IDs, with spaces, one for each of `networks`", "IDs derived from the port's name and the prefix", "The IDs of the subnets in which the router has an address.", neutronML2},
		{"neutron:is_ext_gw", "Logical_Router_Port", "`True`, `False`", "by its gateway chassis", "The port leads out of the cloud: the controller associates no network behind it.", neutronML2},
		{"neutron:port_name", vipPort, "`ovn-lb-vip-` and the ID of the load balancer; of the first additional VIP `ovn-lb-vip-additional-1-` and so on", "", "The name by which ovn-octavia-provider finds a VIP's port.", ours},
		{"neutron:cidrs", "Logical_Switch_Port", "addresses with prefix length", "`addresses`", "The addresses of a port, which the controller gives to no other port.", neutronML2 + "; of ports of VIPs " + ours},
		{"neutron:project_id", vipPort, "the ID of a project", "", "The load balancer's project.", ours},
		{"neutron:device_owner", "Logical_Switch_Port", "`compute:…`, `network:…` and others", "the port has no owner", "A port with an owner is no VIP's port.", neutronML2},
		{"sluice:owner", vipPort, "as `neutron:port_name`", "the port has another owner", "The controller created the port for that load balancer. It creates the port again when it is removed, and deletes it with the load balancer.", ours},
		{"network_name", "Logical_Switch_Port of type localnet, `options`", "a physical network", "no provider network", "The switch is a provider network: a VIP there is not associated with it.", "the port's creator"},
		{"sluice:excluded", vipPort, "`true`", "the address stays in `exclude_ips`", "The controller has added the VIP to `other_config:exclude_ips` of the switch, and removes it with the port.", ours},
		{"router-port", "Logical_Switch_Port of type router, `options`", "the name of a Logical_Router_Port", "", "The router port that connects the network.", "the port's creator"},
	}},
}
