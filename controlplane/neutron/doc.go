// Package neutron shows the networks, subnets and ports of OVN's Northbound database as Neutron
// does: what clients of the load-balancer API look names up in. It changes nothing there.
//
// A Client asks Neutron itself, where there is one, for ports of VIPs.
package neutron
