package tables

import (
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// MetadataDrivers are the actual sides of the tables of metadata.
type MetadataDrivers struct {
	Networks reconcile.Driver[string, intent.MetadataNetwork]
	Ports    reconcile.Driver[string, intent.MetadataPort]
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
	m.Networks = reconcile.NewTable("metadata-networks", d.Networks, reconcile.TableOptions[string, intent.MetadataNetwork]{
		Hold:    func(string, intent.MetadataNetwork) bool { return !inSync() },
		Observe: observe[string](opts.Status.Reporter("metadata-networks"), "metadata-network", nil),
	})
	m.Ports = reconcile.NewTable("metadata-ports", d.Ports, reconcile.TableOptions[string, intent.MetadataPort]{
		Hold:    func(string, intent.MetadataPort) bool { return !inSync() },
		Observe: observe[string](opts.Status.Reporter("metadata-ports"), "metadata-port", nil),
	})
	m.Pipeline = reconcile.NewPipeline(reconcile.PipelineOptions{Log: opts.Log, Dry: opts.Dry, RelistEvery: metadataRelist}, m.Networks, m.Ports)
	return m
}

// Held is as Tables.Held.
func (m *Metadata) Held(stage reconcile.Stage) string {
	if err := m.Pipeline.ListError(stage.Name()); err != nil {
		return "it cannot be read back: " + err.Error()
	}
	if !m.inSync() {
		return "OVN is not in sync"
	}
	return ""
}
