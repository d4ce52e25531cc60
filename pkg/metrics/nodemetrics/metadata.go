package nodemetrics

import (
	"time"

	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// NewMetadata makes the registry of the metadata proxy, as New does.
func NewMetadata(version string, failed func(collector string, err error)) *Metrics {
	return &Metrics{metrics.NewRegistry(version, failed, both, proxy)}
}

// ObserveMetadata counts the time that one request took.
func (m *Metrics) ObserveMetadata(d time.Duration) { m.Observe(metadataSeconds, d) }

// AddMetadata serves the metadata proxy.
func (m *Metrics) AddMetadata(read func() status.MetadataProxy) {
	m.Add("metadata", func(e metrics.Emitter) error {
		d := read()
		for _, o := range d.Outcomes {
			e.Emit(metadataRequests, float64(o.Requests), o.Outcome)
		}
		e.Emit(metadataConnections, float64(d.Connections))
		serving := 0
		for _, l := range d.Listeners {
			if l.Serving {
				serving++
			}
		}
		e.Emit(metadataListeners, float64(serving), "serving")
		e.Emit(metadataListeners, float64(len(d.Listeners)-serving), "waiting")
		e.Emit(metadataKnown, float64(d.Ports), "port")
		e.Emit(metadataKnown, float64(d.Networks), "network")
		e.Emit(metadataFileErrors, float64(d.FileErrors))
		if !d.Heartbeat.IsZero() {
			e.Emit(metadataHeartbeat, time.Since(d.Heartbeat).Seconds())
		}
		return nil
	})
}

// AddSteered serves what became of metadata's packets, by outcome.
func (m *Metrics) AddSteered(read func() (map[string]uint64, error)) {
	m.Add("steered", func(e metrics.Emitter) error {
		counts, err := read()
		for outcome, n := range counts {
			e.Emit(metadataPackets, float64(n), outcome)
		}
		return err
	})
}
