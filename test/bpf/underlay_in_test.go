package bpf_test

import (
	"context"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// intoOVN: what comes from the underlay for an exposed address enters OVN.
func intoOVN(t *testing.T, dir string, d *ebpf.Dataplane) {
	toVM, toTenant := forwarded(nextHopMAC, vmMAC), forwarded(nextHopMAC, gwMAC)
	options := ip4("198.51.100.1", "203.0.113.5", layers.IPProtocolUDP)
	options.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
	hit := under4("198.51.100.1", "203.0.113.5")
	in := func(name string, b []byte, check func(*testing.T, gopacket.Packet, gopacket.Packet)) row {
		return row{name: name, in: fromUnderlay(b), out: lo, check: check}
	}
	large := fromUnderlay(underTCP("198.51.100.1", "203.0.113.5", 3000))
	large.GSOSize = 1400
	runRows(t, dir, d, []row{
		in("host 4", hit, toVM),
		in("host 6", under6("2001:db8:9::1", "2001:db8:113::5"), toVM),
		in("prefix 4", under4("198.51.100.1", "203.0.113.129"), toVM),
		in("prefix 6", under6("2001:db8:9::1", "2001:db8:113:1::9"), toVM),
		in("floating IP behind a tenant's gateway 4", under4("198.51.100.1", "203.0.113.77"), toTenant),
		in("floating IP behind a tenant's gateway 6", under6("2001:db8:9::1", "2001:db8:113::77"), toTenant),
		{name: "into a VLAN 4", in: fromUnderlay(under4("198.51.100.1", "203.0.113.66")), out: sluice},
		{name: "into a VLAN 6", in: fromUnderlay(under6("2001:db8:9::1", "2001:db8:113::66")), out: sluice},
		in("IPv4 options", frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv4), options, udp()), toVM),
		in("first fragment", refrag(hit, 0x20, 0), nil),
		in("later fragment", refrag(hit, 0, 100), nil),
		in("largest 4", sized(under4, "198.51.100.1", "203.0.113.5", 1500), toVM),
		in("largest 6", sized(under6, "2001:db8:9::1", "2001:db8:113::5", 1500), toVM),
		{name: "segments", in: large, out: lo},
	})
}

// refrag sets flags and offset of an IPv4 fragment, and the checksum.
func refrag(b []byte, flags byte, offset uint16) []byte {
	p := decode(b)
	ip := p.NetworkLayer().(*layers.IPv4)
	ip.Flags, ip.FragOffset = layers.IPv4Flag(flags>>5), offset
	return frame(p.LinkLayer().(*layers.Ethernet), ip, gopacket.Payload(ip.Payload))
}

func underTCP(src, dst string, payload int) []byte {
	ip := ip4(src, dst, layers.IPProtocolTCP)
	ip.Flags = layers.IPv4DontFragment
	return frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv4), ip, &layers.TCP{SrcPort: 1, DstPort: 2, ACK: true}, gopacket.Payload(make([]byte, payload)))
}

// onToTheHost: whatever else comes goes on to the host, byte for byte, and is not counted.
func onToTheHost(t *testing.T, dir string, d *ebpf.Dataplane) {
	hit, hit6 := under4("198.51.100.1", "203.0.113.5"), under6("2001:db8:9::1", "2001:db8:113::5")
	host, host6 := under4("198.51.100.1", "192.0.2.7"), under6("2001:db8:9::1", "2001:db8:ffff::7")
	options := ip4("198.51.100.1", "192.0.2.7", layers.IPProtocolUDP)
	options.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
	hops := ip6("2001:db8:9::1", "2001:db8:ffff::7", layers.IPProtocolIPv6HopByHop)
	vx := frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv4), ip4("192.0.2.9", "192.0.2.1", layers.IPProtocolUDP),
		&layers.UDP{SrcPort: 40000, DstPort: 4789}, &layers.VXLAN{ValidIDFlag: true, VNI: uint32(red)}, gopacket.Payload(in4("10.20.0.9", "10.10.0.5")))
	super := fromUnderlay(underTCP("198.51.100.1", "192.0.2.7", 3000))
	super.GSOSize = 1400
	on := func(name string, b []byte) row { return row{name: name, in: fromUnderlay(b), passes: true} }
	to := func(b []byte, dst intent.MAC) []byte { return changed(b, 0, dst[:]...) }
	runRows(t, dir, d, []row{
		on("the host 4", host), on("the host 6", host6),
		on("the tunnel endpoint 4, although exposed", under4("198.51.100.1", "192.0.2.1")),
		on("the tunnel endpoint 6, although exposed", under6("2001:db8:9::1", "2001:db8:ffff::1")),
		on("the tunnel endpoint 4, from a martian", under4("127.0.0.1", "192.0.2.1")),
		on("the tunnel endpoint 6, from a martian", under6("fe80::9", "2001:db8:ffff::1")),
		on("the tunnel endpoint, from itself", under4("192.0.2.1", "192.0.2.1")),
		on("VXLAN for this node", vx),
		on("the last hop", ttl(host, 1)), on("the last hop 6", ttl(host6, 1)),
		on("first fragment", refrag(host, 0x20, 0)), on("later fragment", refrag(host, 0, 100)),
		on("IPv4 options", frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv4), options, udp())),
		on("extension header", frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv6), hops, gopacket.Payload([]byte{17, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4, 0, 8, 0, 0}))),
		{name: "segments", in: super, passes: true},
		on("too large for any", sized(under4, "198.51.100.1", "192.0.2.7", 3000)),
		on("an address of a tenant 4", under4("198.51.100.1", "10.10.0.5")), on("an address of a tenant 6", under6("2001:db8:9::1", "fd00:10::5")),
		on("a blocked address", under4("198.51.100.1", "203.0.113.130")),
		on("multicast 4", to(under4("198.51.100.1", "224.0.0.5"), mac("01:00:5e:00:00:05"))),
		on("multicast 6", to(under6("2001:db8:9::1", "ff02::5"), mac("33:33:00:00:00:05"))),
		on("an exposed address in a multicast frame", to(hit, mac("01:00:5e:00:00:05"))),
		on("an exposed address in a broadcast frame", to(hit, mac("ff:ff:ff:ff:ff:ff"))),
		on("another host's frame 4", to(hit, mac("02:00:00:00:00:66"))), on("another host's frame 6", to(hit6, mac("02:00:00:00:00:66"))),
		on("ARP", to(arp("192.0.2.9", "192.0.2.1", 1), hostMAC)),
		on("neighbour solicitation", to(solicit("2001:db8:ffff::9", "2001:db8:ffff::1", "2001:db8:ffff::1", 255), hostMAC)),
		on("not IP", etherType(peerMAC, hostMAC, 0x88cc)),
		on("malformed 4", changed(hit, 14, 0x65)), on("malformed 6", changed(hit6, 14, 0x40)),
		on("header length", changed(hit, 14, 0x44)), on("total length", changed(hit, 16, 0, 10)),
		on("cut behind the header", hit[:14+24]), on("cut behind the header 6", hit6[:14+44]),
		{name: "in a VLAN 4", in: withVLAN(fromUnderlay(hit), 100), passes: true}, {name: "in a VLAN 6", in: withVLAN(fromUnderlay(hit6), 100), passes: true},
	})
}

// refusedFromUnderlay: what is for an exposed address and cannot be forwarded is dropped with a reason, and
// its sender is told by way of the neighbour that it came from.
func refusedFromUnderlay(t *testing.T, dir string, d *ebpf.Dataplane) {
	back := func(src, dst string, typ, code uint8, mtu uint32) func(*testing.T, gopacket.Packet, gopacket.Packet) {
		return icmp(src, dst, typ, code, mtu, hostMAC, peerMAC)
	}
	in := func(name string, b []byte, why drop.Reason, check func(*testing.T, gopacket.Packet, gopacket.Packet)) row {
		return row{name: name, in: fromUnderlay(b), drop: why, out: lo, check: check}
	}
	silent := func(name string, b []byte, why drop.Reason) row {
		return row{name: name, in: fromUnderlay(b), drop: why}
	}
	hit, hit6 := under4("198.51.100.1", "203.0.113.5"), under6("2001:db8:9::1", "2001:db8:113::5")
	error4 := frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv4), ip4("198.51.100.1", "203.0.113.5", layers.IPProtocolICMPv4),
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 1)}, gopacket.Payload(make([]byte, 28)))
	error6 := frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv6), ip6("2001:db8:9::1", "2001:db8:113::5", layers.IPProtocolICMPv6),
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(1, 0)}, gopacket.Payload(make([]byte, 48)))
	large := fromUnderlay(underTCP("198.51.100.1", "203.0.113.5", 3000))
	large.GSOSize = 1461
	runRows(t, dir, d, []row{
		in("TTL 4, from the configured address", ttl(hit, 1), drop.TTLExpired, back("203.0.113.1", "198.51.100.1", 11, 0, 0)),
		in("hop limit, from the configured address", ttl(hit6, 1), drop.TTLExpired, back("2001:db8:113::1", "2001:db8:9::1", 3, 0, 0)),
		in("TTL 4 is 0", ttl(hit, 0), drop.TTLExpired, back("203.0.113.1", "198.51.100.1", 11, 0, 0)),
		in("TTL 4, from the gateway port", ttl(under4("198.51.100.1", "203.0.113.77"), 1), drop.TTLExpired, back("172.24.4.10", "198.51.100.1", 11, 0, 0)),
		in("hop limit, from the gateway port", ttl(under6("2001:db8:9::1", "2001:db8:113::77"), 1), drop.TTLExpired, back("2001:db8:24::10", "2001:db8:9::1", 3, 0, 0)),
		in("TTL 4, from the node", ttl(under4("198.51.100.1", "203.0.113.66"), 1), drop.TTLExpired, back("192.0.2.1", "198.51.100.1", 11, 0, 0)),
		in("hop limit, from the node", ttl(under6("2001:db8:9::1", "2001:db8:113::66"), 1), drop.TTLExpired, back("2001:db8:ffff::1", "2001:db8:9::1", 3, 0, 0)),
		in("too big 4", sized(under4, "198.51.100.1", "203.0.113.5", 1501), drop.TooBig, back("203.0.113.1", "198.51.100.1", 3, 4, 1500)),
		in("too big 6", sized(under6, "2001:db8:9::1", "2001:db8:113::5", 1501), drop.TooBig, back("2001:db8:113::1", "2001:db8:9::1", 2, 0, 1500)),
		in("too big for that bridge", sized(under4, "198.51.100.1", "203.0.113.66", 1401), drop.TooBig, back("192.0.2.1", "198.51.100.1", 3, 4, 1400)),
		{name: "segments are too big", in: large, drop: drop.TooBig, out: lo, check: back("203.0.113.1", "198.51.100.1", 3, 4, 1500)},
		silent("later fragment", ttl(refrag(hit, 0, 100), 1), drop.TTLExpired),
		silent("ICMP error", ttl(error4, 1), drop.TTLExpired),
		silent("ICMPv6 error", ttl(error6, 1), drop.TTLExpired),
		silent("source of this node's own", ttl(under4("203.0.113.77", "203.0.113.5"), 1), drop.TTLExpired),
		silent("source 6 of this node's own", ttl(under6("2001:db8:113::77", "2001:db8:113::5"), 1), drop.TTLExpired),
		silent("loopback source", under4("127.0.0.1", "203.0.113.5"), drop.Martian),
		silent("link-local source", under6("fe80::9", "2001:db8:113::5"), drop.Martian),
		silent("source is destination", under4("203.0.113.5", "203.0.113.5"), drop.Martian),
		silent("source is destination 6", under6("2001:db8:113::5", "2001:db8:113::5"), drop.Martian),
	})
}

// changesVRF: a gateway comes to another VRF, is deleted, and comes back: what the default VRF
// leads to it follows.
func changesVRF(t *testing.T, dir string, d *ebpf.Dataplane) {
	to := func(name string) []row {
		return []row{
			{name: name + " 4", in: fromUnderlay(under4("198.51.100.1", "203.0.113.77")), out: lo, check: forwarded(nextHopMAC, gwMAC)},
			{name: name + " 6", in: fromUnderlay(under6("2001:db8:9::1", "2001:db8:113::77")), out: lo, check: forwarded(nextHopMAC, gwMAC)},
		}
	}
	list := func() {
		t.Helper()
		got, err := d.Routes().List(context.Background())
		want := local(intent.DefaultVRF, "203.0.113.77/32", gw)
		if err != nil || got[want.Key] != want {
			t.Errorf("listed %+v, %v", got[want.Key], err)
		}
	}
	g := gateways()[gw]
	for _, vni := range []intent.VNI{intent.DefaultVRF, blue, red} {
		g.VNI = vni
		apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: g})
		list()
		runRows(t, dir, d, to("in VRF "+vni.String()))
	}
	if errs := d.Gateways().Delete(context.Background(), []intent.GatewayKey{gw}); errs != nil {
		t.Fatal(errs)
	}
	runRows(t, dir, d, []row{{name: "gone", in: fromUnderlay(under4("198.51.100.1", "203.0.113.77")), drop: drop.StaleRow}})
	g.VNI = intent.DefaultVRF
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: g})
	list()
	runRows(t, dir, d, to("back"))
}
