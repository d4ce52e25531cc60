// Package ovnroutes decides which imported routes are given back to OVN: it joins the
// gateway ports by which ovn-controller learns with what BGP shows of their VRFs, and
// makes the rows of intent.LearnedRoute.
//
// A router gets the imported routes of its VRF, but none to a part of a network that it
// is connected to, and none that this node has a way of its own to. No routing table is
// written that two routers share, or that has the number of a VRF on the kernel path: the
// router is reported then, and gets nothing.
//
// It does no I/O, and is not safe for use by two goroutines at once.
package ovnroutes
