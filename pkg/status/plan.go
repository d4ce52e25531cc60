package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Plan is the answer to "sluiced --dry-run": what a daemon would change on the node if it
// started now.
type Plan struct {
	// Version is the program's.
	Version string `json:"version"`
	Identity
	// UnderlayMTU is the largest outer packet, in bytes; 0 if the node would forward
	// nothing.
	UnderlayMTU int `json:"underlayMTU,omitempty"`
	// Changes are in the order of their execution; removals would be the last, in the
	// opposite order. Table is device, map, program,
	// attachment, namespace, port, vm or leftover, or one of the tables between the planes.
	Changes []Change `json:"changes"`
	// Unknown are existing rows of which only BGP could tell whether they are wanted.
	Unknown []UnknownRows `json:"unknown,omitempty"`
	// Announcements are the routes that would be announced to Neighbors; the routes that neighbours
	// have now are not read. A neighbour is its address, or the link on which it is expected.
	Announcements []PlannedRoute `json:"announcements,omitempty"`
	Neighbors     []string       `json:"neighbors,omitempty"`
	// UnderlayAnnouncements are the plain unicast routes that would be announced to Neighbors.
	UnderlayAnnouncements []netip.Prefix `json:"underlayAnnouncements,omitempty"`
	// Problems are objects in OVN that cannot be served without a correction.
	Problems []Object `json:"problems,omitempty"`
}

// UnknownRows counts rows of a table.
type UnknownRows struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
	// Why is a sentence for people.
	Why string `json:"why"`
}

// PlannedRoute is a route that would be announced.
type PlannedRoute struct {
	VNI    intent.VNI   `json:"vni"`
	Prefix netip.Prefix `json:"prefix"`
	// Gateway is the logical port by which packets to the prefix would leave.
	Gateway string `json:"gateway"`
}
