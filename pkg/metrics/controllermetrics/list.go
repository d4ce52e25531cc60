package controllermetrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/status"
)

var (
	list         metrics.List
	state        = list.Status("sluice-controller (`nb`; `sb` where it is configured)")
	transactions = list.Counter("sluice_controller_transactions_total", "Transactions of the Northbound database by result: committed, conflict (rows had changed; repeated), unknown (no answer; repeated).", "result")
	leads        = list.Gauge("sluice_controller_leads", "1 when this replica holds the lock for acting on events, else 0.")
	requests     = list.Counter("sluice_controller_requests_total", "Requests of the APIs by method and status code.", "method", "code")
	duration     = list.Histogram("sluice_controller_request_seconds", "Duration of a request.", []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30})
)

// List is the declarations.
func List() metrics.List { return metrics.Declared(list) }

// Store is what the metrics of the store are read from.
type Store struct {
	Commits, Conflicts, Repeats uint64
	Leads                       bool
}

// Metrics is the controller's registry.
type Metrics struct {
	*metrics.Registry
	mu       sync.Mutex
	requests map[request]uint64
}

type request struct {
	method string
	code   int
}

// New makes the registry.
func New(version string, failed func(collector string, err error), s *status.Registry, store func() Store) *Metrics {
	m := &Metrics{Registry: metrics.NewRegistry(version, failed, list), requests: map[request]uint64{}}
	m.AddStatus(state, s)
	m.Add("store", func(e metrics.Emitter) error {
		s := store()
		e.Emit(transactions, float64(s.Commits), "committed")
		e.Emit(transactions, float64(s.Conflicts), "conflict")
		e.Emit(transactions, float64(s.Repeats), "unknown")
		e.Emit(leads, metrics.Flag(s.Leads))
		return nil
	})
	m.Add("requests", func(e metrics.Emitter) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		for r, n := range m.requests {
			e.Emit(requests, float64(n), r.method, strconv.Itoa(r.code))
		}
		return nil
	})
	return m
}

// Answered counts a request.
func (m *Metrics) Answered(method string, code int, took time.Duration) {
	m.mu.Lock()
	m.requests[request{method, code}]++
	m.mu.Unlock()
	m.Observe(duration, took)
}
