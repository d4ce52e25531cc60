// Package loadbalancer translates OVN's load balancers: rows of SB Load_Balancer in, the
// VIPs that they have out, with backends, weights and sizes of tables.
//
// It is pure: no I/O, no clock, no log. What is wrong with a VIP is an error of that VIP
// alone; the others of its row are as they would be without it. [Book] keeps what was read,
// for all features that read the rows of package ovn.
//
// # What a row says
//
// Each entry of vips is a VIP: "192.0.2.1:80" or "[2001:db8::1]:80" with a port, or an
// address alone, for all ports. Its value lists backends in the same form, separated by
// commas; they have a port if the VIP has one, and are of its family. An empty value is a
// VIP without backends. protocol is tcp where the column is empty (ovn-nb(5)).
//
// With options:template=true words that begin with ^ stand for what
// Chassis_Template_Var.variables has of this chassis, as ovn-controller has it.
//
// What OVN has no column for is in options that begin with sluice-, which northd copies to
// Southbound with all others:
//
//   - sluice-weights: BACKEND=WEIGHT, separated by commas, 0 to 256. A backend that is not
//     named has 1. One with 0 is being drained: it gets no new flows.
//   - sluice-m: the size of the row's tables, one of those of package maglev.
//   - sluice-path: ovn, to leave the row's VIPs to OVN; or auto.
package loadbalancer
