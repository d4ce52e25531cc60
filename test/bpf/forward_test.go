package bpf_test

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// forwarded checks MAC addresses, a TTL that is one less, and that nothing else changed.
func forwarded(src, dst intent.MAC) func(*testing.T, gopacket.Packet, gopacket.Packet) {
	return func(t *testing.T, in, out gopacket.Packet) {
		t.Helper()
		eth := out.LinkLayer().(*layers.Ethernet)
		if !bytes.Equal(eth.SrcMAC, src[:]) || !bytes.Equal(eth.DstMAC, dst[:]) {
			t.Errorf("MAC addresses are %s > %s, want %s > %s", eth.SrcMAC, eth.DstMAC, net.HardwareAddr(src[:]), net.HardwareAddr(dst[:]))
		}
		want := append([]byte(nil), in.LinkLayer().LayerPayload()...)
		if want[0]>>4 == 4 {
			want[8]--
			sum := uint32(want[10])<<8 | uint32(want[11])
			sum += 0x100
			sum = sum&0xffff + sum>>16
			want[10], want[11] = byte(sum>>8), byte(sum)
		} else {
			want[7]--
		}
		if got := out.LinkLayer().LayerPayload(); !bytes.Equal(got, want) {
			t.Errorf("packet is\n%x, want\n%x", got, want)
		}
	}
}

func in4(src, dst string) []byte {
	return frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv4), ip4(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func in6(src, dst string) []byte {
	return frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv6), ip6(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func out4(src, dst string) []byte {
	return frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func out6(src, dst string) []byte {
	return frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv6), ip6(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func nextHopStep(vtep netip.Addr, vni uint32) *ebpf.Step {
	return &ebpf.Step{What: ebpf.StepNextHop, Value: vni, Addr: vtep}
}

func forwards(t *testing.T, dir string, d *ebpf.Dataplane) {
	toOVN, toPeer := forwarded(nextHopMAC, gwMAC), forwarded(routerMAC, peerMAC)
	options := ip4("10.20.0.9", "10.10.0.5", layers.IPProtocolUDP)
	options.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
	blueFrame := frame(ether(blueMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("10.10.0.5", "10.20.0.9", layers.IPProtocolUDP), udp())
	runRows(t, dir, d, []row{
		{name: "fabric host 4", in: fromFabric(in4("10.20.0.9", "10.10.0.5")), out: lo, check: toOVN},
		{name: "fabric prefix 4", in: fromFabric(in4("10.20.0.9", "10.10.0.7")), out: lo, check: toOVN},
		{name: "fabric host 6", in: fromFabric(in6("fd00:20::9", "fd00:10::5")), out: lo, check: toOVN},
		{name: "fabric prefix 6", in: fromFabric(in6("fd00:20::9", "fd00:10::7")), out: lo, check: toOVN},
		{name: "fabric over IPv6", in: via(fromFabric(in4("10.26.0.9", "10.10.0.5")), peer6, red), out: lo, check: toOVN},
		{name: "fabric into a VLAN", in: fromFabric(in4("10.20.0.9", "10.11.0.5")), out: sluice, check: toTagged},
		{name: "fabric same address of another tenant", in: via(fromFabric(in4("10.20.0.9", "10.10.0.5")), peer4, blue), out: lo,
			check: forwarded(nextHopMAC, blueMAC)},
		{name: "fabric IPv4 options", in: fromFabric(frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv4), options, udp())), out: lo, check: toOVN},
		{name: "ovn host 4", in: fromOVN(out4("10.10.0.5", "10.20.0.9")), out: vxlan, check: toPeer, step: nextHopStep(peer4, 5001)},
		{name: "ovn prefix 4", in: fromOVN(out4("10.10.0.7", "10.20.0.8")), out: vxlan, check: toPeer, step: nextHopStep(peer4, 5001)},
		{name: "ovn 6", in: fromOVN(out6("fd00:10::5", "fd00:20::9")), out: vxlan, check: toPeer, step: nextHopStep(peer4, 5001)},
		{name: "ovn 4 over IPv6", in: fromOVN(out4("10.10.0.5", "10.26.0.9")), out: vxlan, check: toPeer, step: nextHopStep(peer6, 5006)},
		{name: "ovn 6 over IPv6", in: fromOVN(out6("fd00:10::5", "fd00:26::9")), out: vxlan, check: toPeer, step: nextHopStep(peer6, 5006)},
		{name: "ovn same address of another tenant", in: fromOVN(blueFrame), out: vxlan, step: nextHopStep(peer4b, 6001)},
		{name: "ovn out of a VLAN", in: withVLAN(fromOVN(out4("10.30.0.5", "10.20.0.9")), 300), out: vxlan, check: toPeer, step: nextHopStep(peer4, 7001)},
		{name: "ovn to another gateway of this node", in: fromOVN(out4("10.10.0.5", "10.11.0.5")), out: sluice, check: toTagged},
	})
}

// toTagged checks the addresses. PROG_TEST_RUN does not show the VLAN tag, which
// is in metadata: see TestDevicesWithVLAN.
func toTagged(t *testing.T, _, out gopacket.Packet) {
	t.Helper()
	eth := out.LinkLayer().(*layers.Ethernet)
	if !bytes.Equal(eth.SrcMAC, nextHopMAC[:]) || !bytes.Equal(eth.DstMAC, gw2MAC[:]) {
		t.Errorf("MAC addresses are %s > %s", eth.SrcMAC, eth.DstMAC)
	}
}
