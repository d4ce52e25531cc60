// Package loadbalancer has no code but tests: VIPs of OVN's load balancers, served in eBPF
// where traffic comes in, with real OVN, BGP and clients.
package loadbalancer
