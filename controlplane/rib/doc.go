// Package rib joins the routes that several sources have for a VRF into the one
// table that is programmed: package evpn's, which OVN has behind this node, and
// package bgp's, behind other nodes. Where BGP does not show yet what is behind a
// gateway port that has gone to another node, what OVN says of that node counts.
//
// Promises:
//   - A destination that OVN has behind this node wins over the same one imported
//     from BGP; when it goes, the import takes its place in the same step.
//   - What the steps say, applied in order, is the joined table.
//   - The work of a step is proportional to the routes that change.
//
// It is pure: no I/O, no goroutines. It never looks into a route beyond its key.
package rib
