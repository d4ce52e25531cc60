// Package evpn computes, from what OVN shows, which tenant networks this node
// exports as EVPN Type-5 routes and how packets pass between them and OVN.
//
// It is pure: rows in, intent out; no I/O, no clock, no log. [Translate] looks
// at one router. [Translator] keeps the result per router, joins routers that
// share a VRF or a frame key, and returns the difference of a step, with work
// proportional to the VRFs that the step touched.
//
// # What is exposed
//
// A gateway port (a chassisredirect or l3gateway Port_Binding bound to this
// chassis) whose switch-side port carries neutron_bgpvpn:vni makes a VRF. The
// subnets of each router interface whose switch-side port carries the same VNI
// are exposed through it. A gateway port that alone is annotated exposes its own
// addresses only; an interface whose router has no annotated gateway port here
// exposes nothing. Nor does one on a provider network
// (its switch has a localnet port) without external_ids:sluice-expose=true: its hosts are
// reached on that network.
//
// Exposed subnets are always forwarded. What BGP says of them is the announce
// mode: single hosts, subnets, or both, by configuration and, nearer objects
// first, by external_ids:sluice-announce on the host's port, the interface or
// the gateway port. external_ids:sluice-expose=false takes an object out; a
// host taken out of an exposed subnet is blocked.
//
// # Next hops and the gateway port's own addresses
//
// Sluice answers ARP and ND behind a gateway port for the next hops that the
// configuration lists for its physical network, as far as they are on the port's
// networks, and for those of external_ids:sluice-next-hops on the router port.
// Only where neither lists any, the bridge has no port but its own, OVN's patch
// ports and Sluice's, and the node has no address of the port's networks on the
// bridge's own device, it answers every address of the port's networks and
// fe80::/64, except known ones: then all ports of the provider network are known
// ports. Their addresses are denied once for all gateway ports on the bridge and
// VLAN, so that a thousand routers on one provider network make some thousands
// of rows and not a million.
//
// The gateway port's own addresses are exposed when the router's NAT rows show
// that no translated packet carries them, or when the router's default next hop
// is served. Where static routes cannot be seen, a served next hop of the family
// counts as the default one. Otherwise the note snat-source tells of it.
//
// # NAT
//
// A subnet that a NAT row translates as a whole is not exposed: note nat. A part
// of one, or a host with a floating IP, is blocked. Rows with allowed_ext_ips or
// exempted_ext_ips count as no translation. Without a Northbound session NAT is
// unknown, and everything is exposed unless the configuration holds it back; with
// one, a router whose rows have not come yet is held back: nat-pending.
//
// # Paths
//
// A VRF is on the path that evpn.vrfs of the configuration names, else the first
// of its gateway ports with external_ids:sluice-path, else the configuration's
// path for all. Of auto the facts decide that Translator.SetFacts was told: the
// kernel path where a map is full. With path kernel for all nothing else counts: it
// is for the whole node.
//
// # Rules between objects
//
// The routers of a VNI are ordered as they came to it on this node, those that come
// together by datapath UUID; a router's gateway ports by name. The first one in that order
// wins: who has run keeps what it has, and the newcomer gets the error.
//   - Two gateway ports with one frame key (bridge, VLAN, MAC): the second, by UUID, is
//     refused with reason duplicate-gateway.
//   - Routers with one VNI form one VRF when they name the same AS and the same
//     route targets; one that names others is refused: vrf-conflict.
//   - A subnet that overlaps one already in the VRF is refused with its hosts:
//     overlap. An address that is there twice counts once: duplicate-address,
//     on the second port by name.
//
// Of a router on another node with the VNI and an overlapping subnet nothing is refused here:
// [OverlapsElsewhere] names it.
//
// A refused object has no part in the VRF, so removing it removes nothing of
// the winner's; when the winner goes, the refused one takes its place.
//
// Three things depend on history, on purpose: a VRF's index, the order in which routers
// came to its VNI (both are inputs, see Allocator, and outlive the process), and which VRFs
// are over the configured limit. A VRF that has its place is never pushed out.
package evpn
