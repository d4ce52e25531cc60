// Package intent is the contract between Sluice's two planes: what the control
// plane wants, as plain comparable values, one Go map per table, one key per
// row. The control plane computes these tables from OVN and BGP; the data plane
// makes them true and reports key by key. Neither plane imports the other, and
// this package imports neither.
//
// # Tables
//
//	Bridges        BridgeKey   → Bridge         provider bridges that need a veth pair
//	KernelVRFs     VNI         → KernelVRF      devices of a VRF on the kernel path
//	KernelGateways GatewayKey  → KernelGateway  its ways into OVN
//	KernelRoutes   RouteKey    → Route          its destinations, which Routes does not have then
//	VRFs           VNI         → VRF            tenant routing tables
//	Gateways       GatewayKey  → Gateway        where a VRF's traffic enters and leaves OVN
//	Served         ServedKey   → Served         next hops that Sluice answers ARP and ND for
//	VTEPs          netip.Addr  → VTEP           outer sources that fabric_in accepts
//	Routes         RouteKey    → Route          destinations of a VRF, local and remote
//	UnderlayDevices string     → UnderlayDevice where packets for the default VRF come in
//	Steering       SteeringKey → Steering       OVS flows on provider bridges
//	Announcements  RouteKey    → Announcement   what BGP tells the fabric
//
// and for metadata, which nothing of the above depends on:
//
//	MetadataPorts    string → MetadataPort     ports whose requests are answered
//	MetadataNetworks string → MetadataNetwork  metadata ports of OVN that are namespaces here
//
// The order of the list is the order of additions; removals go the other way.
// Announcements are last: program, then announce; withdraw, then unprogram.
//
// # Promises
//
// Every type here is comparable with ==, holds no pointer that a caller could
// write through, and is canonical: two values that mean the same are equal.
// Constructors (NewRouteKey, NewNextHopSet, NewRouteTargets) canonicalise;
// composite literals must not bypass them where one exists. Addresses are never
// IPv4-mapped IPv6 and never carry a zone.
package intent
