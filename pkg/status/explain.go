package status

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Query asks why a packet from Src to Dst in a VRF is delivered, or is not.
type Query struct {
	VRF intent.VNI `json:"vrf"`
	Src netip.Addr `json:"src"`
	Dst netip.Addr `json:"dst"`
}

// Layer is the part of Sluice that a step checks.
type Layer string

// The layers, in the order of a path's steps.
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
	// Object names the row: "Port_Binding cr-lrp-red", "route 1001 10.20.0.0/24".
	Object string `json:"object"`
	// Found tells whether the object exists. The first step that is neither found nor
	// stale cuts the path.
	Found bool `json:"found"`
	// Stale: the object is missing and does not cut the path, because the data plane still has
	// its rows.
	Stale bool `json:"stale,omitempty"`
	// Detail is what the row says.
	Detail string `json:"detail,omitempty"`
	// Hint says what to do when the object is missing.
	Hint string `json:"hint,omitempty"`
}
