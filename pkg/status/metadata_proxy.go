package status

import (
	"net/netip"
	"time"
)

// MetadataProxy is the answer of the metadata proxy, a process of its own, about itself.
type MetadataProxy struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Backend is metadata.backend. With none the proxy does nothing.
	Backend string `json:"backend"`
	// Ready tells whether the proxy does its work; Conditions are the states of its components.
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"components"`
	// Ports and Networks are the numbers of entries in the identities file.
	Ports    int `json:"ports"`
	Networks int `json:"networks"`
	// FileErrors is for metrics alone: how often the file became unreadable.
	FileErrors uint64 `json:"-"`
	// Connections is the number of open connections.
	Connections int `json:"connections"`
	// Heartbeat is the time of the last heartbeat.
	Heartbeat time.Time          `json:"heartbeat,omitzero"`
	Listeners []MetadataListener `json:"listeners"`
	// Outcomes counts requests since the start.
	Outcomes []MetadataOutcome `json:"outcomes"`
}

// MetadataListener is an address of the metadata proxy's, open or waiting.
type MetadataListener struct {
	// Network is absent for requests that are steered from taps.
	Network   string `json:"network,omitempty"`
	Namespace string `json:"namespace"`
	Address   string `json:"address"`
	// Serving tells that the proxy accepts connections.
	Serving bool      `json:"serving"`
	Since   time.Time `json:"since"`
	// Error is why the listener is not open.
	Error string `json:"error,omitempty"`
}

// MetadataOutcome is the number of requests with an outcome.
type MetadataOutcome struct {
	Outcome     string `json:"outcome"`
	Requests    uint64 `json:"requests"`
	Description string `json:"description"`
}

// MetadataRequest is a finished metadata request. Its header, query and body are not stored.
type MetadataRequest struct {
	Time time.Time `json:"time"`
	// Port, Instance, Network and Address are the VM's; absent if the VM is unknown.
	Port     string     `json:"port,omitempty"`
	Instance string     `json:"instance,omitempty"`
	Network  string     `json:"network,omitempty"`
	Address  netip.Addr `json:"address,omitzero"`
	// Method and Path are absent for a refused connection.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Status is the HTTP status; absent without an answer.
	Status  int    `json:"status,omitempty"`
	Outcome string `json:"outcome"`
	// Took is the time from the end of the request's header to the end of the answer, in
	// nanoseconds.
	Took time.Duration `json:"took"`
}
