// Command sluiced is Sluice's node daemon: it follows the OVN databases, speaks
// BGP, and programs the eBPF data plane.
//
// It owns the wiring: which package hears of what, in which order things start
// and end, and what people are told. What to forward is computed by the packages
// under controlplane, programmed by those under dataplane, and kept as wanted by
// package reconcile. What lives as long as the process is the daemon; what depends
// on the node's identity is a node, which comes and goes with it.
//
// It changes nothing on the machine before it holds the lock of its state
// directory, and leaves forwarding as it is when it ends.
package main
