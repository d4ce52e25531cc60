// Package packet makes the synthetic packets of "sluicectl trace" and reads the
// sampled ones of "sluicectl drops".
//
// It owns what Sluice's tools know of packets: Ethernet, IPv4, IPv6, ICMP, TCP
// and UDP. A sample may be cut anywhere; what is left of it is told, never a
// panic. It does no I/O.
package packet
