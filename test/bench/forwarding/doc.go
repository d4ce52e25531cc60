// Package forwarding measures a node that forwards between the fabric and OVN:
// Sluice's programs against the kernel's own forwarding of the same packets.
//
// Each side is a site of its own with three network namespaces, equal but for
// the node in the middle:
//
//	fabric: a VTEP          node                                 ovn: behind a gateway port
//	far ───underlay─── sluice-vxlan, fabric_in, overlay_in ───── sluice0-ovs
//	far ───underlay─── VXLAN device, bridge, policy routing ──── sluice0-ovs
//
// Sluice's side is made by the product's drivers. A third kind of site has Open
// vSwitch (userspace datapath) behind sluice0-ovs, and a host behind it.
//
// Small packets come out of BPF_PROG_RUN in live-frame mode, which hands them to
// a device as its driver would: the way from there to the far end takes one CPU,
// and what the far end gets in a second is what that CPU can forward. A stream is
// an ordinary TCP connection between two namespaces, sender and receiver on a CPU
// each.
//
// The sites take turns in short rounds, so that a machine that gets slower for a
// while slows both, and the threads run before all ordinary processes of their
// CPUs. A result is the median of one side's rounds against that of the other's.
//
// It needs root and, for live frames, Linux 5.18. It never touches a device or
// process that it has not made.
package forwarding
