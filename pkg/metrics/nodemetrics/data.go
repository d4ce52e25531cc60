package nodemetrics

import (
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// VRFTraffic is the counters of one VRF.
type VRFTraffic struct {
	VNI                                intent.VNI
	ToFabricPackets, ToFabricBytes     uint64
	FromFabricPackets, FromFabricBytes uint64
}

// VIPTraffic is what was balanced for a VIP.
type VIPTraffic struct {
	VNI intent.VNI
	// VIP is an address with a port, or an address.
	VIP, Protocol string
	Balanced
	Unrecorded, Drops uint64
	// Known is the flows that the node knows.
	Known uint32
	// TableHash is equal on two nodes exactly if their tables lead all flows alike; 0: there
	// is no backend, or the VIP is OVN's.
	TableHash uint64
}

// BackendTraffic is what was balanced for a backend, of all its VIPs.
type BackendTraffic struct {
	VNI               intent.VNI
	Backend, Protocol string
	Balanced
}

// Balanced is traffic of VIPs. Flows are those that began.
type Balanced struct {
	ToBackendsPackets, ToBackendsBytes uint64
	ToClientsPackets, ToClientsBytes   uint64
	Flows                              uint64
}

// LoadBalancing is the traffic of all VIPs.
type LoadBalancing struct {
	VIPs      []VIPTraffic
	Backends  []BackendTraffic
	Evictions []Evictions
	// TableSteps counts the tables of VIPs that got another size.
	TableSteps uint64
}

// Evictions is what became of flows whose rows were evicted.
type Evictions struct {
	// Table is the table of VIPs that the maps of flows are of.
	Table string
	// Evicting: one of them is full, or was within two minutes.
	Evicting bool
	// Translated are packets of backends whose VIP the Maglev tables told.
	Translated uint64
}

// Path is a path of VRFs and the reason for it.
type Path struct {
	Path, Reason string
	VRFs         int
}

// Machines are those with one path of their flows to VIPs, and one reason for it.
type Machines struct {
	Path, Reason string
	Count        int
}

// VRFImports is what became of the received prefixes that are meant for a VRF.
type VRFImports struct {
	VNI                         intent.VNI
	Imported, Filtered, Waiting int
	// Refused counts by reason since the start.
	Refused map[string]uint64
}

// Drops is the data plane's count of what it did not forward.
type Drops struct {
	// ByReason is in packets.
	ByReason map[string]uint64
	// Unreadable counts sampled drops that could not be read.
	Unreadable uint64
}

// Devices are the devices of the node's way to the fabric.
type Devices struct {
	Drops []DeviceDrops
	// PathMTUs are in bytes of outer packets, for VTEPs whose path takes less than the
	// underlay's MTU.
	PathMTUs map[netip.Addr]int
}

// DeviceDrops is one count of a device.
type DeviceDrops struct {
	Device string
	// Direction is rx or tx; Kind is errors, dropped or missed.
	Direction, Kind string
	Packets         uint64
}

// Table is one table between the planes.
type Table struct {
	Name                   string
	Wanted, Actual, Failed int
	// Lingering are those of Wanted that nobody asks for any more.
	Lingering int
	Held      bool
	// The operations since the start.
	Applied, ApplyErrors, Deleted, DeleteErrors uint64
}

// Map is one map of the data plane.
type Map struct {
	// Table is the table whose rows it holds.
	Name, Table string
	// Used and Size are in rows.
	Used, Size int
}

// Neighbor is one BGP neighbour.
type Neighbor struct {
	Address netip.Addr
	// Interface names a neighbour that is found on a link, in the place of Address.
	Interface string
	ASN       uint32
	Up        bool
	// Flaps counts how often an established session was lost since the start.
	Flaps uint32
	// Established is since when the session is established; zero: it is not.
	Established time.Time
	// PrefixLimit: its prefix limit ended the session.
	PrefixLimit bool
	// Ignored counts UPDATEs that could not be read.
	Ignored                  int
	Received, Accepted, Sent int
	UnicastReceived          int
}

// Underlay is the node's own routes of the fabric.
type Underlay struct {
	// Installed is in routes, Hops in their next hops.
	Installed, Hops int
	// Refused is in learned routes, by reason.
	Refused map[string]int
}

// BGP is the speaker.
type BGP struct {
	Neighbors []Neighbor
	// Rejected is in routes, by reason.
	Rejected map[string]uint64
}

// BFDSession is BFD with one BGP neighbour.
type BFDSession struct {
	Neighbor netip.Addr
	Up       bool
	Flaps    uint32
	In, Out  uint64
}

// BFD is the speaker of BFD. Without a session there are no metrics of it.
type BFD struct {
	Sessions []BFDSession
	// Drops is in packets, by reason.
	Drops map[string]uint64
}

// Metadata is the metadata proxy.
type Metadata struct {
	// Requests is since the start, by outcome.
	Requests         map[string]uint64
	Connections      int
	Serving, Waiting int // listeners
	Ports, Networks  int
	FileErrors       uint64
	// Heartbeat is the last one; zero: none.
	Heartbeat time.Time
}

// Database is one OVSDB session.
type Database struct {
	// Name is sb, nb or vswitchd.
	Name              string
	Connected, InSync bool
	// Rows is the number in the local copy, Sessions that of connections made.
	Rows     int
	Sessions uint64
}
