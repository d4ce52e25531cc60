package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Plan is the answer to "sluiced --dry-run": what a daemon that started now
// would change on the node.
type Plan struct {
	// Version is the program's.
	Version string `json:"version"`
	Identity
	// UnderlayMTU is the largest outer packet, in bytes; 0 where the node would
	// forward nothing.
	UnderlayMTU int `json:"underlayMTU,omitempty"`
	// Changes are in the order in which they would be made; removals would be
	// made last and in the opposite order. Table is device, map, program,
	// attachment, namespace, port, guest or leftover, or one of the tables between the planes.
	Changes []Change `json:"changes"`
	// Unknown are rows that are there and of which only BGP could tell whether
	// they are wanted.
	Unknown []UnknownRows `json:"unknown,omitempty"`
	// Announcements are what would be told to Neighbors. What neighbours have
	// now is not asked. A neighbour is its address, or the link it is to be found on.
	Announcements []PlannedRoute `json:"announcements,omitempty"`
	Neighbors     []string       `json:"neighbors,omitempty"`
	// UnderlayAnnouncements would be told to them as plain unicast.
	UnderlayAnnouncements []netip.Prefix `json:"underlayAnnouncements,omitempty"`
	// Problems are objects in OVN that cannot be served as they are.
	Problems []Object `json:"problems,omitempty"`
}

// UnknownRows counts rows of a table.
type UnknownRows struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
	// Why is the sentence for people.
	Why string `json:"why"`
}

// PlannedRoute is a route that would be announced.
type PlannedRoute struct {
	VNI    intent.VNI   `json:"vni"`
	Prefix netip.Prefix `json:"prefix"`
	// Gateway is the logical port that packets to it would leave through.
	Gateway string `json:"gateway"`
}
