// Package lab builds small OVN clouds out of real processes in network
// namespaces: ovsdb-server, ovn-northd, ovs-vswitchd (userspace or kernel
// datapath), ovn-controller, FRR, and virtual machines that are namespaces
// plugged as the hybrid VIF driver of OpenStack plugs them. Tests and the demo
// run on it.
//
// # What it owns
//
// One run directory per lab and everything that carries the lab's name: network
// namespaces NAME-NODE, the processes recorded in the run directory, one bpffs
// below it, all logs. A lab's state is on disk, so that another process can
// open it, enter its nodes and take it down.
//
// # What it promises
//
// Several labs with different names run side by side. Up returns when the
// clouds work: ports bound, gateways scheduled, tunnels known. When Up fails or
// its context ends, everything is removed again. Down removes everything; it
// signals recorded processes and those in the lab's namespaces only, after
// checking that the process id still is that process.
//
// # Databases
//
// A Central says how a cloud serves its databases: as RAFT clusters, behind a
// relay, over TLS with OVN's role-based access control. The lab's own commands use
// the servers' unix sockets, whatever the chassis have to use. Certificates are
// made by an authority in the run directory (pki/). A cloud may run other versions
// of OVN and Open vSwitch than the machine has (Cloud.Programs).
//
// # Addresses
//
//	172.30.0.N/32, fd30::N/128   VTEP and BGP address of node N, on lo
//	172.29.N.0/30, fd29:N::/64   link of node N to the fabric, which routes
//	172.31.0.N/24                Geneve address of chassis N, on br-phy inside OVS,
//	                             or on the link itself under the kernel's datapath
//
// # What it never does
//
// It never touches the host's own links, never loads BPF programs, and never
// configures anything in Sluice per tenant.
package lab
