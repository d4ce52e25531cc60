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
	// Roles is what this node does. auto: the node runs BGP and fabric devices where
	// Open_vSwitch.external_ids:ovn-cms-options has enable-chassis-as-gw, where a gateway port
	// names the node (bound or candidate), or where exposure exposes something that is bound to it.
	// gateway: always. none: never; the daemon follows OVN, reports, and serves the taps of VMs
	// (loadBalancing.clients, metadata).
	Roles Role `yaml:"roles"`
	// Path is what carries VRFs for which neither evpn.vrfs.<VNI>.path nor external_ids:sluice-path
	// of a gateway port names a path. auto: the eBPF path; VRFs that eBPF cannot carry use the
	// kernel path. ebpf: the eBPF path. kernel: the kernel path for every VRF of the node, whatever
	// other settings name, with a VXLAN device for each VRF and without sluice-vxlan.
	Path Path `yaml:"path"`
	// OVN is the databases of OVN, and the connections to them.
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
	// StateDir is the directory of what survives a restart: the indices of VRFs, which are the
	// numbers in their route distinguishers, and the last content of the Northbound database, for a
	// start without it. VRFs whose indices are lost get new route distinguishers: the node
	// announces its routes again, and the neighbours delete the old ones when their restart timer
	// expires.
	StateDir string `yaml:"stateDir"`
}

// OVN is the databases of OVN, and the connections to them.
type OVN struct {
	// SB is the Southbound database: one or more endpoints
	// (unix:PATH, tcp:HOST:PORT, ssl:HOST:PORT), separated by commas. Empty:
	// Open_vSwitch.external_ids:ovn-remote of the local switch.
	SB string `yaml:"sb"`
	// NB is the Northbound database, endpoints as in sb. sluiced reads it; only
	// "sluicectl lb drain" and "lb undrain" write. Empty: none; what only Northbound has (NAT, static
	// routes, load balancers of routers, ACLs) is then unknown.
	NB string `yaml:"nb"`
	// VSwitch is the local Open vSwitch database.
	VSwitch string `yaml:"vswitch"`
	// TLS is used for endpoints that start with ssl:.
	TLS TLS `yaml:"tls"`
	// SystemID is the name of this chassis. Empty:
	// Open_vSwitch.external_ids:system-id.
	SystemID string `yaml:"systemID"`
	// InactivityProbe is how long a database session may be silent before it is probed, and after
	// the probe before it is closed. 0: no probes.
	InactivityProbe configfile.Duration `yaml:"inactivityProbe"`
}

// TLS is the client certificate for endpoints that start with ssl:, in PEM files. Give all three
// files, or none.
type TLS struct {
	// PrivateKey is the file of the key. All three empty: the files that the SSL table of the local
	// Open vSwitch database names.
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
	// DF is the don't-fragment bit of outer IPv4 packets. auto: the bit of the inner IPv4 packet,
	// and set for inner IPv6. set: always. clear: never.
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
	// ICMPSource is the source of ICMP errors towards OVN where the router's next hop is not found:
	// the router has sent no ARP or ND for one, and neither MAC_Binding in Southbound nor a default
	// route in Northbound names one. At most one address per family. Empty: such errors are
	// counted, and not sent.
	ICMPSource []netip.Addr `yaml:"icmpSource"`
	// TrustedVTEPs are VTEPs whose packets are accepted although no route has them as next hop.
	TrustedVTEPs []netip.Addr `yaml:"trustedVTEPs"`
	// ResolveViaDefault is whether a default route of the node may lead to VTEPs (FRR: ip nht
	// resolve-via-default). false: a VTEP without a more specific route counts as unreachable.
	// Choose false where the underlay has a route for each VTEP and the default route leads
	// elsewhere, such as to a management network.
	ResolveViaDefault bool `yaml:"resolveViaDefault"`
}

// EVPN is what is announced and imported.
type EVPN struct {
	// Announce is the default for every exposed object: hosts (a route per
	// address), subnets (a route per subnet) or both. external_ids:sluice-announce
	// of a port overrides it.
	Announce Announce `yaml:"announce"`
	// NAT decides about hosts and subnets whose replies OVN would source-NAT. refuse: they are not
	// exposed. announce: they are, for clouds in which something else, such as
	// NAT.exempted_ext_ips, exempts their addresses from NAT.
	NAT NAT `yaml:"nat"`
	// NATUnknown decides about hosts and subnets while it is unknown whether OVN would source-NAT
	// their replies: without ovn.nb, or while Northbound has not answered since the start and the
	// saved rows are not usable. announce: they are exposed. hold: they wait for Northbound.
	NATUnknown NATUnknown `yaml:"natUnknown"`
	// DynamicRouting is whether Sluice serves routers with OVN's options:dynamic-routing (25.03 and
	// later). on: Sluice exposes what OVN advertises of a router (Southbound table
	// Advertised_Route) behind the router's gateway ports with a VNI;
	// options:dynamic-routing-vrf-id is the VNI where no nearer key names one. off: keys of ports
	// and switches alone decide what is exposed.
	DynamicRouting Switch `yaml:"dynamicRouting"`
	// LearnedRoutes is whether routers with OVN's options:dynamic-routing (25.03 and later) learn
	// imported routes. on: Sluice writes the routes that the VRF imports into the routing table
	// that ovn-controller reads for the router; OVN routes by them (Southbound table
	// Learned_Route), to a next hop that Sluice serves. off: the router needs a default route, or
	// static routes, to such a next hop.
	LearnedRoutes Switch `yaml:"learnedRoutes"`
	// Standby is what a node does for gateway ports that are bound elsewhere and may move to it.
	// on: the node programs everything but routes and announcements in advance, and forwards
	// packets for a gateway port that has just moved away to its new node. off: nothing; moves take
	// longer, and the node needs less memory.
	Standby Standby `yaml:"standby"`
	// MaxVRFs is the largest number of VRFs on this node, standby ones included. Another VRF evicts
	// a standby one; without a standby one it is an error.
	MaxVRFs uint32 `yaml:"maxVRFs"`
	// VRFs are the settings of single VRFs, by VNI.
	VRFs map[intent.VNI]VRF `yaml:"vrfs"`
}

// VRF is the settings of one VNI.
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
	// Announce is whether the routes of the VRF are announced. off: the VRF is forwarded, and a
	// routing daemon beside Sluice announces it. Empty: on.
	Announce Switch `yaml:"announce"`
	// MaxPrefixes is the largest number of prefixes that the VRF imports. Imported prefixes stay,
	// and further ones wait for room; BGP sessions stay open. 0: no limit.
	MaxPrefixes uint32 `yaml:"maxPrefixes"`
	// ImportFilter is the rules for the prefixes that the VRF imports, IPv4 and IPv6. The first
	// rule that matches decides; a prefix that no rule matches is denied. Empty: all are imported.
	ImportFilter []PrefixRule `yaml:"importFilter"`
}

// Dataplane is the eBPF maps and where they are pinned.
type Dataplane struct {
	// BPFFS is the directory of pinned maps and programs. It is below a mounted
	// bpffs and belongs to Sluice alone.
	BPFFS string `yaml:"bpffs"`
	// Sizes are the capacities of the maps, in entries. Most maps take memory as entries are added,
	// those of sessionEntries at the start. A new size takes effect when the daemon starts.
	Sizes Sizes `yaml:"sizes"`
}

// LoadBalancing is the VIPs of OVN's load balancers.
type LoadBalancing struct {
	// Enabled is whether eBPF balances packets from the fabric to VIPs of routers with a gateway
	// port on this node; the node announces these VIPs. It needs ovn.nb. Without ovn.nb eBPF
	// balances only what VMs send (clients), by the load balancers in Southbound.
	Enabled bool `yaml:"enabled"`
	// NewSessionRate is the limit of new sessions a second, and of a burst, of each VIP and of each VM
	// to VIPs of its switch. 0: no limit. A session above the limit gets no entry and evicts none;
	// its hash chooses the backend, which stays the same while the backends do.
	NewSessionRate uint32 `yaml:"newSessionRate"`
	// BackendMetrics adds metrics of each backend to those of each VIP.
	BackendMetrics bool `yaml:"backendMetrics"`
	// Clients is whether eBPF balances on taps, on any node, what VMs of this node send to VIPs of
	// their switches. false: OVN balances it. A change to false breaks the connections of VMs that
	// eBPF has balanced.
	Clients bool `yaml:"clients"`
	// ACLUnknown is what balances for a VM whose ACLs are unknown: ovn or ebpf. With ebpf, ACLs
	// that name a VIP see the backend in its place.
	ACLUnknown ACLUnknown `yaml:"aclUnknown"`
}

// ACLUnknown is what balances for a VM whose ACLs are unknown.
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
	// Dummy gives each VRF on the kernel path the device lo-<VNI> with the exposed addresses, for a
	// routing daemon that redistributes them. While an address has no route into OVN, the node
	// itself answers for it.
	Dummy bool `yaml:"dummy"`
}

// Sizes are capacities in entries.
type Sizes struct {
	// VRFs is the number of tenant routing tables.
	VRFs uint32 `yaml:"vrfs"`
	// Gateways is the number of gateway ports bound to this node.
	Gateways uint32 `yaml:"gateways"`
	// Served is the number of next hops whose ARP and ND are answered or dropped (map served), and
	// the number of addresses of ports whose ARP and ND are not answered (map known).
	Served uint32 `yaml:"served"`
	// Hosts is the number of single addresses, over all VRFs.
	Hosts uint32 `yaml:"hosts"`
	// Prefixes is the number of routes to more than a single address, over all VRFs, of each family.
	Prefixes uint32 `yaml:"prefixes"`
	// NextHops is the number of different remote next hops: VTEP, VNI and router MAC.
	NextHops uint32 `yaml:"nextHops"`
	// VTEPs is the number of tunnel endpoints that packets are accepted from.
	VTEPs uint32 `yaml:"vteps"`
	// VIPs is the number of VIPs, and of different sets of backends.
	VIPs uint32 `yaml:"vips"`
	// Backends is the number of different backends.
	Backends uint32 `yaml:"backends"`
	// SessionEntries is twice the number of sessions with VIPs at once: the open ones, and for each new
	// connection a second about 100, since closed sessions expire after 90 seconds. A full map
	// evicts the sessions that have been idle for longest. Sessions that are left to OVN have a map
	// of the same size. All memory is allocated at the start: about 150 bytes for each of `sessionEntries`,
	// twice on a gateway node.
	SessionEntries uint32 `yaml:"sessionEntries"`
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
	// WebConfig is a web configuration file of the Prometheus exporter-toolkit: TLS and basic
	// authentication.
	WebConfig string `yaml:"webConfig"`
	// PProf serves Go's profiles under /debug/pprof/.
	PProf bool `yaml:"pprof"`
}

// Admin is the socket of sluicectl.
type Admin struct {
	// Socket is its path. It and its directory are open to root only.
	Socket string `yaml:"socket"`
}
