package forwarding

import (
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// direction is where packets go.
type direction bool

const (
	toOVN    direction = false
	toFabric direction = true
)

func (d direction) String() string {
	if d == toFabric {
		return "OVN to fabric"
	}
	return "fabric to OVN"
}

// smallFrame is the length of the inner frame; Ethernet's own smallest, with the
// checksum that a wire adds, is as long.
const smallFrame = 64

// frame is a small UDP packet as it comes to the node: in VXLAN from the fabric,
// bare from OVN.
func frame(d direction, f family) ([]byte, error) {
	if d == toFabric {
		return innerFrame(gatewayMAC, nextHopMAC, f, false)
	}
	inner, err := innerFrame(farMAC, routerMAC, f, true)
	if err != nil {
		return nil, err
	}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: farVTEP.AsSlice(), DstIP: nodeVTEP.AsSlice()}
	return serialize(
		&layers.Ethernet{SrcMAC: farLinkMAC[:], DstMAC: nodeLinkMAC[:], EthernetType: layers.EthernetTypeIPv4},
		// Without a UDP checksum, as all sites send.
		ip, &layers.UDP{SrcPort: 50000, DstPort: vxlanPort, Length: uint16(8 + 8 + len(inner))},
		&layers.VXLAN{ValidIDFlag: true, VNI: uint32(vni)}, gopacket.Payload(inner))
}

func innerFrame(src, dst intent.MAC, f family, fromFar bool) ([]byte, error) {
	from, to := f.near, f.far
	if fromFar {
		from, to = to, from
	}
	eth := &layers.Ethernet{SrcMAC: src[:], DstMAC: dst[:], EthernetType: layers.EthernetTypeIPv4}
	var network gopacket.SerializableLayer = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	headers := 14 + 20 + 8
	if f.number == 6 {
		eth.EthernetType = layers.EthernetTypeIPv6
		network = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
		headers = 14 + 40 + 8
	}
	payload := make(gopacket.Payload, smallFrame-headers)
	return serialize(eth, network, &layers.UDP{SrcPort: 40000, DstPort: 9, Length: uint16(8 + len(payload))}, payload)
}

// serialize fills in the lengths and checksums of IP; those of UDP are given:
// nobody on the way looks at an inner one.
func serialize(all ...gopacket.SerializableLayer) ([]byte, error) {
	b := gopacket.NewSerializeBuffer()
	for i := len(all) - 1; i >= 0; i-- {
		_, udp := all[i].(*layers.UDP)
		if err := all[i].SerializeTo(b, gopacket.SerializeOptions{FixLengths: !udp, ComputeChecksums: !udp}); err != nil {
			return nil, err
		}
		b.PushLayer(all[i].LayerType())
	}
	return b.Bytes(), nil
}
