// Package exposure computes, from what OVN shows, which single addresses this node
// exposes without EVPN: addresses of VMs on provider networks, floating IPs,
// and gateway ports' own. They are rows of the default VRF
// ([intent.DefaultVRF]), of the same types as those of tenants.
//
// It is pure: rows in, intent out; no I/O, no clock, no log. [Translator.Step]
// computes all of it each time something changed that it reads: that is as much as
// the VMs and the gateway ports of this node, and where distributed floating
// IPs are followed, or next hops answered that nobody lists, the ports of its provider
// networks.
//
// # What is exposed, and where
//
//   - Ports: the addresses of a VM's port that is bound to this chassis and up,
//     on a switch with a localnet port whose network is mapped here. Frames carry the
//     VM's MAC. The addresses of a virtual port are where its virtual_parent
//     is, behind that one's MAC. What Northbound says is disabled is not exposed.
//   - Gateways: the own addresses of a gateway port that is bound here.
//   - Floating IPs: the external addresses of routers' NAT rows. A distributed one
//     is where its VM is bound, behind the MAC of its own; all others are where
//     the gateway port is, behind its MAC. Southbound says which are which
//     (nat_addresses: is_chassis_resident); Northbound does too (NAT.logical_port and
//     external_mac), and knows those that Southbound does not carry.
//
// An address that is a node's own is never exposed: packets for the node would go
// to OVN. One that EVPN takes from the same gateway port stays EVPN's: what comes
// from it is sent into its tenant's VRF.
//
// # Next hops
//
// ARP and ND are answered for the next hops that the configuration or the port lists.
// Of a family of which none is listed, and on a bridge with nobody but OVN, for those
// that Northbound names: in static routes, and as the default gateway in DHCP options;
// never for an address that a port of the switch has.
//
// # Rules between objects
//
// Ports come before gateway ports, these before floating IPs, each by name: of two
// that have one address the first is exposed. A frame key (bridge, VLAN, MAC) that a
// gateway port of EVPN has already keeps the rows that EVPN made for it; routes of
// the default VRF then refer to them.
package exposure
