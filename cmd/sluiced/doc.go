// Command sluiced is Sluice's node daemon: it follows the OVN databases, speaks
// BGP, and programs the eBPF data plane.
//
// This package is flags and wiring. The parts of the daemon are the packages below internal:
// translation takes OVN's events in one order; role knows what the node is for, and starts its
// gateway; taps balances and steers metadata on VMs' taps; report and explain answer. The packages
// under controlplane compute the wanted rows, those under dataplane program them, and package
// reconcile compares the two.
//
// It changes nothing on the node before it holds the lock of its state directory, and leaves
// forwarding as it is when it ends.
package main
