package status

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Status is the answer to "sluicectl status".
type Status struct {
	// Version is the program's version, Started the time of its start.
	Version string    `json:"version"`
	Started time.Time `json:"started,omitzero"`
	Identity
	// Ready is the answer of /readyz.
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"components"`
	// Tables are the sizes of the data plane's tables.
	Tables []Table `json:"tables,omitempty"`
	// Counts are the numbers of objects by state; Problems the objects that are not ok. Both, and
	// Conditions, are null when Offline.
	Counts   []StateCount `json:"counts"`
	Problems []Object     `json:"problems"`
	// Offline is set when sluiced does not answer, and the answer is read from the pinned maps.
	// Fields that only sluiced knows are absent.
	Offline bool `json:"offline,omitempty"`
}

// Identity is a node's identity in OVN and in the fabric.
type Identity struct {
	// Chassis is this node's name in OVN.
	Chassis string `json:"chassis,omitempty"`
	// Role is the node's role and RoleReason the cause: "gateway", "port lrp-red".
	Role       string `json:"role,omitempty"`
	RoleReason string `json:"roleReason,omitempty"`
	// VTEP, RouterID and RouterMAC are set for a gateway.
	VTEP      netip.Addr `json:"vtep,omitzero"`
	RouterID  netip.Addr `json:"routerID,omitzero"`
	RouterMAC intent.MAC `json:"routerMAC,omitzero"`
}

// Table is one table between the planes.
type Table struct {
	Name string `json:"name"`
	// Wanted and Actual are numbers of rows, Failed the number of rows with an error. Wanted and
	// Failed are absent if unknown.
	Wanted *int `json:"wanted,omitempty"`
	Actual int  `json:"actual"`
	Failed *int `json:"failed,omitempty"`
	// Lingering is the number of wanted rows that no source asks for: sessions may still need them.
	Lingering int `json:"lingering,omitempty"`
	// Maps are the maps that hold the rows, for tables of the data plane.
	Maps []MapFill `json:"maps,omitempty"`
	// Held is why no row is deleted now; empty: rows are deleted.
	Held string `json:"held,omitempty"`
	// Operations are for metrics alone.
	Operations Operations `json:"-"`
}

// Operations counts rows since the start.
type Operations struct{ Applied, ApplyErrors, Deleted, DeleteErrors uint64 }

// MapFill is the fill of a map.
type MapFill struct {
	Name string `json:"name"`
	// Used and Size are numbers of rows.
	Used int `json:"used"`
	Size int `json:"size"`
}

// VRF is one row of "sluicectl vrf list" and, with the lists filled, the answer
// to "sluicectl vrf show".
type VRF struct {
	VNI   intent.VNI `json:"vni"`
	Index uint16     `json:"index"`
	// State is pending, with the reason "held", if only the maps have the VRF.
	State State `json:"state"`
	// StateReason and Error tell why the state is not ok.
	StateReason string `json:"stateReason,omitempty"`
	Error       string `json:"error,omitempty"`
	// Path is the path of the VRF's packets now: ebpf or kernel. Reason is a word for the
	// choice of the path, and ReasonDetail an optional sentence.
	Path         string `json:"path,omitempty"`
	Reason       string `json:"reason,omitempty"`
	ReasonDetail string `json:"reasonDetail,omitempty"`
	// RD is the route distinguisher, router-id:index.
	RD         string   `json:"rd,omitempty"`
	Import     []string `json:"import,omitempty"`
	Export     []string `json:"export,omitempty"`
	AutoImport bool     `json:"autoImport,omitempty"`
	// Local and Remote are numbers of routes into OVN and to other nodes.
	Local  int `json:"local"`
	Remote int `json:"remote"`
	// Filtered and Waiting are numbers of received prefixes that the VRF refuses: denied by its
	// import filter, or above MaxPrefixes.
	Filtered    int    `json:"filtered,omitempty"`
	Waiting     int    `json:"waiting,omitempty"`
	MaxPrefixes uint32 `json:"maxPrefixes,omitempty"`
	// ToFabric and FromFabric count forwarded packets.
	ToFabric   Traffic        `json:"toFabric"`
	FromFabric Traffic        `json:"fromFabric"`
	Gateways   []GatewayEntry `json:"gateways,omitempty"`
	Routes     []Route        `json:"routes,omitempty"`
	Objects    []Object       `json:"objects,omitempty"`
}

// Traffic counts packets and bytes of inner IP.
type Traffic struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// GatewayEntry is a port by which a VRF's traffic enters OVN.
type GatewayEntry struct {
	// LogicalPort is the Port_Binding's logical port, Kind cr-lrp or l3gateway.
	LogicalPort string       `json:"logicalPort"`
	Kind        string       `json:"kind"`
	Bridge      string       `json:"bridge"`
	VLAN        uint16       `json:"vlan,omitempty"`
	MAC         intent.MAC   `json:"mac"`
	Addresses   []netip.Addr `json:"addresses,omitempty"`
	// Served are the next hops that Sluice answers ARP and ND for.
	Served []netip.Prefix `json:"served,omitempty"`
	State  State          `json:"state"`
}

// Route is one row of "sluicectl route list".
type Route struct {
	VNI    intent.VNI   `json:"vni"`
	Prefix netip.Prefix `json:"prefix"`
	// Kind is local, remote or block.
	Kind string `json:"kind"`
	// Gateway is the port of a local route.
	Gateway string `json:"gateway,omitempty"`
	// NextHops are the next hops of a remote route.
	NextHops []intent.NextHop `json:"nextHops,omitempty"`
	// Programmed tells that the data plane has the route.
	Programmed bool `json:"programmed"`
	// Announced tells that BGP announces the route to at least one neighbour. Absent for routes
	// that this node does not announce, and if unknown.
	Announced *bool `json:"announced,omitempty"`
	// State is the row's state, or its announcement's if the row is programmed.
	State State `json:"state"`
	// Reason and Error tell why the state is not ok.
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Compare orders routes by VNI, address and length.
func (r Route) Compare(o Route) int {
	return cmp.Or(cmp.Compare(r.VNI, o.VNI), r.Prefix.Addr().Compare(o.Prefix.Addr()), cmp.Compare(r.Prefix.Bits(), o.Prefix.Bits()))
}

// Neighbor is one row of "sluicectl bgp neighbors".
type Neighbor struct {
	// Address is absent until the router of Interface is found.
	Address netip.Addr `json:"address,omitzero"`
	// Interface is the link on which the neighbour is found.
	Interface   string `json:"interface,omitempty"`
	Description string `json:"description,omitempty"`
	ASN         uint32 `json:"asn"`
	// Families are the session's address families, such as evpn and ipv4.
	Families []string `json:"families"`
	// UnicastReceived is the number of plain unicast routes from the neighbour.
	UnicastReceived int `json:"unicastReceived"`
	// UnicastSent is the number of plain unicast routes to the neighbour.
	UnicastSent int `json:"unicastSent"`
	// State is the FSM's: idle, connect, active, opensent, openconfirm, established;
	// or prefix-limit after the neighbour sent too many routes.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Up is for metrics alone: the session is established, with the families that routes need.
	Up bool `json:"-"`
	// Flaps counts how often the session was lost since the daemon started.
	Flaps uint32 `json:"flaps"`
	// Received, Accepted and Sent are numbers of Type-5 routes.
	Received int `json:"received"`
	Accepted int `json:"accepted"`
	Sent     int `json:"sent"`
	// Rejected is the number of routes from the neighbour that are not used, by reason: of Type-5
	// routes and of plain unicast routes. It lacks those that a single VRF leaves out, and those
	// without a route to the next hop.
	Rejected map[string]int `json:"rejected,omitempty"`
	// EndOfRIB tells that the neighbour has sent all its routes (RFC 4724).
	EndOfRIB bool `json:"endOfRIB"`
	// Restarting tells that the neighbour restarts, and its routes are stale.
	Restarting bool `json:"restarting,omitempty"`
	// MessagesIn and MessagesOut are numbers of UPDATE messages.
	MessagesIn  uint64 `json:"messagesIn"`
	MessagesOut uint64 `json:"messagesOut"`
	// Retry is when sluiced retries a session that the prefix limit ended.
	Retry time.Time `json:"retry,omitzero"`
	// IgnoredUpdates is the number of the session's UPDATE messages with unreadable routes: the
	// neighbour's routes may differ from those shown.
	IgnoredUpdates int `json:"ignoredUpdates"`
	// LastError is why the session last failed, or is not established.
	LastError string `json:"lastError,omitempty"`
	// BFD is the path to the neighbour, if bgp.neighbors[].bfd is enabled.
	BFD *BFD `json:"bfd,omitempty"`
}

// NeighborPrefixLimit is the state of a session that the neighbour's prefix limit ended.
const NeighborPrefixLimit = "prefix-limit"

// BFD is a session of RFC 5880.
type BFD struct {
	// Path is up; lost, after it was up; off, if the neighbour has switched BFD off; or unknown,
	// if it has not been up.
	Path string `json:"path"`
	// Up is for metrics alone: Path is up.
	Up bool `json:"-"`
	// State is this end's: admin-down, down, init, up.
	State string `json:"state"`
	// RemoteState is the neighbour's, as last received.
	RemoteState string `json:"remoteState"`
	// Diagnostic is why this end last left up, in the words of the RFC.
	Diagnostic string `json:"diagnostic,omitempty"`
	// RemoteDiagnostic is why the neighbour last left up.
	RemoteDiagnostic string `json:"remoteDiagnostic,omitempty"`
	// Since is when State last changed.
	Since time.Time `json:"since,omitzero"`
	// Flaps counts how often the path was lost, or switched off, since the daemon
	// started.
	Flaps uint32 `json:"flaps"`
	// Multihop is whether the session is one of RFC 5883.
	Multihop bool `json:"multihop"`
	// IntervalUs is the agreed interval of this node's packets, in microseconds. 0: no
	// packets now.
	IntervalUs uint64 `json:"intervalUs"`
	// DetectionUs is the time of silence after which the path is lost, in
	// microseconds. 0: no packet was received lately.
	DetectionUs uint64 `json:"detectionUs"`
	// Discriminator is this end's number of the session.
	Discriminator uint32 `json:"discriminator"`
	// RemoteDiscriminator is the neighbour's number of the session. 0: unknown.
	RemoteDiscriminator uint32 `json:"remoteDiscriminator"`
	// PacketsIn is the number of received and used packets.
	PacketsIn uint64 `json:"packetsIn"`
	// PacketsOut is the number of sent packets.
	PacketsOut uint64 `json:"packetsOut"`
	// Problem is what this node sees blocking the session.
	Problem string `json:"problem,omitempty"`
}

// BGPRoute is one row of "sluicectl bgp routes".
type BGPRoute struct {
	// Direction is in or out.
	Direction string       `json:"direction"`
	RD        string       `json:"rd"`
	Prefix    netip.Prefix `json:"prefix"`
	// Label is the VNI on the wire.
	Label     intent.VNI `json:"label"`
	NextHop   netip.Addr `json:"nextHop"`
	RouterMAC intent.MAC `json:"routerMAC"`
	Targets   []string   `json:"targets"`
	// Neighbor is the sender of a route of direction in.
	Neighbor netip.Addr `json:"neighbor,omitzero"`
	// VRFs are the VRFs that import or announce the route.
	VRFs []intent.VNI `json:"vrfs,omitempty"`
	// Stale: the route is kept although its neighbour, or its node, is away.
	Stale bool `json:"stale,omitempty"`
	// Rejected is the reason why no VRF imports the route.
	Rejected string `json:"rejected,omitempty"`
}

// BGP is the answer to "sluicectl bgp".
type BGP struct {
	ASN       uint32     `json:"asn"`
	RouterID  netip.Addr `json:"routerID,omitzero"`
	Neighbors []Neighbor `json:"neighbors"`
	// Dials tells that the BGP server takes no connections and dials: sessions start one to two
	// seconds later.
	Dials bool `json:"dials,omitempty"`
	// Rejected is for metrics alone: routes by reason, since the start.
	Rejected map[string]uint64 `json:"-"`
}
