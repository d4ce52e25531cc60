package metadata

import (
	"cmp"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Via is the way of a port's requests.
type Via string

// The ways; the package comment explains them.
const (
	ViaTap       Via = "tap"
	ViaNamespace Via = "namespace"
	ViaOVN       Via = "ovn"
	ViaNone      Via = "none"
)

// Kinds of object.
const (
	kindPort    = "port"
	kindNetwork = "network"
)

// PortStatus is what a person asks of a port.
type PortStatus struct {
	Port, Network     string
	Instance, Project string
	Addresses         intent.PortAddressSet
	// Tap is the zero value without one, also where one was found and is not used.
	Tap intent.Tap
	Via Via
	// Reason and Detail say why there is no better way, or what is lacking; State is how
	// bad that is. A port that is served as it should be has none.
	State          status.State
	Reason, Detail string
}

// NetworkStatus is a network that has a namespace, and the ports that it has it for.
type NetworkStatus struct {
	Network, MetadataPort string
	For                   []string
}

// severity orders what is said of one object: the worst counts.
func severity(s status.State) int {
	return slices.Index([]status.State{status.OK, status.Pending, status.Withheld, status.Warning, status.Error}, s)
}

// say notes something of the port. What is said first counts among equals.
func (p *PortStatus) say(state status.State, why, detail string) {
	if p.Reason == "" || severity(state) > severity(p.State) {
		p.State, p.Reason, p.Detail = state, why, detail
	}
}

// objects are the ports and networks of which something is to be said, by kind and key.
func (b *build) objects() []status.Object {
	out := slices.Clone(b.reports)
	for _, p := range b.ports {
		if p.Reason != "" {
			out = append(out, status.Object{Kind: kindPort, Key: p.Port, State: p.State, Reason: p.Reason, Error: p.Detail})
		}
	}
	slices.SortFunc(out, func(x, y status.Object) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Key, y.Key), cmp.Compare(severity(y.State), severity(x.State)), cmp.Compare(x.Reason, y.Reason), cmp.Compare(x.Error, y.Error))
	})
	return slices.CompactFunc(out, func(x, y status.Object) bool { return x.Kind == y.Kind && x.Key == y.Key })
}
