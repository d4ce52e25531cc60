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
	// Announced is the number of routes that neighbours have: Type-5 routes, and addresses that
	// are exposed without EVPN. Absent if BGP does not run.
	Announced *int `json:"announced,omitempty"`
	// Wanted is the number of routes that the node announces while it serves. Routes that are not
	// announced yet are in progress, or wait: see "sluicectl route list".
	Wanted *int `json:"wanted,omitempty"`
	// Busy are the VRFs with traffic after the withdrawal of the routes.
	Busy []intent.VNI `json:"busy,omitempty"`
}
