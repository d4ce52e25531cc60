// Package metadata computes, from what OVN shows and from the taps that were found,
// which ports of this node ask for metadata, by which way, and for which networks there
// has to be a namespace because some port has no tap that can be steered.
//
// It is pure: rows and found devices in, intent out; no I/O, no clock, no log.
// [Translator.Step] computes all of it each time: that is as much as the ports of VMs
// on this node.
//
// # Which ports
//
// Those of types "" and external that are bound to this chassis, and those that have it
// as an additional chassis: a VM that migrates here is served before it runs.
// Whether a port is up says nothing. Who may ask are the addresses of the column mac; a
// port that has a MAC and no address there has those of neutron:cidrs.
//
// # By which way
//
//   - tap: requests are taken from the port's tap, or from its trunk's with the
//     subport's VLAN.
//   - namespace: from the namespace of the port's network, which is its metadata port (an
//     OVN localport). So with path namespace; so with auto where the port has no tap that
//     a program can be put on: an external port, a port of the userspace datapath, a tap
//     that is not clear. A device that is not there yet is waited for instead.
//   - ovn: Sluice takes nothing; what the port asks for goes where OVN sends it. So with
//     Respect where the port's ACLs do not let it ask, or where that is not known and it
//     has no namespace to be served by: OVN's own ACLs hold on the way there.
//   - none: there is no way, or none yet. The reason says why.
//
// # What is never mixed up
//
// A port gets only what belongs to it. Of two ports with one tap and one VLAN only the
// first by name is served. In a namespace requests are told apart by the address that they come from:
// who has the same as another port here on that network is answered with 404, and is
// reported. A device whose index in Open vSwitch is another than in the kernel is one
// that was made again: it waits until both say the same.
//
// # When rows come late
//
//   - No device_id yet: the port is served, its Instance is empty, requests get 404.
//   - The tap before the row: there is nothing to do for it.
//   - The row before the tap, and a tap that went: tap-missing, until it is there.
//   - A subport before its trunk's port: parent-missing, until that one is here.
//   - Southbound not in sync: nothing changes. Northbound not in sync: what ACLs said last
//     counts.
package metadata
