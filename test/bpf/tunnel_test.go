package bpf_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/pkg/drop"
)

// carrier is a tunnel of the tenant's own around an IP packet.
type carrier struct {
	name    string
	proto   layers.IPProtocol
	headers []gopacket.SerializableLayer
	bytes   int
}

// carriers have an IPv4 or IPv6 packet inside.
func carriers(six bool) []carrier {
	etherType, proto := layers.EthernetTypeIPv4, layers.IPProtocolIPv4
	if six {
		etherType, proto = layers.EthernetTypeIPv6, layers.IPProtocolIPv6
	}
	inner := ether(gwMAC, peerMAC, etherType)
	tagged := []gopacket.SerializableLayer{ether(gwMAC, peerMAC, layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 7, Type: etherType}}
	over := func(port layers.UDPPort, ls ...gopacket.SerializableLayer) []gopacket.SerializableLayer {
		return append([]gopacket.SerializableLayer{&layers.UDP{SrcPort: 40000, DstPort: port}}, ls...)
	}
	vxlan := &layers.VXLAN{ValidIDFlag: true, VNI: 7}
	// One option of eight bytes, RFC 8926 section 3.5.
	geneve := binary.BigEndian.AppendUint64(append([]byte{2, 0, 0x65, 0x58}, 0, 0, 7, 0), 0x0102000100000000)
	return []carrier{
		{"VXLAN", layers.IPProtocolUDP, over(4789, vxlan, inner), 8 + 8 + 14},
		{"VXLAN of Linux, tagged", layers.IPProtocolUDP, append(over(8472, vxlan), tagged...), 8 + 8 + 18},
		{"Geneve with an option", layers.IPProtocolUDP, over(6081, gopacket.Payload(geneve), inner), 8 + 16 + 14},
		{"GRE", layers.IPProtocolGRE, []gopacket.SerializableLayer{&layers.GRE{Protocol: etherType}}, 4},
		{"GRE of Ethernet with key and checksum", layers.IPProtocolGRE, []gopacket.SerializableLayer{
			&layers.GRE{KeyPresent: true, ChecksumPresent: true, Protocol: layers.EthernetTypeTransparentEthernetBridging}, inner}, 4 + 8 + 14},
		{"IP in IP", proto, nil, 0},
	}
}

// The kernel cuts up what is inside a tunnel of the tenant's, and each piece has
// the headers of both: they count against the MTU, and in the counters.
func TestSegmentsInATunnel(t *testing.T) {
	const mtu = 1450 // of the underlay, less the outer headers
	dir := bpffs(t)
	var rows []row
	for _, sixes := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		for _, c := range carriers(sixes[1]) {
			rows = append(rows, tunnelRows(c, sixes[0], sixes[1], mtu)...)
		}
	}
	// What is no tunnel inside is not taken for one.
	plain := fromOVN(frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("10.10.0.5", "10.20.0.9", layers.IPProtocolUDP),
		&layers.UDP{SrcPort: 40000, DstPort: 4789}, gopacket.Payload(make([]byte, 3000))))
	plain.GSOSize = mtu - 28
	rows = append(rows, row{name: "no tunnel", in: plain, out: vxlan, headers: 28})
	runRows(t, dir, world(t, dir, node()), rows)
}

// tunnelRows are a large packet whose segments just fit, and one of a byte more.
func tunnelRows(c carrier, outer6, inner6 bool, mtu int) (rows []row) {
	outerLen, innerLen, version := 20, 20, [2]int{4, 4}
	var ls []gopacket.SerializableLayer
	if outer6 {
		outerLen, version[0] = 40, 6
		ls = append(ls, ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv6), ip6("fd00:10::5", "fd00:20::9", c.proto))
	} else {
		ip := ip4("10.10.0.5", "10.20.0.9", c.proto)
		ip.Flags = layers.IPv4DontFragment
		ls = append(ls, ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), ip)
	}
	ls = append(ls, c.headers...)
	if inner6 {
		innerLen, version[1] = 40, 6
		ls = append(ls, ip6("fd77::1", "fd77::2", layers.IPProtocolTCP))
	} else {
		ls = append(ls, ip4("192.168.0.1", "192.168.0.2", layers.IPProtocolTCP))
	}
	// A timestamp option, as TCP has it nearly always.
	tcp := &layers.TCP{SrcPort: 1, DstPort: 2, ACK: true, Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: make([]byte, 8)}}}
	headers := outerLen + c.bytes + innerLen + 32
	fits := fromOVN(frame(append(ls, tcp, gopacket.Payload(make([]byte, 3000)))...))
	fits.GSOSize = uint32(mtu - headers)
	large := fits
	large.GSOSize++
	name := fmt.Sprintf("%s, %d in %d, ", c.name, version[1], version[0])
	return []row{
		{name: name + "fits", in: fits, out: vxlan, headers: headers},
		{name: name + "too big", in: large, drop: drop.TooBig, out: lo},
	}
}
