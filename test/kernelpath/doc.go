// Package kernelpath tests the drivers of the kernel path (dataplane/kernel) with
// packets, between a node that they set up, a classic EVPN provider edge that the
// kernel alone makes, and the machines behind a gateway port.
//
// The tests need a kernel with VRFs and run inside the virtual machines of
// test/vm, built with the tag guest; nothing of them runs elsewhere.
package kernelpath
