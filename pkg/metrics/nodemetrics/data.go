package nodemetrics

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// VRFTraffic is the counters of one VRF.
type VRFTraffic struct {
	VNI                  intent.VNI
	ToFabric, FromFabric status.Traffic
}

// Balanced is what was balanced for a VIP, or for a backend of all its VIPs.
type Balanced struct {
	VNI intent.VNI
	// Of is the address of the VIP or the backend, with the port if it has one.
	Of, Protocol string
	status.VIPTraffic
}

// VIP is what was balanced for a VIP.
type VIP struct {
	Balanced
	// Open is the sessions on the node that have not ended.
	Open uint32
	// TableHash is equal on two nodes exactly if their tables lead all sessions alike; 0: there
	// is no backend, or the VIP is OVN's.
	TableHash uint64
}

// LoadBalancing is the traffic of all VIPs.
type LoadBalancing struct {
	VIPs      []VIP
	Backends  []Balanced
	Evictions []Evictions
	// TableSteps counts the tables of VIPs that got another size.
	TableSteps uint64
}

// Evictions is what became of evicted sessions.
type Evictions struct {
	// Table is the table of VIPs that the maps of sessions are of.
	Table string
	// Evicting: one of them is full, or was within two minutes.
	Evicting bool
	// Translated are packets of backends whose VIP the Maglev tables told.
	Translated uint64
}

// Path is a path of VRFs and the reason for it.
type Path struct{ Path, Reason string }

// VRFImports is what became of the received prefixes that are meant for a VRF.
type VRFImports struct {
	VNI                         intent.VNI
	Imported, Filtered, Waiting int
	// Refused counts by reason since the start.
	Refused map[string]uint64
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

// BFD is the speaker of BFD. Without a session there are no metrics of it.
type BFD struct {
	Sessions map[netip.Addr]*status.BFD
	// Drops is in packets, by reason.
	Drops map[string]uint64
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
