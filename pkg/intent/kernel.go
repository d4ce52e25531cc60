package intent

import (
	"fmt"
	"net/netip"
)

// KernelVRF asks for the devices of a VRF on the kernel path: vrf-<vni> with its
// routing table, br-<vni>, and the veth pair by which fabric_in hands over
// (vx-<vni>), or vxlan-<vni> where the whole node is on the kernel path. Its key
// is the VNI.
type KernelVRF struct {
	VNI VNI
	// Index is the VRF's, see VRF.Index: the driver's source of small unique
	// numbers, such as a routing table where that of the VNI is taken.
	Index uint16
}

// KernelGateway asks for what leads from a kernel-path VRF to a gateway port: a
// veth pair for each VRF, bridge and VLAN, shared by the gateway ports there, a
// permanent neighbour for the port's MAC, and routes to its own addresses.
type KernelGateway struct {
	Key GatewayKey
	VNI VNI
	// Addr4 and Addr6 are the gateway port's first addresses: what subnets are
	// routed through. Invalid when the port has none of the family; a link-local
	// address that stands for the MAC is used then.
	Addr4, Addr6 netip.Addr
	// ICMPSource4 and ICMPSource6 are the source of ICMP errors towards OVN.
	// Invalid: none is known.
	ICMPSource4, ICMPSource6 netip.Addr
	// MTU is the largest layer-3 packet in bytes towards OVN. 0: that of the pair.
	MTU uint16
}

// VRFPortKey identifies the veth pair that joins a VRF on the kernel path with a
// provider network: one for each VRF, bridge and VLAN, shared by the gateway ports
// there.
type VRFPortKey struct {
	Bridge BridgeKey
	// VLAN is pushed on what enters the bridge from the pair, and popped from
	// what leaves it, by the bridge's flows: the VRF's end has no tags. 0: none.
	VLAN uint16
	VNI  VNI
}

func (k VRFPortKey) String() string {
	if k.VLAN != 0 {
		return fmt.Sprintf("%s.%d vni %d", k.Bridge, k.VLAN, k.VNI)
	}
	return fmt.Sprintf("%s vni %d", k.Bridge, k.VNI)
}
