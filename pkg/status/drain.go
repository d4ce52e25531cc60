package status

import (
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Drain is the answer to "sluicectl drain" and "sluicectl undrain".
type Drain struct {
	// Stage is serving, graceful-shutdown, withdrawn or drained.
	Stage string `json:"stage"`
	// Since is when the drain began.
	Since time.Time `json:"since,omitzero"`
	// WithdrawAt is when the routes are withdrawn, or were.
	WithdrawAt time.Time `json:"withdrawAt,omitzero"`
	// Announced is the number of routes that neighbours have: of Type 5, and of
	// addresses that are exposed without EVPN. It is left out where BGP does not run.
	Announced *int `json:"announced,omitempty"`
	// Wanted is the number of routes that a node which serves is to announce. Those that are not
	// announced are on their way, or wait for something: see "sluicectl route list".
	Wanted *int `json:"wanted,omitempty"`
	// Busy are the VRFs that still have traffic, once the routes are withdrawn.
	Busy []intent.VNI `json:"busy,omitempty"`
}
