// Package nexthop decides which VTEPs routes may lead to, from what the kernel does with
// packets to each.
//
// It owns the memory of one node about it. It promises that a VTEP without a route is lost at
// once and comes back at once with its route, with one exception: a node that has a route to
// nothing, neither to a VTEP nor to a BGP neighbour, is cut off itself. Then nothing is lost:
// no next hop is better than another, all would be removed and added again for one link that
// flaps, and BGP's own timers say what the fabric still stands for. Once a route is back, the
// others have ReturnTime to follow it.
//
// It is pure: no I/O, no clock, no goroutines.
package nexthop
