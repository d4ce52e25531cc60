// Package tables puts the tables of pkg/intent in order on a node: which comes
// before which, what is kept while its source is away, and when a route may be
// announced.
//
// Promises:
//   - Program, then announce; withdraw, then unprogram. A route is announced
//     once the whole way from the fabric into OVN and back is programmed, and
//     withdrawn before any part of it goes.
//   - A row that is not wanted any more is removed only when what it is computed
//     from is in sync: see Sources. An announcement whose way is cut is withdrawn
//     all the same.
//   - A row that cannot be programmed is an object of its own in status, and
//     stops no other.
//
// It knows neither plane: both meet in the drivers and sources that it is given.
package tables
