package intent

import (
	"fmt"
	"net/netip"
)

// BridgeKey is the name of a provider bridge in the local Open vSwitch
// (Open_vSwitch.external_ids:ovn-bridge-mappings).
type BridgeKey string

// Bridge asks for the veth pair that joins a provider bridge with the data
// plane: sluice<N> in the host, sluice<N>-ovs as a port of the bridge.
type Bridge struct {
	Name BridgeKey
}

// GatewayKind is how traffic of a VRF enters OVN.
type GatewayKind uint8

// The kinds of gateway.
const (
	// GatewayCRLRP is a distributed gateway port: a chassisredirect Port_Binding.
	GatewayCRLRP GatewayKind = iota + 1
	// GatewayL3 is a gateway router: an l3gateway Port_Binding.
	GatewayL3
	// GatewayPort is a VM's port on a provider network, in the default VRF.
	GatewayPort
	// GatewayNAT is the MAC of a distributed floating IP, in the default VRF.
	GatewayNAT
)

func (k GatewayKind) String() string {
	switch k {
	case GatewayCRLRP:
		return "cr-lrp"
	case GatewayL3:
		return "l3gateway"
	case GatewayPort:
		return "port"
	case GatewayNAT:
		return "floating-ip"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText names the kind.
func (k GatewayKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// GatewayKey identifies a gateway port as a frame on its provider bridge does.
type GatewayKey struct {
	Bridge BridgeKey
	// VLAN is the tag of the provider network (localnet Port_Binding.tag), 0 for none.
	VLAN uint16
	// MAC is the gateway port's (Port_Binding.mac of the chassisredirect row).
	MAC MAC
}

func (k GatewayKey) String() string {
	mac := k.MAC.String()
	if k.MAC.IsZero() {
		mac = "any"
	}
	if k.VLAN != 0 {
		return fmt.Sprintf("%s.%d/%s", k.Bridge, k.VLAN, mac)
	}
	return fmt.Sprintf("%s/%s", k.Bridge, mac)
}

// Gateway is a gateway port that this node serves: frames with its key belong
// to its VRF, and the VRF's packets for OVN are addressed to its MAC.
type Gateway struct {
	Key  GatewayKey
	VNI  VNI
	Kind GatewayKind
	// LogicalPort is the Port_Binding's logical_port, for people.
	LogicalPort string
	// Addr4 and Addr6 are the gateway port's first addresses: the source of
	// ICMP errors towards the fabric. Invalid when the port has none.
	Addr4, Addr6 netip.Addr
	// MTU is the largest layer-3 packet in bytes that the provider network
	// takes. 0 means: the MTU of the bridge's veth pair.
	MTU uint16
	// ICMPSource4 and ICMPSource6 are the source of ICMP errors towards OVN
	// while no next hop has been asked for here. Invalid: none.
	ICMPSource4, ICMPSource6 netip.Addr
}

// Segment is the bridge and VLAN of the key: what the gateway ports of one
// provider network have in common.
func (k GatewayKey) Segment() GatewayKey { return GatewayKey{Bridge: k.Bridge, VLAN: k.VLAN} }

// IsSegment tells whether the key has no MAC: it means every gateway port on
// the bridge and VLAN.
func (k GatewayKey) IsSegment() bool { return k.MAC.IsZero() }

// ServedKey is an address or prefix asked for in ARP or ND behind a gateway, or
// a known port's address on the segment of gateways (Gateway without MAC).
type ServedKey struct {
	Gateway GatewayKey
	Prefix  netip.Prefix
}

func (k ServedKey) String() string { return fmt.Sprintf("%s %s", k.Gateway, k.Prefix) }

// Served decides what happens to such a question.
//
// A question is answered when, of the rows of the gateway that asks, the one
// with the longest prefix says Answer, and the address is not denied on the
// whole segment. A row of the gateway for this single address comes before a
// denial of the segment: it is a next hop that somebody named.
type Served struct {
	Key ServedKey
	// Answer: reply with the next-hop MAC. Otherwise the address belongs to a
	// known port and the question is dropped. A row of a segment denies a
	// single address; it is never an answer.
	Answer bool
}

// VTEP is a tunnel endpoint whose packets are accepted. Its key is the address.
type VTEP struct {
	Addr netip.Addr
}

// SteeringKind is the shape of one OVS flow on a provider bridge.
type SteeringKind uint8

// The kinds of flow, each with what it matches and does. "ours" is the port
// sluice<N>-ovs, "patch" the bridge's patch ports to the integration bridge.
const (
	// SteerToOVN: in_port=ours, destination = MAC (and VLAN) → patch.
	SteerToOVN SteeringKind = iota + 1
	// SteerARP: in_port=patch, source = MAC, ARP request for an address in Prefix (IPv4) → ours.
	SteerARP
	// SteerND: in_port=patch, source = MAC, neighbour solicitation for an address in Prefix (IPv6) → ours.
	SteerND
	// SteerSource: in_port=patch, source = MAC, IP source in Prefix → destination MAC := next-hop MAC, ours.
	SteerSource
	// SteerRouted: in_port=patch, source = MAC, destination = next-hop MAC, IP
	// source in Prefix → ours. What the source sends to its own network stays there.
	SteerRouted
	// SteerAnswer: SteerSource of a protocol and a source port alone: of a backend that
	// nothing else of is to leave OVN.
	SteerAnswer
)

func (k SteeringKind) String() string {
	switch k {
	case SteerToOVN:
		return "to-ovn"
	case SteerARP:
		return "arp"
	case SteerND:
		return "nd"
	case SteerSource:
		return "source"
	case SteerRouted:
		return "routed"
	case SteerAnswer:
		return "answer"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText names the kind.
func (k SteeringKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// SteeringKey identifies one flow. Prefix is the zero Prefix for SteerToOVN.
type SteeringKey struct {
	Gateway GatewayKey
	Kind    SteeringKind
	Prefix  netip.Prefix
	// Protocol and Port are set for SteerAnswer; port 0 is all.
	Protocol Protocol
	Port     uint16
}

func (k SteeringKey) String() string {
	if !k.Prefix.IsValid() {
		return fmt.Sprintf("%s %s", k.Gateway, k.Kind)
	}
	if k.Kind == SteerAnswer {
		return fmt.Sprintf("%s %s %s %s %d", k.Gateway, k.Kind, k.Prefix, k.Protocol, k.Port)
	}
	return fmt.Sprintf("%s %s %s", k.Gateway, k.Kind, k.Prefix)
}

// Steering is one OVS flow. Every bridge in use also has, without a row of its
// own, the flow that drops all else that comes in from ours.
type Steering struct {
	Key SteeringKey
	// NextHopMAC is the cloud-wide next-hop MAC, for SteerSource, SteerRouted and SteerAnswer.
	NextHopMAC MAC
	// Localnet is the localnet port (Port_Binding.logical_port) of the
	// gateway's provider switch: the patch port to use is
	// "patch-<localnet>-to-<integration bridge>". Never empty.
	Localnet string
	// Path and VNI choose what "ours" is for SteerToOVN and SteerSource: on the
	// kernel path the port of the VRF's own veth pair on the bridge and VLAN.
	// SteerToOVN then takes from sluice<N>-ovs as well, so that a VRF that changes
	// its path is served on both meanwhile. SteerARP and SteerND are the same on
	// both paths. VNI is 0 on the eBPF path.
	Path Path
	VNI  VNI
}
