// Package ovs is the data plane's half of a provider bridge: Sluice's port on
// it, and the OpenFlow flows that steer traffic between OVN and that port.
//
// It owns, on any bridge of the local Open vSwitch:
//   - the port whose Port.external_ids:sluice is "bridge", one a bridge;
//   - the ports with sluice "vrf": one for each VRF on the kernel path and VLAN,
//     fail-closed in the same way;
//   - the ports with sluice "metadata", on the integration bridge: one for each network
//     with a metadata namespace;
//   - the flows whose cookie starts with "sluice" in ASCII, Cookie/CookieMask.
//
// Nothing else is ever changed: not another port, not another flow, not a
// column of the bridge.
//
// # Fail-closed
//
// Three things keep tenant frames off a physical port. The default flow drops
// what comes from Sluice's port and matches no steering. The port is no-flood.
// Both are lost when ovs-vswitchd restarts, so the port is also a trunk of VLAN
// 4095 alone (Port.trunks, kept in the database): the action NORMAL, all that a
// bridge has until its flows are back, drops what comes from such a port and
// sends nothing to it. "output" in a flow does not look at trunks.
//
// # Promises
//
//   - Port numbers are looked up when flows are written and when they are read:
//     flows that name an old number show as a difference.
//   - All changes of one bridge in one call are one OpenFlow bundle.
//   - Changes tells within a fraction of a second that flows or ports are no
//     longer what they were, an ovs-vswitchd restart included.
//
// Ovs-ofctl does the talking, over the bridge's management socket. Bundles need
// OpenFlow 1.4 on the bridge (Bridge.protocols, on by default); no-flood exists
// in OpenFlow 1.0 only.
package ovs
