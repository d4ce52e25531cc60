// Package metrics is Prometheus metrics: how they are declared, and how they are read.
//
// A program declares each of its metrics once, in a List, and makes a Registry of its lists. Its
// page of docs/reference is made of the same lists. Values are read when Prometheus asks, from
// functions that return plain data, so that no other package has to know Prometheus. Names start
// with sluice_ and end with their unit.
//
// A source that fails leaves out its own metrics and sets
// sluice_collector_success to 0; the others are served.
package metrics
