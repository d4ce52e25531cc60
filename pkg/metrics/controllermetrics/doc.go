// Package controllermetrics is the metrics of sluice-controller: their list, and which value is
// which metric.
package controllermetrics

//go:generate go run ../../../tools/docgen metrics sluice-controller ../../../docs/reference/controller-metrics.md
