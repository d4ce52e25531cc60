// Command bench measures Sluice and prints the results side by side: the
// packet programs against one that only redirects, packets to VIPs against a balancer
// that does nothing else, connections to VIPs against those to backends and OVN's own, a forwarding node against the kernel's own forwarding, metadata
// against one haproxy per network, and the way of a change from OVN's Southbound database
// to a BGP neighbour, at rest and with many tenants.
//
// It needs root and the programs in bin/. It brings up a lab of its own and
// takes it away again. Results also go to a JSON file, as an array of
// {name, value, unit, goal, met}; a result without a goal counts as met.
package main
