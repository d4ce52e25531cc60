package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Underlay is the answer to "sluicectl underlay": the node's announcements and routes in the underlay.
type Underlay struct {
	// Install tells whether sluiced installs routes.
	Install bool `json:"install"`
	// InSync tells that the neighbours have sent all their unicast routes, or that their time is over.
	InSync        bool                   `json:"inSync"`
	Announcements []UnderlayAnnouncement `json:"announcements"`
	Routes        []UnderlayRoute        `json:"routes"`
}

// UnderlayAnnouncement is a prefix that the node announces or wants to announce.
type UnderlayAnnouncement struct {
	Prefix netip.Prefix `json:"prefix"`
	// VTEP tells that the prefix is the VTEP's.
	VTEP      bool `json:"vtep"`
	Announced bool `json:"announced"`
	// Error is why the prefix is not announced.
	Error string `json:"error,omitempty"`
}

// UnderlayRoute is a learned or installed route of the underlay.
type UnderlayRoute struct {
	Prefix netip.Prefix `json:"prefix"`
	// State is installed; refused, with Reason; waiting; error; or stale: a route of an earlier
	// start that no neighbour has sent yet.
	State string `json:"state"`
	// Hops are the next hops, each with the address via and the device.
	Hops   intent.UnderlayHops `json:"hops"`
	Metric uint32              `json:"metric,omitempty"`
	Source netip.Addr          `json:"source,omitzero"`
	// Stale tells that the route's neighbours are restarting.
	Stale  bool   `json:"stale,omitempty"`
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

// The states of UnderlayRoute.
const (
	UnderlayInstalled = "installed"
	UnderlayRefused   = "refused"
	UnderlayWaiting   = "waiting"
	UnderlayError     = "error"
	UnderlayStale     = "stale"
)
