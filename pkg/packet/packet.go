package packet

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Spec describes a packet.
type Spec struct {
	SrcMAC, DstMAC   intent.MAC
	Src, Dst         netip.Addr
	Protocol         uint8 // 1, 58, 6 or 17
	SrcPort, DstPort uint16
	// Answer: TCP answers the packet that opens a connection, instead of opening one.
	Answer bool
	// Length is that of the IP packet in bytes; 0, or less than the headers
	// take, means no payload.
	Length uint16
}

const ttl = 64

// Build makes the Ethernet frame, with right lengths and checksums, padded to the
// 60 bytes that Ethernet has at least.
func Build(s Spec) ([]byte, error) {
	if s.Src.Is4() != s.Dst.Is4() {
		return nil, fmt.Errorf("packet from %s to %s: different IP versions", s.Src, s.Dst)
	}
	eth := &layers.Ethernet{SrcMAC: s.SrcMAC[:], DstMAC: s.DstMAC[:], EthernetType: layers.EthernetTypeIPv4}
	var ip interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	}
	if s.Src.Is4() {
		ip = &layers.IPv4{Version: 4, TTL: ttl, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocol(s.Protocol), SrcIP: s.Src.AsSlice(), DstIP: s.Dst.AsSlice()}
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: ttl, NextHeader: layers.IPProtocol(s.Protocol), SrcIP: s.Src.AsSlice(), DstIP: s.Dst.AsSlice()}
	}
	upper, err := s.upper(ip)
	if err != nil {
		return nil, err
	}
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	all := append([]gopacket.SerializableLayer{eth, ip}, upper...)
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, opts, all...); err != nil {
		return nil, fmt.Errorf("build packet: %w", err)
	}
	if missing := int(s.Length) - s.headers(); missing > 0 {
		if err := gopacket.SerializeLayers(b, opts, append(all, gopacket.Payload(make([]byte, missing)))...); err != nil {
			return nil, fmt.Errorf("build packet: %w", err)
		}
	}
	return b.Bytes(), nil
}

// headers is the length in bytes of the IP and upper-layer headers.
func (s Spec) headers() int {
	n := 20
	if s.Src.Is6() {
		n = 40
	}
	if layers.IPProtocol(s.Protocol) == layers.IPProtocolTCP {
		return n + 20
	}
	return n + 8
}

func (s Spec) upper(ip gopacket.NetworkLayer) ([]gopacket.SerializableLayer, error) {
	switch layers.IPProtocol(s.Protocol) {
	case layers.IPProtocolICMPv4:
		return []gopacket.SerializableLayer{&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 1, Seq: 1}}, nil
	case layers.IPProtocolICMPv6:
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeEchoRequest, 0)}
		return []gopacket.SerializableLayer{icmp, &layers.ICMPv6Echo{Identifier: 1, SeqNumber: 1}}, icmp.SetNetworkLayerForChecksum(ip)
	case layers.IPProtocolTCP:
		tcp := &layers.TCP{SrcPort: layers.TCPPort(s.SrcPort), DstPort: layers.TCPPort(s.DstPort), SYN: true, ACK: s.Answer, Window: 65535}
		return []gopacket.SerializableLayer{tcp}, tcp.SetNetworkLayerForChecksum(ip)
	case layers.IPProtocolUDP:
		udp := &layers.UDP{SrcPort: layers.UDPPort(s.SrcPort), DstPort: layers.UDPPort(s.DstPort)}
		return []gopacket.SerializableLayer{udp}, udp.SetNetworkLayerForChecksum(ip)
	}
	return nil, fmt.Errorf("protocol %d: use ICMP (1, 58), TCP (6) or UDP (17)", s.Protocol)
}

// Flow is what a frame shows of itself; fields that it does not reach are zero.
type Flow struct {
	Src, Dst         netip.Addr
	Protocol         uint8
	SrcPort, DstPort uint16
}

// Parse reads a frame that may be cut off anywhere.
func Parse(frame []byte) Flow {
	var f Flow
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		f.Src, f.Dst, f.Protocol = address(ip.SrcIP), address(ip.DstIP), uint8(ip.Protocol)
	case *layers.IPv6:
		f.Src, f.Dst, f.Protocol = address(ip.SrcIP), address(ip.DstIP), uint8(ip.NextHeader)
	}
	switch l4 := p.TransportLayer().(type) {
	case *layers.TCP:
		f.SrcPort, f.DstPort = uint16(l4.SrcPort), uint16(l4.DstPort)
	case *layers.UDP:
		f.SrcPort, f.DstPort = uint16(l4.SrcPort), uint16(l4.DstPort)
	}
	return f
}

func address(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
