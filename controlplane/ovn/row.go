package ovn

// UUID is a row's _uuid.
type UUID string

// Row is a copy of one database row with the columns that Sluice reads.
type Row interface {
	// Key is the row's _uuid.
	Key() UUID
	table() Table
}

// Table names a table of one of the three databases.
type Table uint8

// The tables that Sluice reads.
const (
	TablePortBinding Table = iota + 1
	TableDatapathBinding
	TableChassis
	TableChassisPrivate
	TableHAChassis
	TableHAChassisGroup
	TableMACBinding
	TableOpenvSwitch
	TableBridge
	TablePort
	TableSSL
	TableLogicalRouter
	TableLogicalRouterPort
	TableNAT
	TableStaticRoute
	TableLogicalSwitch
	TableAdvertisedRoute
	TableLogicalSwitchPort
	TableDHCPOptions
	TableInterface
	TableACL
	TablePortGroup
	TableAddressSet
	TableNBGlobal
	TableLoadBalancer
	TableLoadBalancerGroup
	TableHealthCheck
	TableServiceMonitor
	TableTemplateVar
	TableDatapathGroup
	TableSBGlobal
)

// PortBinding is a row of SB Port_Binding.
type PortBinding struct {
	UUID        UUID
	LogicalPort string
	Type        string
	Datapath    UUID
	// Chassis is empty while the port is bound nowhere.
	Chassis UUID
	// AdditionalChassis are where the port is about to move to, or was just now; with
	// Needs.VMs, from OVN 22.06.
	AdditionalChassis []UUID
	// ParentPort is the port by whose tap this one's frames come, with the VLAN Tag: a
	// trunk's, for its subports. With Needs.VMs.
	ParentPort string
	// HAChassisGroup is empty when the port has none.
	HAChassisGroup UUID
	Up             bool
	// Tag is 0 when the column is empty.
	Tag          int
	MAC          []string
	NATAddresses []string
	// VirtualParent is the port of the VM that has the addresses of a virtual
	// port now; empty while no VM does.
	VirtualParent string
	// Options and ExternalIDs have the keys that ReadsPortBinding tells.
	Options     map[string]string
	ExternalIDs map[string]string
}

// Port_Binding.type values.
const (
	TypeVIF             = ""
	TypePatch           = "patch"
	TypeL3Gateway       = "l3gateway"
	TypeChassisRedirect = "chassisredirect"
	TypeLocalnet        = "localnet"
	TypeVirtual         = "virtual"
	TypeExternal        = "external"
	TypeLocalport       = "localport"
)

// DatapathBinding is a row of SB Datapath_Binding. Its external_ids say whether
// it is a router (logical-router) or a switch (logical-switch), its name, and from
// OVN 25.03 on a router's options:dynamic-routing-vrf-id.
type DatapathBinding struct {
	UUID        UUID
	ExternalIDs map[string]string
	TunnelKey   uint32
}

// IsRouter tells whether the datapath is a logical router.
func (d DatapathBinding) IsRouter() bool { return d.ExternalIDs["logical-router"] != "" }

// NBUUID is the Northbound row that the datapath was made from.
func (d DatapathBinding) NBUUID() UUID {
	if u := d.ExternalIDs["logical-router"]; u != "" {
		return UUID(u)
	}
	return UUID(d.ExternalIDs["logical-switch"])
}

// Name is the name that people gave it: name2 (Neutron's) or name.
func (d DatapathBinding) Name() string {
	if n := d.ExternalIDs["name2"]; n != "" {
		return n
	}
	return d.ExternalIDs["name"]
}

// Chassis is a row of SB Chassis.
type Chassis struct {
	UUID UUID
	Name string
}

// ChassisPrivate is a row of SB Chassis_Private: this node's, and those of the
// other members of followed HA_Chassis_Groups.
type ChassisPrivate struct {
	UUID UUID
	// Chassis is empty for a moment while the chassis comes or goes.
	Chassis UUID
	Name    string
	// ExternalIDs has the keys that begin with PublishPrefix.
	ExternalIDs map[string]string
}

// HAChassis is a row of SB HA_Chassis; those that name this node are followed, and
// the other members of their groups.
type HAChassis struct {
	UUID UUID
	// Chassis is empty while the chassis is not there.
	Chassis UUID
}

// HAChassisGroup is a row of SB HA_Chassis_Group; those of which this node is a
// member are followed.
type HAChassisGroup struct {
	UUID UUID
	Name string
	// Members are rows of HA_Chassis.
	Members []UUID
}

// MACBinding is a row of SB MAC_Binding: a neighbour that a router port learned.
type MACBinding struct {
	UUID UUID
	// LogicalPort is the router port's name, never that of its chassisredirect
	// port.
	LogicalPort string
	// IP is the neighbour's address.
	IP string
}

// OpenvSwitch is the row of the vswitch database's Open_vSwitch table.
type OpenvSwitch struct {
	UUID        UUID
	ExternalIDs map[string]string
}

// Bridge is a row of the vswitch database's Bridge table.
type Bridge struct {
	UUID  UUID
	Name  string
	Ports []UUID
	// DatapathType is read with Needs.VMs.
	DatapathType string
}

// Port is a row of the vswitch database's Port table.
type Port struct {
	UUID        UUID
	Name        string
	ExternalIDs map[string]string
	// Interfaces are read with Needs.VMs.
	Interfaces []UUID
}

// SSL is a row of the vswitch database's SSL table: file names.
type SSL struct {
	UUID                            UUID
	PrivateKey, Certificate, CACert string
}

// LogicalRouter is a row of NB Logical_Router.
type LogicalRouter struct {
	UUID         UUID
	Ports        []UUID
	NAT          []UUID
	StaticRoutes []UUID
	Options      map[string]string
	// With Needs.LoadBalancing.
	LoadBalancers, LoadBalancerGroups []UUID
}

// LogicalRouterPort is a row of NB Logical_Router_Port.
type LogicalRouterPort struct {
	UUID UUID
	Name string
	// Networks are "IP/len".
	Networks []string
	Options  map[string]string
}

// NAT is a row of NB NAT.
type NAT struct {
	UUID       UUID
	Type       string
	ExternalIP string
	LogicalIP  string
	// LogicalPort and ExternalMAC are set together for a distributed floating IP:
	// the VM's port, and the MAC that the address is behind on its chassis.
	LogicalPort, ExternalMAC string
	// GatewayPort is the Logical_Router_Port where it is done, of a router with several
	// distributed gateway ports. Empty: the one that is on the network of ExternalIP.
	GatewayPort UUID
	// Conditional: allowed_ext_ips or exempted_ext_ips is set, so that the
	// translation is limited to some peers.
	Conditional bool
}

// StaticRoute is a row of NB Logical_Router_Static_Route.
type StaticRoute struct {
	UUID     UUID
	IPPrefix string
	Nexthop  string
}

// Key is the row's _uuid.
func (r PortBinding) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (d DatapathBinding) Key() UUID { return d.UUID }

// Key is the row's _uuid.
func (r Chassis) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r ChassisPrivate) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r HAChassis) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r HAChassisGroup) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r MACBinding) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r OpenvSwitch) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r Bridge) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r Port) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r SSL) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r LogicalRouter) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r LogicalRouterPort) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r NAT) Key() UUID { return r.UUID }

// Key is the row's _uuid.
func (r StaticRoute) Key() UUID { return r.UUID }

func (PortBinding) table() Table       { return TablePortBinding }
func (DatapathBinding) table() Table   { return TableDatapathBinding }
func (Chassis) table() Table           { return TableChassis }
func (ChassisPrivate) table() Table    { return TableChassisPrivate }
func (HAChassis) table() Table         { return TableHAChassis }
func (HAChassisGroup) table() Table    { return TableHAChassisGroup }
func (MACBinding) table() Table        { return TableMACBinding }
func (OpenvSwitch) table() Table       { return TableOpenvSwitch }
func (Bridge) table() Table            { return TableBridge }
func (Port) table() Table              { return TablePort }
func (SSL) table() Table               { return TableSSL }
func (LogicalRouter) table() Table     { return TableLogicalRouter }
func (LogicalRouterPort) table() Table { return TableLogicalRouterPort }
func (NAT) table() Table               { return TableNAT }
func (StaticRoute) table() Table       { return TableStaticRoute }
