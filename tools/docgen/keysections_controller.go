package main

const controllerKeysIntro = `# What sluice-controller keeps in Northbound, key by key

The controller has no database of its own. Load balancers are ` + "`Load_Balancer`" + ` rows in the form of ovn-octavia-provider 8.0.0, one for each
protocol, with keys of Sluice's beside those of the provider. Rows of the provider alone are read and changed where they are; rows that are
neither's are left alone. [Decision 29](../decisions/0029-octavia-in-northbound.md) and [decision 30](../decisions/0030-networks-in-northbound.md) say why.

Sluice's own values of load balancers are JSON with ` + "`\"v\": 1`" + `, the version of the form. A value of another version, or one that
cannot be read, counts as absent.
`

const (
	provider   = "the controller, ovn-octavia-provider"
	ours       = "the controller"
	neutronML2 = "Neutron"
	vipPort    = "Logical_Switch_Port of a VIP"
)

var controllerKeySections = []keySection{
	{"Load balancers", "In `external_ids` of `Load_Balancer`, but for the last ones, which are in `options`. Beside them there is a key `listener_ID` or `pool_ID` for each listener and pool, with `:D` behind it where that is disabled.", []key{
		{"enabled", balancer, "`True`, `False`", "enabled", "A load balancer that is disabled has no `vips`.", provider},
		{"neutron:vip", balancer, "an address", "the row is no load balancer of Octavia's", "The VIP.", provider},
		{"neutron:vip_port_id", balancer, "the ID of a port", "no port", "The VIP's port: the name of a Logical_Switch_Port.", provider},
		{"neutron:vip_fip", balancer, "an address", "none", "The floating IP of the VIP.", provider},
		{"neutron:additional_vips", balancer, "addresses, with commas between them", "none", "More VIPs of the load balancer.", provider},
		{"neutron:additional_vip_port_ids", balancer, "IDs of ports, with commas", "none", "Their ports, in their order.", provider},
		{"neutron:additional_vip_fips", balancer, "addresses, with commas", "none", "Their floating IPs.", provider},
		{"ls_refs", balancer, "JSON: names of switches, with counts", "none", "How many VIPs and members of the row a switch has.", provider},
		{"lr_ref", balancer, "names of routers, with commas", "none", "The routers that the row is associated with.", provider},
		{"neutron:member_status", balancer, "JSON: IDs of members, with `ONLINE`, `OFFLINE`, `ERROR` or `NO_MONITOR`", "`NO_MONITOR`", "A member that is `OFFLINE` is disabled and not in `vips`.", provider},
		{"octavia:healthmonitors", balancer, "JSON: a list of IDs", "none", "Kept as it is.", "ovn-octavia-provider"},
		{"sluice:lb", balancer, "JSON: name, description, project, tags, times, subnets, network, whether its ports are the controller's, and those that Neutron made for it", "Octavia's defaults; no project", "What the provider's rows do not have.", ours},
		{"sluice:l:", balancer, "behind it a listener's ID; JSON: name, description, tags, times, limits", "the defaults", "The same of a listener.", ours},
		{"sluice:p:", balancer, "behind it a pool's ID; JSON: name, description, tags, times, algorithm, session persistence", "the defaults", "The same of a pool.", ours},
		{"sluice:m:", balancer, "behind it a member's ID; JSON: name, tags, times, weight, backup, whether it was made without a subnet", "the defaults; weight 1", "The same of a member.", ours},
		{"sluice-weights", balancer + ", `options`", "`BACKEND=WEIGHT,…`, 0 to 256", "1 each", "Shares of new flows, where Sluice's eBPF balances: members' weights.", ours + ", `sluicectl lb drain`"},
		{"affinity_timeout", balancer + ", `options`", "1 to 65535, in seconds", "none", "A client keeps its member for so long after its last packet: session persistence SOURCE_IP.", provider},
	}},
	{"Networks and ports", "A network is a `Logical_Switch`, as decision 30 says. The controller makes ports of VIPs, and no other rows of these.", []key{
		{"neutron:network_name", "Logical_Switch; Logical_Switch_Port of a VIP", "a name; of a port the switch's", "the name of the switch", "The network's name, of those that Neutron wrote.", neutronML2 + "; of ports of VIPs " + ours},
		{"neutron:subnet_ids", "Logical_Router_Port", "IDs, with spaces, one for each of `networks`", "IDs that are derived from the port's name and the prefix", "The IDs of the subnets that the router has an address in.", neutronML2},
		{"neutron:is_ext_gw", "Logical_Router_Port", "`True`, `False`", "by its gateway chassis", "The port leads out of the cloud: no network behind it is associated.", neutronML2},
		{"neutron:port_name", vipPort, "`ovn-lb-vip-` and the ID of the load balancer; of the first additional VIP `ovn-lb-vip-additional-1-` and so on", "", "ovn-octavia-provider knows a VIP's port by it.", ours},
		{"neutron:cidrs", "Logical_Switch_Port", "addresses with the length of their prefix", "`addresses`", "The addresses that a port has: none of them is given away again.", neutronML2 + "; of ports of VIPs " + ours},
		{"neutron:project_id", vipPort, "the ID of a project", "", "The load balancer's project.", ours},
		{"neutron:device_owner", "Logical_Switch_Port", "`compute:…`, `network:…` and others", "nothing has the port", "A port that something has is no VIP's.", neutronML2},
		{"sluice:owner", vipPort, "as `neutron:port_name`", "the port is somebody else's", "The controller made the port for that load balancer, makes it again when it is removed, and deletes it with the load balancer.", ours},
		{"network_name", "Logical_Switch_Port of type localnet, `options`", "a physical network", "no provider network", "A VIP in a provider network is not associated with its switch.", "who made the port"},
		{"sluice:excluded", vipPort, "`true`", "the address stays in `exclude_ips`", "The controller has put the VIP into `other_config:exclude_ips` of the switch, and takes it out with the port.", ours},
		{"router-port", "Logical_Switch_Port of type router, `options`", "the name of a Logical_Router_Port", "", "The router that the network is connected to.", "who made the port"},
	}},
}
