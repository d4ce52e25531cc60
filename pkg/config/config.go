package config

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/logging"
)

// DefaultPath is where sluiced looks for its configuration.
const DefaultPath = "/etc/sluice/sluiced.yaml"

// DefaultNextHopMAC is the MAC that answers a router's ARP and ND for its
// default gateway. It is one constant for the whole cloud, because OVN's
// MAC_Binding outlives the move of a gateway to another node.
var DefaultNextHopMAC = intent.MAC{0x02, 0x53, 0x4c, 0x55, 0x49, 0x43}

// Config is the whole file.
type Config struct {
	// Roles is what this node does. auto: BGP and fabric devices only where
	// Open_vSwitch.external_ids:ovn-cms-options has enable-chassis-as-gw or a
	// gateway port names the node, bound or candidate, or where something that is
	// bound to it is exposed without EVPN (exposure). gateway: always. none:
	// never; the daemon follows OVN and reports, and has VMs' taps alone
	// (loadBalancing.clients, metadata).
	Roles Role `yaml:"roles"`
	// Path is what carries VRFs for which neither evpn.vrfs.<VNI>.path nor
	// external_ids:sluice-path of a gateway port names a path. auto: the eBPF
	// programs, and the kernel's own devices and routes for a VRF that they cannot
	// carry. ebpf: the programs. kernel: the kernel, for every VRF of the node,
	// whatever is said of one, with a VXLAN device for each and without sluice-vxlan.
	Path Path `yaml:"path"`
	// OVN is how the databases are reached.
	OVN OVN `yaml:"ovn"`
	// BGP is the local speaker and its neighbours.
	BGP BGP `yaml:"bgp"`
	// Fabric is the VXLAN side and the link to the provider bridges.
	Fabric Fabric `yaml:"fabric"`
	// Underlay is the node's own part in the routed fabric, for nodes without
	// another routing daemon. All of it is off by default.
	Underlay Underlay `yaml:"underlay"`
	// EVPN is what is announced and imported.
	EVPN EVPN `yaml:"evpn"`
	// Exposure is what is exposed without EVPN. All of it is off by default.
	Exposure Exposure `yaml:"exposure"`
	// Metadata is 169.254.169.254 for the VMs of this node.
	Metadata Metadata `yaml:"metadata"`
	// LoadBalancing is the VIPs of OVN's load balancers.
	LoadBalancing LoadBalancing `yaml:"loadBalancing"`
	// Dataplane is the eBPF maps and where they are pinned.
	Dataplane Dataplane `yaml:"dataplane"`
	// Kernel is the kernel path.
	Kernel Kernel `yaml:"kernel"`
	// OVS is the local Open vSwitch.
	OVS OVS `yaml:"ovs"`
	// Log is the daemon's log on standard error.
	Log logging.Config `yaml:"log"`
	// HTTP is the listener of metrics and health.
	HTTP HTTP `yaml:"http"`
	// Admin is the socket of sluicectl.
	Admin Admin `yaml:"admin"`
	// StateDir holds what has to survive a restart: the indices of VRFs, which
	// are the numbers in their route distinguishers. When it is lost the VRFs
	// get new route distinguishers: routes are announced anew and the old ones
	// end with the restart timer of the neighbours. What the Northbound database said
	// last is there, too, for a start while it is away.
	StateDir string `yaml:"stateDir"`
}

// OVN is how the databases are reached.
type OVN struct {
	// SB is the Southbound database: one or more endpoints
	// (unix:PATH, tcp:HOST:PORT, ssl:HOST:PORT), separated by commas. Empty:
	// Open_vSwitch.external_ids:ovn-remote of the local switch.
	SB string `yaml:"sb"`
	// NB is the Northbound database, in the same form; it is read, and written by
	// "sluicectl lb drain" alone. Empty: none; facts that only it has (NAT, static
	// routes, load balancers of routers, ACLs) are then unknown.
	NB string `yaml:"nb"`
	// VSwitch is the local Open vSwitch database.
	VSwitch string `yaml:"vswitch"`
	// TLS is used for endpoints that start with ssl:.
	TLS TLS `yaml:"tls"`
	// SystemID is the name of this chassis. Empty:
	// Open_vSwitch.external_ids:system-id.
	SystemID string `yaml:"systemID"`
	// InactivityProbe is how long a session may be silent before it is probed,
	// and again before it is given up. 0 switches probing off.
	InactivityProbe configfile.Duration `yaml:"inactivityProbe"`
}

// TLS names the files of a client certificate, in PEM form. All three or none.
type TLS struct {
	// PrivateKey is the file of the key. Empty, like the other two: the SSL
	// table of the local Open vSwitch database.
	PrivateKey string `yaml:"privateKey"`
	// Certificate is the file of the client certificate.
	Certificate string `yaml:"certificate"`
	// CACert is the file of the authority that signed the servers' certificates.
	CACert string `yaml:"caCert"`
}

// Fabric is the VXLAN side and the link to the provider bridges.
type Fabric struct {
	// Port is the UDP port of VXLAN (RFC 7348).
	Port uint16 `yaml:"port"`
	// VTEP is the node's tunnel address, the next hop of its announcements.
	// Empty: the global address on lo, else Open_vSwitch.external_ids:ovn-encap-ip.
	VTEP netip.Addr `yaml:"vtep"`
	// MTU is the largest outer IP packet in bytes. 0: the MTU of the link that
	// has the VTEP address or leads to the neighbours.
	MTU uint16 `yaml:"mtu"`
	// DF is the don't-fragment bit of outer IPv4 packets. auto: as the inner
	// packet has it, set for inner IPv6. set: always. clear: never.
	DF DF `yaml:"df"`
	// UDPChecksum is the checksum of outer UDP packets. auto: none over IPv4,
	// computed over IPv6 (RFC 7348, RFC 8200 section 8.1). on: always. off: never.
	UDPChecksum Checksum `yaml:"udpChecksum"`
	// RouterMAC is the router MAC of this node's routes (RFC 9135). Empty:
	// derived from the system ID.
	RouterMAC intent.MAC `yaml:"routerMAC"`
	// NextHopMAC answers a router's ARP and ND for the next hops that Sluice
	// serves. It has to be the same on every node of the cloud.
	NextHopMAC intent.MAC `yaml:"nextHopMAC"`
	// NextHops lists, by physical network, the addresses that Sluice answers
	// for. It is needed where the provider bridge has ports other than OVN's.
	NextHops map[string][]netip.Addr `yaml:"nextHops"`
	// ICMPSource is at most one address per family: the source of ICMP errors
	// towards OVN for a router that has asked for no next hop, and for which
	// neither SB MAC_Binding nor a default route in NB shows one. Empty: such
	// errors are counted and not sent.
	ICMPSource []netip.Addr `yaml:"icmpSource"`
	// TrustedVTEPs are outer sources that are accepted without a route that
	// names them as next hop.
	TrustedVTEPs []netip.Addr `yaml:"trustedVTEPs"`
	// ResolveViaDefault lets a default route of the node lead to VTEPs (FRR: ip nht
	// resolve-via-default). false: a VTEP that only a default route leads to counts as one
	// without a route, and is not used. Set it where the underlay has a route for each VTEP
	// and the default route leads elsewhere, as to a management network.
	ResolveViaDefault bool `yaml:"resolveViaDefault"`
}

// EVPN is what is announced and imported.
type EVPN struct {
	// Announce is the default for every exposed object: hosts (a route per
	// address), subnets (a route per subnet) or both. external_ids:sluice-announce
	// of a port overrides it.
	Announce Announce `yaml:"announce"`
	// NAT decides for hosts and subnets whose replies OVN would source-NAT. refuse
	// leaves them out; announce exposes them all the same, for clouds in which
	// something else, such as NAT.exempted_ext_ips, keeps their addresses.
	NAT NAT `yaml:"nat"`
	// NATUnknown decides for objects of which it is unknown whether OVN would
	// source-NAT their replies, for lack of an NB session. announce or hold.
	NATUnknown NATUnknown `yaml:"natUnknown"`
	// DynamicRouting is for routers with OVN's options:dynamic-routing (25.03 and
	// later). on: they are Sluice's: what OVN advertises of a router (Southbound
	// table Advertised_Route) is exposed behind its gateway ports that name a VNI,
	// and options:dynamic-routing-vrf-id is the VNI where nothing nearer names one.
	// off: only ports and switches say what is exposed.
	DynamicRouting Switch `yaml:"dynamicRouting"`
	// LearnedRoutes is for routers with OVN's options:dynamic-routing (25.03 and
	// later). on: what the VRF imports is put into the routing table that ovn-controller
	// reads for the router, and becomes a route of the router (Southbound table
	// Learned_Route) to a next hop that Sluice serves. off: a router needs a default
	// route, or static ones, to such a next hop.
	LearnedRoutes Switch `yaml:"learnedRoutes"`
	// Standby is what a node does for gateway ports that are on another chassis and
	// may come to it. on: everything is programmed before, but routes and
	// announcements, and packets for a port that has just left are sent after it.
	// off: nothing; a move then takes longer, and the node less memory.
	Standby Standby `yaml:"standby"`
	// MaxVRFs is the most VRFs of this node, standby ones included, which give way;
	// the next one is an error of its own.
	MaxVRFs uint32 `yaml:"maxVRFs"`
	// VRFs holds what differs for single VRFs, by VNI.
	VRFs map[intent.VNI]VRF `yaml:"vrfs"`
}

// VRF is what holds for one VNI.
type VRF struct {
	// Import are the route targets whose routes enter the VRF, matched exactly:
	// ASN:NUMBER or IPV4:NUMBER. Empty: the automatic one, from any AS.
	Import []intent.RouteTarget `yaml:"import"`
	// Export are the route targets of the VRF's announcements. Empty: the
	// automatic one, (ASN & 0xFFFF):VNI.
	Export []intent.RouteTarget `yaml:"export"`
	// Path is what carries the VRF on this node: auto, ebpf or kernel. Empty:
	// external_ids:sluice-path of a gateway port, else path.
	Path Path `yaml:"path"`
	// Announce off: nothing of the VRF is announced, and all of it forwarded, for
	// a routing daemon beside Sluice that announces it. Empty: on.
	Announce Switch `yaml:"announce"`
	// MaxPrefixes is the most prefixes that the VRF imports. Those that are in stay,
	// and others wait until there is room; sessions are not closed for it. 0: no limit.
	MaxPrefixes uint32 `yaml:"maxPrefixes"`
	// ImportFilter decides which prefixes the VRF imports, IPv4 and IPv6: the first
	// rule that matches. What none matches is denied. Empty: all are imported.
	ImportFilter []PrefixRule `yaml:"importFilter"`
}

// Dataplane is the eBPF maps and where they are pinned.
type Dataplane struct {
	// BPFFS is the directory of pinned maps and programs. It is below a mounted
	// bpffs and belongs to Sluice alone.
	BPFFS string `yaml:"bpffs"`
	// Sizes are the capacities of the maps, in entries. Memory is used as
	// entries are added. A new size takes effect when the daemon starts.
	Sizes Sizes `yaml:"sizes"`
}

// LoadBalancing is the VIPs of OVN's load balancers.
type LoadBalancing struct {
	// Enabled has eBPF balance packets from the fabric to VIPs of load balancers that
	// hang on a router with a gateway port here, and the VIPs announced. That needs ovn.nb;
	// without it what VMs send is balanced alone, by what Southbound has.
	Enabled bool `yaml:"enabled"`
	// NewFlowRate is how many new flows a second of each VIP are recorded, and of each
	// VM to VIPs of its switch, and as many at once; 0: all. Flows above it go where their hash leads, which holds as long as
	// the backends stay the same, and take no row from flows that are there.
	NewFlowRate uint32 `yaml:"newFlowRate"`
	// BackendMetrics has the metrics of each backend served, besides those of each VIP.
	BackendMetrics bool `yaml:"backendMetrics"`
	// Clients has what VMs of this node send to VIPs of their switches balanced on
	// their taps, too, on any node. Else OVN balances it. To switch it off breaks the
	// connections of VMs that eBPF has balanced.
	Clients bool `yaml:"clients"`
	// ACLUnknown is what balances for a VM whose ACLs are not known: ovn or ebpf. ACLs
	// that name a VIP would see the backend in its place.
	ACLUnknown ACLUnknown `yaml:"aclUnknown"`
}

// ACLUnknown is what balances for a VM whose ACLs are not known.
type ACLUnknown string

// The choices.
const (
	BalancedByOVN  ACLUnknown = "ovn"
	BalancedByEBPF ACLUnknown = "ebpf"
)

// OnTaps tells whether VIPs are balanced on VMs' taps.
func (l LoadBalancing) OnTaps() bool { return l.Enabled && l.Clients }

// Kernel is the kernel path.
type Kernel struct {
	// Dummy gives each VRF on the kernel path the device lo-<VNI> with the exposed
	// addresses, for a routing daemon that redistributes them. The node answers
	// for an address whose route into OVN is not there.
	Dummy bool `yaml:"dummy"`
}

// Sizes are capacities in entries.
type Sizes struct {
	// VRFs is the number of tenant routing tables.
	VRFs uint32 `yaml:"vrfs"`
	// Gateways is the number of gateway ports bound to this node.
	Gateways uint32 `yaml:"gateways"`
	// Served is the number of next hops that ARP and ND are answered or dropped
	// for (map served), and as many known ports that nothing is answered for (map
	// known).
	Served uint32 `yaml:"served"`
	// Hosts is the number of single addresses, over all VRFs.
	Hosts uint32 `yaml:"hosts"`
	// Prefixes is the number of longer-than-one-address routes, over all VRFs.
	Prefixes uint32 `yaml:"prefixes"`
	// NextHops is the number of different next-hop groups.
	NextHops uint32 `yaml:"nextHops"`
	// VTEPs is the number of tunnel endpoints that packets are accepted from.
	VTEPs uint32 `yaml:"vteps"`
	// VIPs is the number of VIPs, and of different sets of backends.
	VIPs uint32 `yaml:"vips"`
	// Backends is the number of different backends.
	Backends uint32 `yaml:"backends"`
	// Flows is twice the number of flows to VIPs that are known at once: those that are open, and of
	// each new connection a second some 100, since the rows of closed ones stay for a minute and a
	// half. Of more, those that were not seen for the longest time are forgotten. As many flows that
	// are left to OVN have room beside them. All of the memory is used at once: about 150 bytes for each.
	Flows uint32 `yaml:"flows"`
}

// OVS is the local Open vSwitch.
type OVS struct {
	// RunDir is where ovs-vswitchd keeps the management sockets of its bridges.
	RunDir string `yaml:"runDir"`
}

// HTTP is the listener of metrics and health.
type HTTP struct {
	// Listen is ADDRESS:PORT of /metrics, /livez and /readyz. Empty: no
	// listener. The default is reachable from the node itself only; give
	// webConfig when you open it.
	Listen string `yaml:"listen"`
	// WebConfig is a file in the form of the Prometheus exporter-toolkit: TLS
	// and basic authentication.
	WebConfig string `yaml:"webConfig"`
	// PProf serves Go's profiles under /debug/pprof/.
	PProf bool `yaml:"pprof"`
}

// Admin is the socket of sluicectl.
type Admin struct {
	// Socket is its path. It and its directory are open to root only.
	Socket string `yaml:"socket"`
}
