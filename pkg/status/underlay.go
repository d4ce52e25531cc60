package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Underlay is the answer to "sluicectl underlay": the node's own part in the fabric.
type Underlay struct {
	// Install tells whether routes are installed at all.
	Install bool `json:"install"`
	// InSync tells that the neighbours have sent all their unicast routes, or had their time.
	InSync        bool                   `json:"inSync"`
	Announcements []UnderlayAnnouncement `json:"announcements"`
	Routes        []UnderlayRoute        `json:"routes"`
}

// UnderlayAnnouncement is a prefix that the node announces, or is to announce.
type UnderlayAnnouncement struct {
	Prefix netip.Prefix `json:"prefix"`
	// VTEP tells that it is the tunnel endpoint's.
	VTEP      bool `json:"vtep"`
	Announced bool `json:"announced"`
	// Error is why it is not.
	Error string `json:"error,omitempty"`
}

// UnderlayRoute is a route of the fabric that the node learned, or has installed.
type UnderlayRoute struct {
	Prefix netip.Prefix `json:"prefix"`
	// State is installed; refused, with Reason; waiting; error; or stale, of a route
	// of an earlier start that no neighbour has sent yet.
	State string `json:"state"`
	// Hops are its next hops, each with the address via and the device.
	Hops   intent.UnderlayHops `json:"hops"`
	Metric uint32              `json:"metric,omitempty"`
	Source netip.Addr          `json:"source,omitzero"`
	// Stale tells that its neighbours are restarting.
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
