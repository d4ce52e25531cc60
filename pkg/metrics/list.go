package metrics

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Type is the Prometheus type.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric is the declaration of one metric.
type Metric struct {
	Name   string
	Type   Type
	Help   string
	Labels []string

	desc    *prometheus.Desc
	buckets []float64
}

// List is declarations, in their order.
type List []*Metric

// Counter declares a counter.
func (l *List) Counter(name, help string, labels ...string) *Metric {
	return l.declare(Counter, name, help, labels, nil)
}

// Gauge declares a gauge.
func (l *List) Gauge(name, help string, labels ...string) *Metric {
	return l.declare(Gauge, name, help, labels, nil)
}

// Histogram declares a histogram of times, whose buckets are in seconds.
func (l *List) Histogram(name, help string, buckets []float64) *Metric {
	return l.declare(Histogram, name, help, nil, buckets)
}

func (l *List) declare(t Type, name, help string, labels []string, buckets []float64) *Metric {
	m := &Metric{Name: name, Type: t, Help: help, Labels: labels, desc: prometheus.NewDesc(name, help, labels, nil), buckets: buckets}
	*l = append(*l, m)
	return m
}

var nameForm = regexp.MustCompile(`^sluice_[a-z0-9_]+$`)

// Check finds declarations that are not as those of all programs are. A test of each program calls it.
func (l List) Check() error {
	var problems []error
	seen := map[string]bool{}
	for _, m := range l {
		if seen[m.Name] || !nameForm.MatchString(m.Name) {
			problems = append(problems, fmt.Errorf("%s: bad or double name", m.Name))
		}
		seen[m.Name] = true
		if (m.Type == Counter) != strings.HasSuffix(m.Name, "_total") {
			problems = append(problems, fmt.Errorf("%s is a %s", m.Name, m.Type))
		}
		if !strings.HasSuffix(m.Help, ".") {
			problems = append(problems, fmt.Errorf("%s: help is no sentence: %s", m.Name, m.Help))
		}
	}
	return errors.Join(problems...)
}
