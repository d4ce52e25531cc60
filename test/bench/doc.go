// Command bench measures Sluice and prints the results side by side: the
// packet programs against one that only redirects, packets to VIPs against a balancer
// that does nothing else, connections to VIPs against those to backends themselves and OVN's
// own ct_lb, a forwarding node against the kernel's own forwarding, metadata against one
// haproxy per network, and the way of a change from OVN's Southbound database: to a BGP
// neighbour, at rest and with many tenants, and to the table of a VIP. And calls of
// sluice-controller.
//
// Each part can be measured alone (-parts): programs, balance (packets to VIPs, and the time and
// memory of 10,000 of them), balancing (connections to VIPs from end to end), health (of a
// backend, to its VIP's table), forwarding, small and large (clouds), control (starts, an idle
// daemon, and changes to the UPDATE), move (of gateway ports), controller (calls of Octavia's API)
// and metadata.
//
// It needs root and the programs in bin/. It brings up a lab of its own and
// takes it away again. Each part ends by itself: after its time limit it fails. Results also
// go to a JSON file, as an array of {name, value, unit, goal, met, condition}; met is null where
// there is no goal, and condition says under what a value holds: the processors, their load
// before the part, and what of the lab ran beside or was stopped.
package main
