// Package metrics is Sluice's Prometheus metrics: their names, their help and
// how they are read.
//
// Every metric is declared once, in list.go; docs/reference/metrics.md is made
// of that list. Values are read when Prometheus asks, from functions that return
// plain data, so that no other package has to know Prometheus. Names start with
// sluice_ and end with their unit.
//
// A source that fails leaves out its own metrics and sets
// sluice_collector_success to 0; the others are served.
package metrics

//go:generate go run ../../tools/docgen metrics ../../docs/reference/metrics.md
