// Package nodemetrics is the metrics of a node's two processes, sluiced and the metadata proxy:
// their lists (list.go), the plain data that they are read from beside values of package status
// (data.go), and which value is which metric. docs/reference/metrics.md is made of the lists.
package nodemetrics

//go:generate go run ../../../tools/docgen metrics sluiced ../../../docs/reference/metrics.md
