package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Query asks why a packet goes, or does not go, from Src to Dst in a VRF.
type Query struct {
	VRF intent.VNI `json:"vrf"`
	Src netip.Addr `json:"src"`
	Dst netip.Addr `json:"dst"`
}

// Layer is the part of Sluice that a step looks at.
type Layer string

// The layers, in the order in which a path is told.
const (
	LayerOVN       Layer = "ovn"
	LayerIntent    Layer = "intent"
	LayerBGP       Layer = "bgp"
	LayerOVS       Layer = "ovs"
	LayerDataplane Layer = "dataplane"
)

// Step is one thing that a path needs.
type Step struct {
	Layer Layer `json:"layer"`
	// Object names the row that was looked for: "Port_Binding cr-lrp-red",
	// "route 1001 10.20.0.0/24".
	Object string `json:"object"`
	// Found tells whether it is there. The first step that is neither found nor
	// stale cuts the path.
	Found bool `json:"found"`
	// Stale: the step is not found and does not cut the path, since the data plane still has
	// what came of it.
	Stale bool `json:"stale,omitempty"`
	// Detail is what the row says.
	Detail string `json:"detail,omitempty"`
	// Hint says what to do when it is not there.
	Hint string `json:"hint,omitempty"`
}
