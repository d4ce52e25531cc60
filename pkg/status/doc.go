// Package status is what Sluice knows about itself: the state of every object
// that it was asked to serve, the condition of its components, and the shapes
// in which sluiced tells them to sluicectl.
//
// # Objects
//
// An Object is a VRF, a gateway, a route, a neighbour: anything that can be
// wrong on its own. Each plane reports its objects through a Reporter with a
// name of its own ("evpn", "bgp", "ebpf"), so that two planes may have an
// opinion on the same VRF.
//
// Of kinds with very many members, such as routes, only those that are not ok
// are reported: the numbers of the others are in the tables' metrics.
//
// # Promises
//
//   - An error of an object is logged once when it appears, once when its
//     reason or text changes, and once when it clears; and counted by kind and
//     reason. Reporting the same state again does nothing.
//   - Since is the time when the state or its reason changed, not when it was
//     last reported.
//   - A Registry may be used from many goroutines. A snapshot is consistent.
//
// # Reports
//
// The types of report.go are the JSON that sluicectl prints with -o json. They
// grow by fields; a field that was published keeps its name and meaning. Metrics are read from the
// same values; fields that only they need are not in JSON.
//
// The package starts no goroutine and does no I/O but logging.
package status
