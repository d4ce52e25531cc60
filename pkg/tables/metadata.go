package tables

import (
	"fmt"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// MetadataDrivers are the actual sides of the tables of metadata.
type MetadataDrivers struct {
	Networks reconcile.Driver[string, intent.MetadataNetwork]
	Ports    reconcile.Driver[string, intent.MetadataPort]
	// InKey tells whether others are still told that a network is served: what serves it
	// stays until they are not. Nil: nobody is told. It may not use the tables.
	InKey func(network string) bool
}

// Metadata are the tables of metadata, in a pipeline of their own: they need no gateway
// port and no BGP, and wait for neither.
type Metadata struct {
	Pipeline *reconcile.Pipeline
	// Networks are the namespaces of metadata ports, there before a port is served in one.
	Networks *reconcile.Table[string, intent.MetadataNetwork]
	Ports    *reconcile.Table[string, intent.MetadataPort]
	inSync   func() bool
}

// metadataRelist is how often taps and namespaces are looked at: programs are taken off
// without an event.
const metadataRelist = 30 * time.Second

// NewMetadata makes the tables, empty. It does no I/O. inSync tells whether Southbound
// and the local database are: a port that is not wanted stays until they are.
func NewMetadata(d MetadataDrivers, inSync func() bool, opts Options) *Metadata {
	m := &Metadata{inSync: inSync}
	stays := func(network string) bool { return !inSync() || d.InKey != nil && d.InKey(network) }
	m.Networks = reconcile.NewTable("metadata-networks", d.Networks, reconcile.TableOptions[string, intent.MetadataNetwork]{
		Hold:    func(network string, _ intent.MetadataNetwork) bool { return stays(network) },
		Observe: observe(opts.Status.Reporter("metadata-networks"), "metadata-network", m.networksChanged),
	})
	m.Ports = reconcile.NewTable("metadata-ports", d.Ports, reconcile.TableOptions[string, intent.MetadataPort]{
		Await:   func(_ string, p, _ intent.MetadataPort, _ bool) error { return m.answersGoTo(p) },
		Hold:    func(_ string, p intent.MetadataPort) bool { return stays(p.Network) },
		Behind:  m.behindNetwork,
		Observe: observe[string](opts.Status.Reporter("metadata-ports"), "metadata-port", nil),
	})
	m.Pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: opts.Log, Dry: opts.Dry, RelistEvery: metadataRelist}, m.Networks, m.Ports)
	return m
}

// networksChanged has the ports looked at again that wait for their network's namespace.
func (m *Metadata) networksChanged(events []reconcile.Event[string]) {
	made := map[string]bool{}
	for _, e := range events {
		if e.Programmed {
			made[e.Key] = true
		}
	}
	m.Pipeline.Update(func() {
		m.Ports.TouchWhere(func(k string, p intent.MetadataPort) bool { return made[p.Network] && !m.Ports.ProgrammedLocked(k) })
	})
}

// behindNetwork has a port that is served in its network's namespace wait for that.
func (m *Metadata) behindNetwork(stage, bool) func(string, intent.MetadataPort) bool {
	late := map[string]bool{}
	m.Networks.EachPendingLocked(func(network string, _ intent.MetadataNetwork) { late[network] = true })
	return func(_ string, v intent.MetadataPort) bool { return v.Tap == (intent.Tap{}) && late[v.Network] }
}

// answersGoTo tells whether the namespace of a port that has no tap knows the port's MAC
// address: before, an answer to its address could go to whoever says to have it.
func (m *Metadata) answersGoTo(p intent.MetadataPort) error {
	if p.Tap != (intent.Tap{}) {
		return nil
	}
	wanted, _ := m.Networks.LookupLocked(p.Network)
	now, _ := m.Networks.ActualLocked(p.Network)
	if wanted.Neighbours == now.Neighbours {
		return nil
	}
	guests, known := p.Guests.All(), now.Neighbours.All()
	for _, n := range wanted.Neighbours.All() {
		if slices.ContainsFunc(guests, func(g intent.Guest) bool { return g.MAC == n.MAC }) && !slices.Contains(known, n) {
			return fmt.Errorf("%w for neighbour %s in the namespace of network %s", reconcile.ErrNotReady, n, p.Network)
		}
	}
	return nil
}

// Held is as Tables.Held.
func (m *Metadata) Held(stage reconcile.Stage) string {
	if why := stuck(m.Pipeline, stage); why != "" {
		return why
	}
	if !m.inSync() {
		return "OVN is not in sync"
	}
	return ""
}
