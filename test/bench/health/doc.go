// Package health measures how long the change of a backend's health takes to the table of its
// VIP: from the moment that the Southbound database has acknowledged another
// Service_Monitor.status, which ovn-controller writes when its probes say so, to the moment that
// the row of the VIP in the pinned map names another table.
//
// The cloud is the lab's scenario lb with many load balancers, each of one VIP with two backends
// that have a health check, on the router and on the switch. So each VIP is one for the fabric
// and one for machines, and a gateway node with machines has it in two maps: both are timed. The
// rows are written by one session that stays open, and maps are looked at every few
// microseconds, which costs as much.
//
// It is measured twice: with all processes of both clouds on this machine, and on a node alone.
// Elsewhere ovn-northd and the other nodes, each of which works on the same change, are on
// machines of their own; here they are stopped for the while. The goal is for the second.
//
// It needs root, and touches no process or namespace but those of its lab.
package health
