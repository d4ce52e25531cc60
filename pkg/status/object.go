package status

import (
	"cmp"
	"time"
)

// State is how an object is.
type State string

// The states.
const (
	// OK: wanted and done.
	OK State = "ok"
	// Pending: wanted, and waiting for another object.
	Pending State = "pending"
	// Withheld: not done on purpose, for the reason given; nothing is broken.
	Withheld State = "withheld"
	// Warning: done, and in need of attention.
	Warning State = "warning"
	// Error: wanted, and impossible without a correction.
	Error State = "error"
	// Unknown: sluiced does not run, and only it knows.
	Unknown State = "unknown"
)

// Logged tells whether a change into or out of the state is worth a log line.
func (s State) Logged() bool { return s == Error || s == Warning }

// Object is the state of one thing.
type Object struct {
	// Source is the reporter: evpn, bgp, ebpf, ovs ….
	Source string `json:"source"`
	// Kind is the sort of thing: vrf, gateway, route, bridge, neighbor ….
	Kind string `json:"kind"`
	// Key names the thing within its kind.
	Key   string `json:"key"`
	State State  `json:"state"`
	// Reason is one fixed word with dashes, such as bad-vni: the word of the metric's label and
	// of the documentation. Empty for ok.
	Reason string `json:"reason,omitempty"`
	// Error is a sentence for people: what is wrong, and what to do.
	Error string `json:"error,omitempty"`
	// Since is when the state, reason or error last changed.
	Since time.Time `json:"since"`
}

func (o Object) id() objectID { return objectID{o.Source, o.Kind, o.Key} }

func (o Object) same(p Object) bool {
	return o.State == p.State && o.Reason == p.Reason && o.Error == p.Error
}

type objectID struct{ source, kind, key string }

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), compareKeys(a.Key, b.Key), cmp.Compare(a.Source, b.Source))
}

// compareKeys sorts numbers as numbers: VNI 999 before VNI 1001.
func compareKeys(a, b string) int {
	if isNumber(a) && isNumber(b) && len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return cmp.Compare(a, b)
}

func isNumber(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// Condition is the state of one component of the daemon.
type Condition struct {
	// Name is sb, nb, vswitchd, bgp, dataplane ….
	Name string `json:"name"`
	// Ready tells whether the component does its work.
	Ready bool `json:"ready"`
	// Required tells whether /readyz waits for it.
	Required bool `json:"required"`
	// Reason is one fixed word, such as connecting or in-sync.
	Reason string `json:"reason"`
	// Detail is a sentence for people.
	Detail string    `json:"detail,omitempty"`
	Since  time.Time `json:"since"`
}
