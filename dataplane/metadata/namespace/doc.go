// Package namespace makes the network namespaces that metadata is answered in: the
// proxy's own, to which programs on taps steer requests, and one for each network with a
// VM that no program can steer for.
//
// # What is made
//
// The proxy's namespace has one veth pair, sluice-md0 on the node and sluice-md1 within,
// with the addresses that requests come to and the way to the numbers that stand for
// guests (package identity). Nothing of it is routed on the node.
//
// A network's namespace is made as neutron-ovn-metadata-agent makes it, names included:
// ovnmeta-NETWORK, the pair tapNNNNNNNNNN0 and tapNNNNNNNNNN1, and the outer end as a port
// of the integration bridge with the localport's iface-id. Operators' tools find it, and
// the agent's own can be adopted under traffic. Beyond that it has permanent neighbours:
// the guests that it serves.
//
// # Ownership
//
// A namespace is Sluice's if its lo has the alternative name "sluice:metadata", or
// "sluice:metadata:NETWORK"; it has that before it has its own name. The outer end of a
// pair has the same mark. The kernel gives it only after creation, so the device is
// created down, with an Ethernet address of Sluice's, as package kernel describes. A port
// has Port.external_ids:sluice=metadata and sluice-network. Whatever else has one of the
// names is reconcile.ErrForeign and never touched.
//
// # Promises
//
//   - Outer ends are fail-closed as package kernel's devices are.
//   - Inner ends forward nothing and believe no router advertisement.
//   - What is in place is not taken away to be put back: packets go on while the rest is
//     mended. Only half a pair, or one that leads elsewhere, is made anew.
package namespace
