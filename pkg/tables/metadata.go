package tables

import (
	"fmt"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Metadata are the tables of metadata, in a pipeline of their own: they need no gateway
// port and no BGP, and wait for neither.
type Metadata struct {
	group[*Metadata]
	inSync func() bool
	// told tells whether others are still told that a network is served: what serves it
	// stays until they are not. Nil: nobody is told. It may not use the tables.
	told func(network string) bool
}

// metadataRelist is how often taps and namespaces are looked at: programs are taken off
// without an event.
const metadataRelist = 30 * time.Second

// metadataOrder is that of the tables: the namespaces of metadata ports are there before a port is
// served in one.
var metadataOrder = []entry[*Metadata]{metadataNetworks, metadataPorts}

var metadataNetworks = table[*Metadata, string, intent.MetadataNetwork]{
	of: intent.MetadataNetworks, from: fromOVN,
	options: func(m *Metadata, _ Options) reconcile.TableOptions[string, intent.MetadataNetwork] {
		return reconcile.TableOptions[string, intent.MetadataNetwork]{
			Hold:    func(network string, _ intent.MetadataNetwork) bool { return m.stays(network) },
			Observe: m.networksChanged,
		}
	},
}

var metadataPorts = table[*Metadata, string, intent.MetadataPort]{
	of: intent.MetadataPorts, from: fromOVN,
	options: func(m *Metadata, _ Options) reconcile.TableOptions[string, intent.MetadataPort] {
		return reconcile.TableOptions[string, intent.MetadataPort]{
			Await:  func(_ string, p, _ intent.MetadataPort, _ bool) error { return m.answersGoTo(p) },
			Hold:   func(_ string, p intent.MetadataPort) bool { return m.stays(p.Network) },
			Behind: m.behindNetwork,
		}
	},
}

// NewMetadata makes the tables, empty. It does no I/O. inSync tells whether Southbound
// and the local database are: a port that is not wanted stays until they are. told is as
// Metadata has it.
func NewMetadata(d Drivers, inSync func() bool, told func(network string) bool, opts Options) *Metadata {
	m := &Metadata{inSync: inSync, told: told}
	m.begin(m, metadataOrder, d, opts, metadataRelist)
	return m
}

// Set replaces all rows that OVN asks for. Call it inside an update of the pipeline.
func (m *Metadata) Set(all wanted.Set) { m.setAll(m, all) }

// Update changes them. Call it inside an update of the pipeline.
func (m *Metadata) Update(d wanted.Difference) { m.updateAll(m, d) }

func (m *Metadata) stays(network string) bool {
	return !m.inSync() || m.told != nil && m.told(network)
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
		Of(m, intent.MetadataPorts).TouchWhere(func(k string, p intent.MetadataPort) bool {
			return made[p.Network] && !Of(m, intent.MetadataPorts).ProgrammedLocked(k)
		})
	})
}

// behindNetwork has a port that is served in its network's namespace wait for that.
func (m *Metadata) behindNetwork(stage, bool) func(string, intent.MetadataPort) bool {
	late := map[string]bool{}
	Of(m, intent.MetadataNetworks).EachPendingLocked(func(network string, _ intent.MetadataNetwork) { late[network] = true })
	return func(_ string, v intent.MetadataPort) bool { return v.Tap == (intent.Tap{}) && late[v.Network] }
}

// answersGoTo tells whether the namespace of a port that has no tap knows the port's MAC
// address: before, an answer to its address could go to whoever says to have it.
func (m *Metadata) answersGoTo(p intent.MetadataPort) error {
	if p.Tap != (intent.Tap{}) {
		return nil
	}
	want, _ := Of(m, intent.MetadataNetworks).LookupLocked(p.Network)
	now, _ := Of(m, intent.MetadataNetworks).ActualLocked(p.Network)
	if want.Neighbours == now.Neighbours {
		return nil
	}
	guests, known := p.Addresses.All(), now.Neighbours.All()
	for _, n := range want.Neighbours.All() {
		if slices.ContainsFunc(guests, func(g intent.PortAddress) bool { return g.MAC == n.MAC }) && !slices.Contains(known, n) {
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
