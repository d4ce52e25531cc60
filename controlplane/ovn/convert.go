package ovn

import (
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/vswitch"
)

// bgpvpnPrefix is what the keys of the BGPVPN vocabulary begin with.
const bgpvpnPrefix = "neutron_bgpvpn:"

// dynamicRouting are options of gateway ports of routers with OVN's dynamic routing.
var dynamicRouting = []string{"dynamic-routing", "dynamic-routing-vrf-name", "dynamic-routing-port-name", "dynamic-routing-no-learning"}

// The columns that are read of each database's tables.
var (
	sbTables = ovsdb.Tables{
		"Port_Binding": {"logical_port", "type", "datapath", "chassis", "ha_chassis_group", "up", "tag", "mac",
			"nat_addresses", "virtual_parent", "options", "external_ids"},
		"Datapath_Binding": {"external_ids", "tunnel_key"},
		"Chassis":          {"name", "external_ids"},
		"Chassis_Private":  {"name", "chassis", "external_ids"},
		"HA_Chassis":       {"chassis"},
		"HA_Chassis_Group": {"name", "ha_chassis"},
		"MAC_Binding":      {"logical_port", "ip", "mac"},
		"Advertised_Route": {"datapath", "logical_port", "ip_prefix", "tracked_port"},
	}
	// What else a cloud writes there is most of what a port's row takes.
	sbKeys = ovsdb.Keys{"Chassis": {
		"external_ids": func(k string) bool { return k == keyProxyNetworks || k == keyProxyOurs },
	}, "Chassis_Private": {
		"external_ids": func(k string) bool { return strings.HasPrefix(k, PublishPrefix) },
	}, "Port_Binding": {
		"external_ids": func(k string) bool {
			return k == "neutron:cidrs" || k == "vni" || strings.HasPrefix(k, bgpvpnPrefix) || strings.HasPrefix(k, "sluice-")
		},
		"options": func(k string) bool {
			return k == "peer" || k == "distributed-port" || k == "network_name" || k == "gateway_mtu" ||
				k == "virtual-ip" || slices.Contains(dynamicRouting, k) || strings.HasPrefix(k, "sluice-")
		},
	}}
	vswitchTables = ovsdb.Tables{
		"Open_vSwitch": {"external_ids"},
		"Bridge":       {"name", "ports"},
		"Port":         {"name", "external_ids"},
		"SSL":          {"private_key", "certificate", "ca_cert"},
	}
	// How VMs are plugged.
	vswitchPorts = ovsdb.Tables{
		"Bridge":    {"datapath_type"},
		"Port":      {"interfaces"},
		"Interface": {"name", "type", "ifindex", "external_ids"},
	}
	nbTables = ovsdb.Tables{
		"Logical_Router":              {"ports", "nat", "static_routes", "options"},
		"Logical_Router_Port":         {"name", "networks", "options"},
		"NAT":                         {"type", "external_ip", "logical_ip", "logical_port", "external_mac", "allowed_ext_ips", "exempted_ext_ips", "gateway_port"},
		"Logical_Router_Static_Route": {"ip_prefix", "nexthop"},
		"Logical_Switch":              {"external_ids"},
		"Logical_Switch_Port":         {"name", "enabled", "dhcpv4_options"},
		"DHCP_Options":                {"options"},
	}
	nbKeys = ovsdb.Keys{"Logical_Switch": {
		"external_ids": func(k string) bool { return strings.HasPrefix(k, bgpvpnPrefix) },
	}, "DHCP_Options": {
		"options": func(k string) bool { return k == optionRouter },
	}}
	tableOf = map[string]Table{
		"Port_Binding": TablePortBinding, "Datapath_Binding": TableDatapathBinding, "Chassis": TableChassis,
		"Chassis_Private": TableChassisPrivate, "HA_Chassis": TableHAChassis, "HA_Chassis_Group": TableHAChassisGroup, "MAC_Binding": TableMACBinding,
		"Open_vSwitch": TableOpenvSwitch, "Bridge": TableBridge, "Port": TablePort, "SSL": TableSSL,
		"Logical_Router": TableLogicalRouter, "Logical_Router_Port": TableLogicalRouterPort,
		"NAT": TableNAT, "Logical_Router_Static_Route": TableStaticRoute,
		"Logical_Switch": TableLogicalSwitch, "Advertised_Route": TableAdvertisedRoute,
		"Logical_Switch_Port": TableLogicalSwitchPort, "DHCP_Options": TableDHCPOptions,
		"Interface": TableInterface,
		"ACL":       TableACL, "Port_Group": TablePortGroup, "Address_Set": TableAddressSet, "NB_Global": TableNBGlobal,
		"Load_Balancer": TableLoadBalancer, "Load_Balancer_Group": TableLoadBalancerGroup,
		"Load_Balancer_Health_Check": TableHealthCheck, "Service_Monitor": TableServiceMonitor,
		"Chassis_Template_Var": TableTemplateVar, "Logical_DP_Group": TableDatapathGroup, "SB_Global": TableSBGlobal,
	}
)

// southbound is what is read of the Southbound database. Keys that metadata alone needs
// are as many as ports. balancers: load balancers, too.
func southbound(needs Needs, balancers bool) (ovsdb.Tables, ovsdb.Keys) {
	tables, keys := maps.Clone(sbTables), maps.Clone(sbKeys)
	if needs.balances() {
		tables["Service_Monitor"] = []string{"logical_port", "ip", "protocol", "port", "status"}
		tables["Chassis_Template_Var"] = []string{"chassis", "variables"}
	}
	if balancers {
		tables["Load_Balancer"] = []string{"name", "protocol", "vips", "options", "datapaths", "datapath_group", "ls_datapath_group", "external_ids"}
		keys["Load_Balancer"] = map[string]func(string) bool{"external_ids": func(k string) bool { return k == northboundID }}
		tables["Logical_DP_Group"] = []string{"datapaths"}
		tables["SB_Global"] = []string{"options"}
		keys["SB_Global"] = map[string]func(string) bool{"options": func(k string) bool { return k == optionTableSize || strings.HasPrefix(k, optionHeldWeight) }}
	}
	if !needs.VMs {
		return tables, keys
	}
	tables["Port_Binding"] = append(slices.Clone(tables["Port_Binding"]), "additional_chassis", "parent_port")
	if needs.ACLs {
		tables["Address_Set"] = []string{"name", "addresses"}
	}
	if !needs.Metadata {
		return tables, keys
	}
	tables["SB_Global"] = append(tables["SB_Global"], "nb_cfg")
	base := sbKeys["Port_Binding"]["external_ids"]
	keys["Port_Binding"] = maps.Clone(keys["Port_Binding"])
	keys["Port_Binding"]["external_ids"] = func(k string) bool { return base(k) || slices.Contains(metadataPortKeys, k) }
	keys["Chassis_Private"] = map[string]func(string) bool{
		"external_ids": func(k string) bool {
			return strings.HasPrefix(k, PublishPrefix) || k == keyAgentID || k == keyAgentCfg || k == keyAgentBridge
		},
	}
	return tables, keys
}

// northboundColumns is what is read of the Northbound database.
func northboundColumns(needs Needs) (ovsdb.Tables, ovsdb.Keys) {
	tables, keys := maps.Clone(nbTables), maps.Clone(nbKeys)
	if needs.LoadBalancing {
		tables["Logical_Router"] = append(slices.Clone(tables["Logical_Router"]), "load_balancer", "load_balancer_group")
	}
	if needs.balances() {
		tables["Load_Balancer"] = []string{"name", "protocol", "vips", "options", "selection_fields", "health_check", "ip_port_mappings"}
		tables["Load_Balancer_Health_Check"] = []string{"vip"}
		tables["Load_Balancer_Group"] = []string{"load_balancer"}
	}
	if needs.VMs && needs.Clients {
		tables["Logical_Switch"] = append(slices.Clone(tables["Logical_Switch"]), "load_balancer", "load_balancer_group")
	}
	if needs.balances() || needs.ACLs {
		tables["NB_Global"] = []string{"options"}
		keys["NB_Global"] = map[string]func(string) bool{"options": func(k string) bool {
			return k == optionDefaultDrop || k == optionTableSize || strings.HasPrefix(k, optionHeldWeight)
		}}
	}
	if !needs.ACLs {
		return tables, keys
	}
	tables["Logical_Switch"] = append(slices.Clone(tables["Logical_Switch"]), "acls")
	tables["ACL"] = []string{"priority", "tier", "direction", "match", "action", "options"}
	tables["Port_Group"] = []string{"name", "ports", "acls"}
	keys["ACL"] = map[string]func(string) bool{"options": func(k string) bool { return k == optionAfterLB }}
	return tables, keys
}

// local is what is read of the vswitch database: all rows of the tables that Rows and another reader need.
func local(needs Needs, others ovsdb.Tables) (ovsdb.Tables, ovsdb.Keys, ovsdb.Conditions) {
	all := []ovsdb.Tables{vswitchTables, others}
	if needs.VMs {
		all = append(all, vswitchPorts)
	}
	tables, keys, conditions := ovsdb.Tables{}, ovsdb.Keys{}, ovsdb.Conditions{}
	for _, list := range all {
		for table, columns := range list {
			both := slices.Sorted(slices.Values(slices.Concat(tables[table], columns)))
			tables[table], conditions[table] = slices.Compact(both), []ovsdb.Clause{ovsdb.All()}
		}
	}
	if slices.Contains(tables["Interface"], "external_ids") {
		keys["Interface"] = map[string]func(string) bool{"external_ids": func(k string) bool { return k == keyIfaceID }}
	}
	return tables, keys, conditions
}

// sameForUs tells whether two states of a row differ in nothing that Rows have of it: nodes
// write of themselves for others, and Interfaces have columns that others read.
func sameForUs(before, after ovsdb.Row) bool {
	switch old := convert(before).(type) {
	case Interface:
		return old == convert(after)
	case Chassis:
		return old == convert(after)
	case ChassisPrivate:
		next, ok := convert(after).(ChassisPrivate)
		return ok && old.UUID == next.UUID && old.Name == next.Name && old.Chassis == next.Chassis && maps.Equal(old.ExternalIDs, next.ExternalIDs)
	}
	return false
}

// ours are the keys of Chassis_Private.external_ids that Sluice's nodes read of each
// other.
func ours(ids map[string]string) map[string]string {
	var out map[string]string
	for k, v := range ids {
		if strings.HasPrefix(k, PublishPrefix) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// ReadsPortBinding tells whether rows of SB Port_Binding have a key of a map
// column when the database has it.
func ReadsPortBinding(column, key string) bool {
	keep, ok := sbKeys["Port_Binding"][column]
	return ok && keep(key)
}

// changes turns a session's batch into changes of the store.
func changes(batch ovsdb.Batch) []Change {
	out := make([]Change, 0, len(batch.Changes))
	for _, c := range batch.Changes {
		t, ok := tableOf[c.Table]
		if !ok {
			continue
		}
		change := Change{Table: t, UUID: UUID(c.UUID)}
		if c.Old != nil && c.New != nil && sameForUs(c.Old, c.New) {
			continue
		}
		if c.New != nil {
			change.New = convert(c.New)
		}
		out = append(out, change)
	}
	return out
}

func convert(row ovsdb.Row) Row {
	switch r := row.(type) {
	case *sb.PortBinding:
		return PortBinding{
			UUID: UUID(r.UUID), LogicalPort: r.LogicalPort, Type: r.Type, Datapath: UUID(r.Datapath),
			Chassis: UUID(value(r.Chassis)), HAChassisGroup: UUID(value(r.HaChassisGroup)),
			AdditionalChassis: uuids(r.AdditionalChassis), ParentPort: value(r.ParentPort),
			Up: value(r.Up), Tag: value(r.Tag), MAC: r.MAC, NATAddresses: r.NatAddresses, VirtualParent: value(r.VirtualParent),
			Options: r.Options, ExternalIDs: r.ExternalIDs,
		}
	case *sb.DatapathBinding:
		return DatapathBinding{UUID: UUID(r.UUID), ExternalIDs: r.ExternalIDs, TunnelKey: uint32(r.TunnelKey)}
	case *sb.Chassis:
		return Chassis{UUID: UUID(r.UUID), Name: r.Name}
	case *sb.ChassisPrivate:
		return ChassisPrivate{UUID: UUID(r.UUID), Chassis: UUID(value(r.Chassis)), Name: r.Name, ExternalIDs: ours(r.ExternalIDs)}
	case *sb.HAChassis:
		return HAChassis{UUID: UUID(r.UUID), Chassis: UUID(value(r.Chassis))}
	case *sb.HAChassisGroup:
		return HAChassisGroup{UUID: UUID(r.UUID), Name: r.Name, Members: uuids(r.HaChassis)}
	case *sb.MACBinding:
		return MACBinding{UUID: UUID(r.UUID), LogicalPort: r.LogicalPort, IP: r.IP}
	case *sb.AdvertisedRoute:
		return AdvertisedRoute{UUID: UUID(r.UUID), Datapath: UUID(r.Datapath), LogicalPort: UUID(r.LogicalPort),
			IPPrefix: r.IPPrefix, TrackedPort: UUID(value(r.TrackedPort))}
	case *vswitch.OpenvSwitch:
		return OpenvSwitch{UUID: UUID(r.UUID), ExternalIDs: r.ExternalIDs}
	case *vswitch.Bridge:
		return Bridge{UUID: UUID(r.UUID), Name: r.Name, Ports: uuids(r.Ports), DatapathType: r.DatapathType}
	case *vswitch.Port:
		return Port{UUID: UUID(r.UUID), Name: r.Name, ExternalIDs: r.ExternalIDs, Interfaces: uuids(r.Interfaces)}
	case *vswitch.Interface:
		return Interface{UUID: UUID(r.UUID), Name: r.Name, Type: r.Type, IfIndex: uint32(value(r.Ifindex)), IfaceID: r.ExternalIDs[keyIfaceID]}
	case *vswitch.SSL:
		return SSL{UUID: UUID(r.UUID), PrivateKey: r.PrivateKey, Certificate: r.Certificate, CACert: r.CaCert}
	default:
		return convertNB(row)
	}
}

func convertNB(row ovsdb.Row) Row {
	switch r := row.(type) {
	case *nb.LogicalRouter:
		return LogicalRouter{UUID: UUID(r.UUID), Ports: uuids(r.Ports), NAT: uuids(r.Nat),
			StaticRoutes: uuids(r.StaticRoutes), Options: r.Options,
			LoadBalancers: uuids(r.LoadBalancer), LoadBalancerGroups: uuids(r.LoadBalancerGroup)}
	case *nb.LogicalRouterPort:
		return LogicalRouterPort{UUID: UUID(r.UUID), Name: r.Name, Networks: r.Networks, Options: r.Options}
	case *nb.LogicalSwitch:
		return LogicalSwitch{UUID: UUID(r.UUID), ExternalIDs: r.ExternalIDs, ACLs: uuids(r.ACLs), LoadBalancers: uuids(r.LoadBalancer), LoadBalancerGroups: uuids(r.LoadBalancerGroup)}
	case *nb.LogicalSwitchPort:
		return LogicalSwitchPort{UUID: UUID(r.UUID), Name: r.Name, Disabled: r.Enabled != nil && !*r.Enabled, DHCPv4: UUID(value(r.Dhcpv4Options))}
	case *nb.DHCPOptions:
		return DHCPOptions{UUID: UUID(r.UUID), Router: r.Options[optionRouter]}
	case *nb.NAT:
		return NAT{UUID: UUID(r.UUID), Type: r.Type, ExternalIP: r.ExternalIP, LogicalIP: r.LogicalIP,
			LogicalPort: value(r.LogicalPort), ExternalMAC: value(r.ExternalMAC), GatewayPort: UUID(value(r.GatewayPort)),
			Conditional: r.AllowedExtIPs != nil || r.ExemptedExtIPs != nil}
	case *nb.LogicalRouterStaticRoute:
		return StaticRoute{UUID: UUID(r.UUID), IPPrefix: r.IPPrefix, Nexthop: r.Nexthop}
	}
	if b := convertLoadBalancers(row); b != nil {
		return b
	}
	return convertACLs(row)
}

func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func uuids(in []string) []UUID {
	if len(in) == 0 {
		return nil
	}
	out := make([]UUID, len(in))
	for i, s := range in {
		out[i] = UUID(s)
	}
	return out
}
