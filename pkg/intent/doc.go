// Package intent is the contract between Sluice's two planes: what the control
// plane wants, as plain comparable values, one Go map per table, one key per
// row. The control plane computes these tables from OVN and BGP; the data plane
// makes them true and reports key by key. Neither plane imports the other, and
// this package imports neither.
//
// # Tables
//
// table.go lists them, each with its name and its key; the file of a row's type says what it is.
// Tables of a gateway, of VMs' taps, of metadata and of the underlay have an order each in package
// tables: rows are added in it, and deleted the other way. Announcements come behind what carries
// what they announce: program, then announce; withdraw, then delete.
//
// # Promises
//
// Every type here is comparable with ==, holds no pointer that a caller could
// write through, and is canonical: two values that mean the same are equal.
// Constructors (NewRouteKey, NewNextHopSet, NewRouteTargets) canonicalise;
// composite literals must not bypass them where one exists. Addresses are never
// IPv4-mapped IPv6 and never carry a zone.
package intent
