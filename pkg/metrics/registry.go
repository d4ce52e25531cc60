package metrics

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// The metrics of every registry.
var (
	own       List
	buildInfo = own.Gauge("sluice_build_info", "Always 1; the labels are the versions of the program and of Go.", "version", "goversion")
	success   = own.Gauge("sluice_collector_success", "1 when the source of these metrics was readable at this scrape, else 0.", "collector")
)

// Declared is the metrics of a registry of these lists, in the order of their declaration.
func Declared(lists ...List) List { return slices.Concat(own, slices.Concat(lists...)) }

// Registry is the metrics of a process: those of its lists, Go's and the process's.
type Registry struct {
	reg        *prometheus.Registry
	histograms map[*Metric]prometheus.Histogram
	failed     func(collector string, err error)
}

// NewRegistry makes a registry of lists. failed is told when a source cannot be read and, with
// nil, when it can be read again.
func NewRegistry(version string, failed func(collector string, err error), lists ...List) *Registry {
	r := &Registry{reg: prometheus.NewRegistry(), histograms: map[*Metric]prometheus.Histogram{}, failed: failed}
	r.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, m := range slices.Concat(lists...) {
		if m.Type == Histogram {
			r.histograms[m] = prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.buckets})
			r.reg.MustRegister(r.histograms[m])
		}
	}
	r.Add("build", func(e Emitter) error {
		e.Emit(buildInfo, 1, version, runtime.Version())
		return nil
	})
	return r
}

// Gatherer is what the HTTP listener serves.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.reg }

// Observe counts a time in a histogram of the registry's lists.
func (r *Registry) Observe(histogram *Metric, d time.Duration) {
	r.histograms[histogram].Observe(d.Seconds())
}

// Add serves what read emits.
func (r *Registry) Add(name string, read func(Emitter) error) {
	r.reg.MustRegister(&source{name: name, read: read, failed: r.failed})
}

// AddSlice serves what each emits of each row that can be read.
func AddSlice[T any](r *Registry, name string, read func() ([]T, error), each func(Emitter, T)) {
	r.Add(name, func(e Emitter) error {
		rows, err := read()
		for _, row := range rows {
			each(e, row)
		}
		return err
	})
}

// Flag is 1 for true, else 0.
func Flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// source is one collector. It describes nothing in advance, since which labels
// there are is only known when it is read.
type source struct {
	name   string
	read   func(Emitter) error
	failed func(string, error)

	mu     sync.Mutex
	broken bool
}

func (s *source) Describe(chan<- *prometheus.Desc) {}

func (s *source) Collect(ch chan<- prometheus.Metric) {
	err := s.read(Emitter{ch})
	Emitter{ch}.Emit(success, Flag(err == nil), s.name)
	s.mu.Lock()
	changed := s.broken != (err != nil)
	s.broken = err != nil
	s.mu.Unlock()
	if changed {
		s.failed(s.name, err)
	}
}

// Emitter takes the values of one scrape.
type Emitter struct{ ch chan<- prometheus.Metric }

// Emit serves a value of a counter or a gauge, with its labels in the order of the declaration.
func (e Emitter) Emit(m *Metric, v float64, labels ...string) {
	t := prometheus.GaugeValue
	if m.Type == Counter {
		t = prometheus.CounterValue
	}
	e.ch <- prometheus.MustNewConstMetric(m.desc, t, v, labels...)
}
