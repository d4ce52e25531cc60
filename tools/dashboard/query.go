package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
)

// declared is a metric of the list.
func declared(name string) (*metrics.Metric, error) {
	for _, m := range nodemetrics.List() {
		if m.Name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("there is no metric %s", name)
}

// expression is one query of a panel, and how its series are named.
type expression struct{ text, legend string }

const (
	selector = `{instance=~"$instance"}`
	window   = "[$__rate_interval]"
)

// expressions are those of a query: one, or two of a histogram.
func (q query) expressions() ([]expression, error) {
	m, err := declared(q.metric)
	if err != nil {
		return nil, err
	}
	of := m.Labels
	if q.of != nil {
		of = q.of
	}
	for _, l := range of {
		if !slices.Contains(m.Labels, l) {
			return nil, fmt.Errorf("%s has no label %s", m.Name, l)
		}
	}
	by := append(slices.Clone(q.per), of...)
	if m.Type == metrics.Histogram {
		var out []expression
		for _, p := range []string{"0.5", "0.99"} {
			out = append(out, expression{fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket%s%s)))", p, m.Name, selector, window), p})
		}
		return out, nil
	}
	over, inner, group := q.over, m.Name+selector, ""
	if over == "" {
		over = "sum"
	}
	if m.Type == metrics.Counter {
		inner = "rate(" + inner + window + ")"
	}
	if len(by) > 0 {
		group = " by (" + strings.Join(by, ", ") + ")"
	}
	text, shape := fmt.Sprintf("%s%s (%s)", over, group, inner), q.shape
	if shape == "" {
		shape = "%s"
	}
	return []expression{{fmt.Sprintf(shape, text), legend(m, by)}}, nil
}

// legend names a series by its labels; one without is the metric's.
func legend(m *metrics.Metric, by []string) string {
	words := []string{}
	for _, l := range by {
		words = append(words, "{{"+l+"}}")
	}
	if len(words) == 0 {
		return m.Name
	}
	return strings.Join(words, " ")
}

// all are the queries of a panel.
func (p panel) all() (out []expression, err error) {
	for _, q := range p.queries {
		e, err := q.expressions()
		if err != nil {
			return nil, fmt.Errorf("panel %q: %w", p.title, err)
		}
		if len(p.queries) > 1 { // which of the metrics
			e[0].legend += " " + strings.TrimPrefix(q.metric, "sluice_")
		}
		out = append(out, e...)
	}
	return out, nil
}

// description is what the list says of the metrics.
func (p panel) description() string {
	if p.says != "" {
		return p.says
	}
	var words []string
	for _, q := range p.queries {
		if m, err := declared(q.metric); err == nil {
			words = append(words, m.Help)
		}
	}
	return strings.Join(words, " ")
}
