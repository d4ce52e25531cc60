package status

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Status is the answer to "sluicectl status".
type Status struct {
	// Version is the program's, Started when it started.
	Version string    `json:"version"`
	Started time.Time `json:"started,omitzero"`
	Identity
	// Ready is what /readyz says.
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"components"`
	// Tables are the sizes of the data plane's tables.
	Tables []Table `json:"tables,omitempty"`
	// Counts are the numbers of objects by state; Problems those not ok. They and
	// Conditions are null when Offline.
	Counts   []StateCount `json:"counts"`
	Problems []Object     `json:"problems"`
	// Offline is set when sluiced does not answer and this is what the pinned maps
	// hold. What only sluiced knows is left out.
	Offline bool `json:"offline,omitempty"`
}

// Identity is who a node is in OVN and in the fabric.
type Identity struct {
	// Chassis is this node's name in OVN.
	Chassis string `json:"chassis,omitempty"`
	// Role is what the node does and RoleReason why: "gateway", "port lrp-red".
	Role       string `json:"role,omitempty"`
	RoleReason string `json:"roleReason,omitempty"`
	// VTEP, RouterID and RouterMAC are those of a gateway.
	VTEP      netip.Addr `json:"vtep,omitzero"`
	RouterID  netip.Addr `json:"routerID,omitzero"`
	RouterMAC intent.MAC `json:"routerMAC,omitzero"`
}

// Table is one table between the planes.
type Table struct {
	Name string `json:"name"`
	// Wanted and Actual are numbers of rows, Failed those with an error. Wanted and
	// Failed are left out where they are not known.
	Wanted *int `json:"wanted,omitempty"`
	Actual int  `json:"actual"`
	Failed *int `json:"failed,omitempty"`
	// Lingering are those of Wanted that no source asks for any more: sessions may still need them.
	Lingering int `json:"lingering,omitempty"`
	// Maps are the maps that hold the rows, for tables of the data plane.
	Maps []MapFill `json:"maps,omitempty"`
	// Held tells that nothing is deleted now, and why.
	Held string `json:"held,omitempty"`
	// Operations are for metrics alone.
	Operations Operations `json:"-"`
}

// Operations counts rows since the start.
type Operations struct{ Applied, ApplyErrors, Deleted, DeleteErrors uint64 }

// MapFill is how full a map is.
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
	// State is pending, with the reason "held", where only the maps have the VRF.
	State State `json:"state"`
	// StateReason and Error tell why, where it is not ok.
	StateReason string `json:"stateReason,omitempty"`
	Error       string `json:"error,omitempty"`
	// Path is what carries the VRF's packets now: ebpf or kernel. Reason is a word
	// for why the path is chosen, and ReasonDetail a sentence where there is one.
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
	// Filtered and Waiting are numbers of received prefixes that the VRF does not
	// take: denied by its import filter, or left out since it has MaxPrefixes.
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

// GatewayEntry is where a VRF's traffic enters OVN.
type GatewayEntry struct {
	// LogicalPort is the Port_Binding's, Kind cr-lrp or l3gateway.
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
	// Gateway is the port that a local route leads into.
	Gateway string `json:"gateway,omitempty"`
	// NextHops are those of a remote route.
	NextHops []intent.NextHop `json:"nextHops,omitempty"`
	// Programmed tells that the data plane has it.
	Programmed bool `json:"programmed"`
	// Announced tells that BGP tells it to a neighbour at least. It is left out of
	// routes that are not this node's to announce, and where it is not known.
	Announced *bool `json:"announced,omitempty"`
	// State is that of the row, or of its announcement where the row is programmed.
	State State `json:"state"`
	// Reason and Error are the object's, when it is not ok.
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Compare orders routes by VNI, address and length.
func (r Route) Compare(o Route) int {
	return cmp.Or(cmp.Compare(r.VNI, o.VNI), r.Prefix.Addr().Compare(o.Prefix.Addr()), cmp.Compare(r.Prefix.Bits(), o.Prefix.Bits()))
}

// Neighbor is one row of "sluicectl bgp neighbors".
type Neighbor struct {
	// Address is absent while the router of Interface has not been heard.
	Address netip.Addr `json:"address,omitzero"`
	// Interface is the link of a neighbour that is found there.
	Interface   string `json:"interface,omitempty"`
	Description string `json:"description,omitempty"`
	ASN         uint32 `json:"asn"`
	// Families are those of the session, such as evpn and ipv4.
	Families []string `json:"families"`
	// UnicastReceived is the number of plain unicast routes that it has sent.
	UnicastReceived int `json:"unicastReceived"`
	// UnicastSent is the number of those that it has been sent.
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
	// EndOfRIB tells that the neighbour has sent all it has (RFC 4724).
	EndOfRIB bool `json:"endOfRIB"`
	// Restarting tells that the neighbour restarts, and its routes are stale.
	Restarting bool `json:"restarting,omitempty"`
	// MessagesIn and MessagesOut are numbers of UPDATE messages.
	MessagesIn  uint64 `json:"messagesIn"`
	MessagesOut uint64 `json:"messagesOut"`
	// Retry is when a session that its prefix limit ended is tried again.
	Retry time.Time `json:"retry,omitzero"`
	// IgnoredUpdates is the number of UPDATE messages of this session whose routes
	// could not be read: the neighbour's routes may be others than are shown.
	IgnoredUpdates int `json:"ignoredUpdates"`
	// LastError is why the session last went down, or does not come up.
	LastError string `json:"lastError,omitempty"`
	// BFD is the path to the neighbour, where bgp.neighbors[].bfd is enabled.
	BFD *BFD `json:"bfd,omitempty"`
}

// NeighborPrefixLimit is the state of a session that the neighbour's prefix limit ended.
const NeighborPrefixLimit = "prefix-limit"

// BFD is a session of RFC 5880.
type BFD struct {
	// Path is up; lost after it was; off when the neighbour has switched BFD off; or
	// unknown when it has not been up.
	Path string `json:"path"`
	// Up is for metrics alone: Path is up.
	Up bool `json:"-"`
	// State is this end's: admin-down, down, init, up.
	State string `json:"state"`
	// RemoteState is the neighbour's, as it last said.
	RemoteState string `json:"remoteState"`
	// Diagnostic is why this end last left up, in the words of the RFC.
	Diagnostic string `json:"diagnostic,omitempty"`
	// RemoteDiagnostic is why the neighbour did.
	RemoteDiagnostic string `json:"remoteDiagnostic,omitempty"`
	// Since is when State was last changed.
	Since time.Time `json:"since,omitzero"`
	// Flaps counts how often the path was lost or switched off since the daemon
	// started.
	Flaps uint32 `json:"flaps"`
	// Multihop is whether the session is one of RFC 5883.
	Multihop bool `json:"multihop"`
	// IntervalUs is the agreed interval of this node's packets, in microseconds. 0:
	// none now.
	IntervalUs uint64 `json:"intervalUs"`
	// DetectionUs is the time of silence after which the path is lost, in
	// microseconds. 0: nothing was heard lately.
	DetectionUs uint64 `json:"detectionUs"`
	// Discriminator is what this end calls the session.
	Discriminator uint32 `json:"discriminator"`
	// RemoteDiscriminator is what the neighbour calls it. 0: not known.
	RemoteDiscriminator uint32 `json:"remoteDiscriminator"`
	// PacketsIn is the number of packets that were received and used.
	PacketsIn uint64 `json:"packetsIn"`
	// PacketsOut is the number of packets that were sent.
	PacketsOut uint64 `json:"packetsOut"`
	// Problem is what is in the way of the session, as far as this node sees it.
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
	// Neighbor is where a route of direction in came from.
	Neighbor netip.Addr `json:"neighbor,omitzero"`
	// VRFs are those that the route entered or belongs to.
	VRFs []intent.VNI `json:"vrfs,omitempty"`
	// Stale: its neighbour, or its node, is away.
	Stale bool `json:"stale,omitempty"`
	// Rejected is the reason why it entered none.
	Rejected string `json:"rejected,omitempty"`
}

// BGP is the answer to "sluicectl bgp".
type BGP struct {
	ASN       uint32     `json:"asn"`
	RouterID  netip.Addr `json:"routerID,omitzero"`
	Neighbors []Neighbor `json:"neighbors"`
	// Rejected is for metrics alone: routes by reason, since the start.
	Rejected map[string]uint64 `json:"-"`
}
