// Package controller measures sluice-controller: calls of Octavia's API at one replica, with few and
// with many load balancers in a real Northbound database, by one caller and by several.
//
// A call is one of the story of a load balancer: it is made with a listener, a pool and ten members, and
// deleted again, so that as many are there at each call. Callers have a network each. The others have the same
// children, and are spread over networks of ten, each with a router and the ports of 100 VMs; and then again, all of
// them and of the callers are in one network.
//
// Nothing else runs: no ovn-northd, no second replica.
package controller
