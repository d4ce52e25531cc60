package status

import (
	"net/netip"
	"time"
)

// MetadataProxy is the answer of the metadata proxy, a process of its own, about itself.
type MetadataProxy struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Backend is as metadata.backend has it. With none the proxy does nothing.
	Backend string `json:"backend"`
	// Ready tells whether it does its work, and Conditions what of it it does not.
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"components"`
	// Ports and Networks are those that the file of identities has.
	Ports    int `json:"ports"`
	Networks int `json:"networks"`
	// FileErrors is for metrics alone: how often the file became unreadable.
	FileErrors uint64 `json:"-"`
	// Connections is how many are open.
	Connections int `json:"connections"`
	// Heartbeat is the last one.
	Heartbeat time.Time          `json:"heartbeat,omitzero"`
	Listeners []MetadataListener `json:"listeners"`
	// Outcomes counts requests since the start.
	Outcomes []MetadataOutcome `json:"outcomes"`
}

// MetadataListener is a place in which the metadata proxy listens, or is to.
type MetadataListener struct {
	// Network is left out for requests that are steered from taps.
	Network   string `json:"network,omitempty"`
	Namespace string `json:"namespace"`
	Address   string `json:"address"`
	// Serving tells that connections are taken.
	Serving bool      `json:"serving"`
	Since   time.Time `json:"since"`
	// Error is why it is not open.
	Error string `json:"error,omitempty"`
}

// MetadataOutcome is how often something became of a request.
type MetadataOutcome struct {
	Outcome     string `json:"outcome"`
	Requests    uint64 `json:"requests"`
	Description string `json:"description"`
}

// MetadataRequest is a metadata request that has come to its end. Nothing of its header,
// its query or its body is stored.
type MetadataRequest struct {
	Time time.Time `json:"time"`
	// Port, Instance, Network and Address are those of the VM; left out where it is
	// not known who asked.
	Port     string     `json:"port,omitempty"`
	Instance string     `json:"instance,omitempty"`
	Network  string     `json:"network,omitempty"`
	Address  netip.Addr `json:"address,omitzero"`
	// Method and Path are left out for a connection that was refused.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Status is that of HTTP; left out where nothing was answered.
	Status  int    `json:"status,omitempty"`
	Outcome string `json:"outcome"`
	// Took is the time from the end of its header to the end of its answer, in
	// nanoseconds.
	Took time.Duration `json:"took"`
}
