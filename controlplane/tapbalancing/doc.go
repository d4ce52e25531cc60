// Package tapbalancing translates the load balancers of logical switches for the VMs of this
// node: rows of OVN in; the VIPs of each switch, who balances the sessions of each VM, and where
// frames for VIPs and backends go, out.
//
// It is pure: no I/O, no clock, no log. A fault of a VIP or of a VM is an error
// of that one alone.
//
// # What is decided
//
//   - A switch with load balancers (Logical_Switch.load_balancer and load_balancer_group) is
//     a scope: intent.Switch of its tunnel key. All VMs on it have its VIPs.
//   - A VIP is eBPF's unless a backend is neither on the switch nor in a network of a router
//     that the switch is connected to; else OVN's, with a reason (package loadbalancer).
//   - A VM is OVN's, with all VIPs, where its ACLs (direction from-lport, before load
//     balancing) may say another thing of a VIP that is eBPF's than of one of its backends,
//     which they would see in its place; and while its ACLs are not known, unless the
//     configuration says otherwise.
//   - A VM without a tap that programs can be put on is OVN's, too.
//
// # What is computed
//
// A step computes the switches that ovn.Dirty names, and those of Interfaces with another
// device than before; all others stay as they were. What crosses switches is put together
// after that: of ports on one tap the first by switch and name has it, whichever came first.
// So a change costs what its switches do, and any order of events ends in the same.
package tapbalancing
