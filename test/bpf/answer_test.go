package bpf_test

import (
	"bytes"
	"net"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
)

func arp(sender, target string, op uint16) []byte {
	return frame(ether(gwMAC, mac("ff:ff:ff:ff:ff:ff"), layers.EthernetTypeARP), &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: gwMAC[:], SourceProtAddress: net.ParseIP(sender).To4(), DstHwAddress: make([]byte, 6), DstProtAddress: net.ParseIP(target).To4()})
}

func solicit(src, dst, target string, hops uint8, opts ...layers.ICMPv6Option) []byte {
	ip := ip6(src, dst, layers.IPProtocolICMPv6)
	ip.HopLimit = hops
	return frame(ether(gwMAC, mac("33:33:ff:00:00:01"), layers.EthernetTypeIPv6), ip,
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)},
		&layers.ICMPv6NeighborSolicitation{TargetAddress: net.ParseIP(target), Options: opts})
}

var sourceOption = layers.ICMPv6Option{Type: layers.ICMPv6OptSourceAddress, Data: gwMAC[:]}

// advertised checks a neighbour advertisement.
func advertised(target, to, toMAC string, flags uint8) func(*testing.T, gopacket.Packet, gopacket.Packet) {
	return func(t *testing.T, _, out gopacket.Packet) {
		t.Helper()
		eth := out.LinkLayer().(*layers.Ethernet)
		ip := out.NetworkLayer().(*layers.IPv6)
		na, ok := out.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
		if !ok {
			t.Fatalf("no advertisement in %s", out)
		}
		if eth.DstMAC.String() != toMAC || !bytes.Equal(eth.SrcMAC, nextHopMAC[:]) {
			t.Errorf("sent %s > %s", eth.SrcMAC, eth.DstMAC)
		}
		if ip.HopLimit != 255 || !ip.SrcIP.Equal(net.ParseIP(target)) || !ip.DstIP.Equal(net.ParseIP(to)) {
			t.Errorf("sent %s > %s, hop limit %d", ip.SrcIP, ip.DstIP, ip.HopLimit)
		}
		if na.Flags != flags || !na.TargetAddress.Equal(net.ParseIP(target)) || len(na.Options) != 1 || !bytes.Equal(na.Options[0].Data, nextHopMAC[:]) {
			t.Errorf("advertisement %+v", na)
		}
	}
}

func answered(target string) func(*testing.T, gopacket.Packet, gopacket.Packet) {
	return func(t *testing.T, _, out gopacket.Packet) {
		t.Helper()
		eth := out.LinkLayer().(*layers.Ethernet)
		a := out.Layer(layers.LayerTypeARP).(*layers.ARP)
		if !bytes.Equal(eth.SrcMAC, nextHopMAC[:]) || !bytes.Equal(eth.DstMAC, gwMAC[:]) {
			t.Errorf("sent %s > %s", eth.SrcMAC, eth.DstMAC)
		}
		if a.Operation != layers.ARPReply || !bytes.Equal(a.SourceHwAddress, nextHopMAC[:]) || !bytes.Equal(a.DstHwAddress, gwMAC[:]) ||
			!net.IP(a.SourceProtAddress).Equal(net.ParseIP(target)) {
			t.Errorf("reply %+v", a)
		}
	}
}

func answers(t *testing.T, dir string, d *ebpf.Dataplane) {
	out := func(name string, b []byte, why drop.Reason) row { return row{name: name, in: fromOVN(b), drop: why} }
	own := gwMAC
	toGW := net.HardwareAddr(own[:]).String()
	runRows(t, dir, d, []row{
		{name: "ARP", in: fromOVN(arp("172.24.4.10", "172.24.4.1", 1)), out: lo, check: answered("172.24.4.1")},
		{name: "ARP probe", in: fromOVN(arp("0.0.0.0", "172.24.4.7", 1)), out: lo, check: answered("172.24.4.7")},
		{name: "ARP in a VLAN", in: withVLAN(fromOVN(arp("172.24.6.10", "172.24.6.1", 1)), 300), out: lo, check: answered("172.24.6.1")},
		out("ARP for its own address", arp("172.24.4.3", "172.24.4.10", 1), drop.NotServed),
		out("ARP for a known port", arp("172.24.4.10", "172.24.4.20", 1), drop.NotServed),
		{name: "ARP for a known port of another VLAN", in: fromOVN(arp("172.24.4.10", "172.24.4.21", 1)), out: lo, check: answered("172.24.4.21")},
		out("ARP for a stranger", arp("172.24.4.10", "172.24.9.1", 1), drop.NotServed),
		out("ARP announcement", arp("172.24.4.1", "172.24.4.1", 1), drop.NotARequest),
		out("ARP reply", arp("172.24.4.10", "172.24.4.1", 2), drop.NotARequest),
		out("ARP of another kind", changed(arp("172.24.4.10", "172.24.4.1", 1), 18, 8), drop.NotARequest),
		out("ARP cut", arp("172.24.4.10", "172.24.4.1", 1)[:40], drop.ShortFrame),
		{name: "NS", in: fromOVN(solicit("2001:db8:24::10", "ff02::1:ff00:1", "2001:db8:24::1", 255, sourceOption)), out: lo,
			check: advertised("2001:db8:24::1", "2001:db8:24::10", toGW, 0x60)},
		{name: "NS without option", in: fromOVN(solicit("2001:db8:24::10", "2001:db8:24::1", "2001:db8:24::1", 255)), out: lo,
			check: advertised("2001:db8:24::1", "2001:db8:24::10", toGW, 0x60)},
		{name: "NS with more options", out: lo, in: fromOVN(solicit("2001:db8:24::10", "ff02::1:ff00:1", "2001:db8:24::1", 255, sourceOption,
			layers.ICMPv6Option{Type: 14, Data: make([]byte, 6)})), check: advertised("2001:db8:24::1", "2001:db8:24::10", toGW, 0x60)},
		{name: "NS for a link-local next hop", in: fromOVN(solicit("fe80::10", "ff02::1:ff00:1", "fe80::1", 255, sourceOption)), out: lo,
			check: advertised("fe80::1", "fe80::10", toGW, 0x60)},
		{name: "NS that looks for duplicates", in: fromOVN(solicit("::", "ff02::1:ff00:1", "2001:db8:24::1", 255)), out: lo,
			check: advertised("2001:db8:24::1", "ff02::1", "33:33:00:00:00:01", 0x20)},
		out("NS for its own address", solicit("2001:db8:24::3", "ff02::1:ff00:10", "2001:db8:24::10", 255), drop.NotServed),
		out("NS for a known port", solicit("2001:db8:24::10", "ff02::1:ff00:20", "2001:db8:24::20", 255), drop.NotServed),
		out("NS from afar", solicit("2001:db8:24::10", "ff02::1:ff00:1", "2001:db8:24::1", 254), drop.NotARequest),
		out("NS for a group", solicit("2001:db8:24::10", "ff02::1:ff00:1", "ff02::1", 255), drop.NotARequest),
		out("NA", changed(solicit("2001:db8:24::10", "ff02::1", "2001:db8:24::1", 255), 54, 136), drop.NotARequest),
		out("NS cut", changed(solicit("2001:db8:24::10", "ff02::1:ff00:1", "2001:db8:24::1", 255)[:14+40+12], 18, 0, 12), drop.ShortFrame),
	})
}

// icmp checks an ICMP error: its addresses, type, code and MTU, and that it
// quotes the packet from its first byte.
func icmp(src, dst string, typ, code uint8, mtu uint32, srcMAC, dstMAC [6]byte) func(*testing.T, gopacket.Packet, gopacket.Packet) {
	return func(t *testing.T, in, out gopacket.Packet) {
		t.Helper()
		eth := out.LinkLayer().(*layers.Ethernet)
		if !bytes.Equal(eth.SrcMAC, srcMAC[:]) || !bytes.Equal(eth.DstMAC, dstMAC[:]) {
			t.Errorf("sent %s > %s", eth.SrcMAC, eth.DstMAC)
		}
		flow := out.NetworkLayer().NetworkFlow()
		if flow.Src().String() != src || flow.Dst().String() != dst {
			t.Errorf("sent %s, want %s > %s", flow, src, dst)
		}
		b := out.NetworkLayer().LayerPayload()
		got := uint32(b[4])<<24 | uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7])
		if b[0] != typ || b[1] != code || got != mtu {
			t.Errorf("type %d code %d mtu %d, want %d %d %d", b[0], b[1], got, typ, code, mtu)
		}
		quote, whole := b[8:], in.LinkLayer().LayerPayload()
		if len(quote) != min(len(whole), 128) || !bytes.HasPrefix(whole, quote) {
			t.Errorf("quotes %x of %x", quote, whole)
		}
	}
}

// sized is a UDP packet of so many layer-3 bytes.
func sized(b func(src, dst string) []byte, src, dst string, size int) []byte {
	p := decode(b(src, dst))
	eth := p.LinkLayer().(*layers.Ethernet)
	if ip, ok := p.NetworkLayer().(*layers.IPv4); ok {
		ip.Flags = layers.IPv4DontFragment
		return frame(eth, ip, udp(), gopacket.Payload(make([]byte, size-28)))
	}
	return frame(eth, p.NetworkLayer().(*layers.IPv6), udp(), gopacket.Payload(make([]byte, size-48)))
}

func ttl(b []byte, n byte) []byte {
	if b[14]>>4 == 6 {
		return changed(b, 14+7, n)
	}
	p := decode(b)
	ip := p.NetworkLayer().(*layers.IPv4)
	ip.TTL = n
	return frame(p.LinkLayer().(*layers.Ethernet), ip, gopacket.Payload(ip.Payload))
}

func icmpToFabric(t *testing.T, dir string, d *ebpf.Dataplane) {
	in := func(name string, b []byte, why drop.Reason, check func(*testing.T, gopacket.Packet, gopacket.Packet)) row {
		return row{name: name, in: fromFabric(b), drop: why, out: vxlan, check: check}
	}
	silent := func(name string, b []byte, why drop.Reason) row { return row{name: name, in: fromFabric(b), drop: why} }
	to4 := func(typ, code uint8, mtu uint32) func(*testing.T, gopacket.Packet, gopacket.Packet) {
		return icmp("172.24.4.10", "10.20.0.9", typ, code, mtu, routerMAC, peerMAC)
	}
	to6 := func(typ, code uint8, mtu uint32) func(*testing.T, gopacket.Packet, gopacket.Packet) {
		return icmp("2001:db8:24::10", "fd00:20::9", typ, code, mtu, routerMAC, peerMAC)
	}
	errorPacket := frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv4), ip4("10.20.0.9", "10.10.0.5", layers.IPProtocolICMPv4),
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 1)}, gopacket.Payload(make([]byte, 28)))
	error6 := frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv6), ip6("fd00:20::9", "fd00:10::5", layers.IPProtocolICMPv6),
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(1, 0)}, gopacket.Payload(make([]byte, 48)))
	later := changed(in4("10.20.0.9", "10.10.0.5"), 20, 0, 100)
	large := sized(in4, "10.20.0.9", "10.10.0.5", 1501)
	runRows(t, dir, d, []row{
		in("TTL 4", ttl(in4("10.20.0.9", "10.10.0.5"), 1), drop.TTLExpired, to4(11, 0, 0)),
		in("TTL 4 is 0", ttl(in4("10.20.0.9", "10.10.0.5"), 0), drop.TTLExpired, to4(11, 0, 0)),
		in("hop limit", ttl(in6("fd00:20::9", "fd00:10::5"), 1), drop.TTLExpired, to6(3, 0, 0)),
		in("too big 4", sized(in4, "10.20.0.9", "10.10.0.5", 1501), drop.TooBig, to4(3, 4, 1500)),
		in("too big 6", sized(in6, "fd00:20::9", "fd00:10::5", 1501), drop.TooBig, to6(2, 0, 1500)),
		// Without DF too: docs/decisions/0008-no-fragments-into-ovn.md.
		in("too big 4 without DF", changed(large, 20, 0), drop.TooBig, to4(3, 4, 1500)),
		in("too big 4, first fragment", changed(large, 20, 0x20), drop.TooBig, to4(3, 4, 1500)),
		silent("too big 4, later fragment", changed(large, 20, 0x20, 100), drop.TooBig),
		silent("too big 4, last fragment", changed(large, 20, 0, 100), drop.TooBig),
		// The VRF has two gateways; either may speak for it.
		{name: "no route 4", in: fromFabric(in4("10.20.0.9", "10.77.0.1")), drop: drop.NoRoute, out: vxlan},
		{name: "no route 6", in: fromFabric(in6("fd00:20::9", "fd00:77::1")), drop: drop.NoRoute, out: vxlan},
		{name: "fits", in: fromFabric(sized(in4, "10.20.0.9", "10.10.0.5", 1500)), out: lo},
		silent("ICMP error", ttl(errorPacket, 1), drop.TTLExpired),
		silent("ICMPv6 error", ttl(error6, 1), drop.TTLExpired),
		silent("later fragment", ttl(later, 1), drop.TTLExpired),
		silent("source that is not in the fabric", ttl(in4("10.10.0.9", "10.10.0.5"), 1), drop.TTLExpired),
		silent("source without a route", ttl(in4("10.98.0.9", "10.10.0.5"), 1), drop.TTLExpired),
		{name: "gateway without address", in: via(fromFabric(ttl(in4("10.20.0.9", "10.10.0.5"), 1)), peer4, blue), drop: drop.TTLExpired},
	})
}

func icmpToOVN(t *testing.T, dir string, d *ebpf.Dataplane) {
	in := func(name string, b []byte, why drop.Reason, check func(*testing.T, gopacket.Packet, gopacket.Packet)) row {
		return row{name: name, in: fromOVN(b), drop: why, out: lo, check: check}
	}
	to4 := func(src string, typ, code uint8, mtu uint32) func(*testing.T, gopacket.Packet, gopacket.Packet) {
		return icmp(src, "10.10.0.5", typ, code, mtu, nextHopMAC, gwMAC)
	}
	to6 := func(src string, typ, code uint8, mtu uint32) func(*testing.T, gopacket.Packet, gopacket.Packet) {
		return icmp(src, "fd00:10::5", typ, code, mtu, nextHopMAC, gwMAC)
	}
	blueFrame := frame(ether(blueMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("10.10.0.5", "10.88.0.1", layers.IPProtocolUDP), udp())
	tcp := frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), func() *layers.IPv4 {
		ip := ip4("10.10.0.5", "10.20.0.9", layers.IPProtocolTCP)
		ip.Flags = layers.IPv4DontFragment
		return ip
	}(), &layers.TCP{SrcPort: 1, DstPort: 2, SYN: true}, gopacket.Payload(make([]byte, 3000)))
	segments := fromOVN(tcp)
	segments.GSOSize = 1400
	large := segments
	large.GSOSize = 1411
	runRows(t, dir, d, []row{
		in("configured source 4", ttl(out4("10.10.0.5", "10.20.0.9"), 1), drop.TTLExpired, to4("172.24.4.1", 11, 0, 0)),
		in("configured source 6", ttl(out6("fd00:10::5", "fd00:20::9"), 1), drop.TTLExpired, to6("2001:db8:24::1", 3, 0, 0)),
		{name: "no source", in: fromOVN(blueFrame), drop: drop.NoRoute},
		// Now the router asks for its next hops.
		{name: "ARP", in: fromOVN(arp("172.24.4.10", "172.24.4.254", 1)), out: lo},
		{name: "NS", in: fromOVN(solicit("2001:db8:24::10", "ff02::1:ff00:fe", "2001:db8:24::fe", 255)), out: lo},
		in("asked source 4", out4("10.10.0.5", "10.99.0.1"), drop.NoRoute, to4("172.24.4.254", 3, 0, 0)),
		in("asked source 6", out6("fd00:10::5", "fd00:99::1"), drop.NoRoute, to6("2001:db8:24::fe", 1, 0, 0)),
		in("too big 4", sized(out4, "10.10.0.5", "10.20.0.9", 1451), drop.TooBig, to4("172.24.4.254", 3, 4, 1450)),
		in("too big 4 over IPv6", sized(out4, "10.10.0.5", "10.26.0.9", 1431), drop.TooBig, to4("172.24.4.254", 3, 4, 1430)),
		in("too big 6", sized(out6, "fd00:10::5", "fd00:20::9", 1451), drop.TooBig, to6("2001:db8:24::fe", 2, 0, 1450)),
		in("too big for another gateway", sized(out4, "10.10.0.5", "10.11.0.9", 1401), drop.TooBig, to4("172.24.4.254", 3, 4, 1400)),
		in("too big for another gateway, without DF", changed(sized(out4, "10.10.0.5", "10.11.0.9", 1401), 20, 0), drop.TooBig,
			to4("172.24.4.254", 3, 4, 1400)),
		{name: "fits", in: fromOVN(sized(out4, "10.10.0.5", "10.20.0.9", 1450)), out: vxlan},
		{name: "segments fit", in: segments, out: vxlan},
		{name: "segments are too big", in: large, drop: drop.TooBig, out: lo, check: to4("172.24.4.254", 3, 4, 1450)},
		{name: "link-local next hop", in: fromOVN(solicit("fe80::10", "ff02::1:ff00:1", "fe80::1", 255)), out: lo},
		in("no link-local source", out6("fd00:10::5", "fd00:99::1"), drop.NoRoute, to6("2001:db8:24::1", 1, 0, 0)),
	})
}

// A packet without DF that does not fit goes out for the kernel to fragment.
func TestOuterDF(t *testing.T) {
	noDF := frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("10.10.0.5", "10.20.0.9", layers.IPProtocolUDP), udp(), gopacket.Payload(make([]byte, 1500)))
	withDF := sized(out4, "10.10.0.5", "10.20.0.9", 1480)
	cleared := &ebpf.Step{What: ebpf.StepFragment, Value: uint32(len(noDF) - 14)}
	for _, mode := range []struct {
		name string
		df   ebpf.DF
		rows []row
	}{
		{"auto", ebpf.DFAuto, []row{{name: "without", in: fromOVN(noDF), out: vxlan, step: cleared}, {name: "with", in: fromOVN(withDF), drop: drop.TooBig, out: lo}}},
		{"set", ebpf.DFSet, []row{{name: "without", in: fromOVN(noDF), drop: drop.TooBig, out: lo}, {name: "with", in: fromOVN(withDF), drop: drop.TooBig, out: lo}}},
		{"clear", ebpf.DFClear, []row{{name: "without", in: fromOVN(noDF), out: vxlan}, {name: "with", in: fromOVN(withDF), out: vxlan}}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			dir := bpffs(t)
			n := node()
			n.DF = mode.df
			runRows(t, dir, world(t, dir, n), mode.rows)
		})
	}
}
