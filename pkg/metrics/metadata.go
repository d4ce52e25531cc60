package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// NewMetadata makes the registry of the metadata proxy, as New does.
func NewMetadata(version string, failed func(collector string, err error)) *Metrics {
	m := &Metrics{metadata: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: metadataSeconds.Name, Help: metadataSeconds.Help, Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 13)})}
	m.begin(version, failed, m.metadata)
	return m
}

// ObserveMetadata counts the time that one request took.
func (m *Metrics) ObserveMetadata(d time.Duration) { m.metadata.Observe(d.Seconds()) }

// AddMetadata serves the metadata proxy.
func (m *Metrics) AddMetadata(read func() (Metadata, error)) {
	m.add("metadata", func(e emitter) error {
		d, err := read()
		if err != nil {
			return err
		}
		for outcome, n := range d.Requests {
			e.emit(metadataRequests, float64(n), outcome)
		}
		e.emit(metadataConnections, float64(d.Connections))
		e.emit(metadataListeners, float64(d.Serving), "serving")
		e.emit(metadataListeners, float64(d.Waiting), "waiting")
		e.emit(metadataKnown, float64(d.Ports), "port")
		e.emit(metadataKnown, float64(d.Networks), "network")
		e.emit(metadataFileErrors, float64(d.FileErrors))
		if !d.Heartbeat.IsZero() {
			e.emit(metadataHeartbeat, time.Since(d.Heartbeat).Seconds())
		}
		return nil
	})
}

// AddSteered serves what became of metadata's packets, by outcome.
func (m *Metrics) AddSteered(read func() (map[string]uint64, error)) {
	m.add("steered", func(e emitter) error {
		counts, err := read()
		for outcome, n := range counts {
			e.emit(metadataPackets, float64(n), outcome)
		}
		return err
	})
}
