package bpf_test

import (
	"net"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// solicitedGroup is the group that fe80::a9fe:a9fe is asked for in.
const solicitedGroup = "ff02::1:fffe:a9fe"

func monotonicNow(t *testing.T) uint64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return uint64(now.Nano())
}

func requests6() []steeredRow {
	to := func(n uint32, from string, tcp *layers.TCP, payload string) []byte {
		return tcp6(hostMD, insideMD, numbered6(n, from), proxy6, tcp, payload)
	}
	large := string(make([]byte, 3000))
	const stable = "fe80::1234:5678:9abc:def1" // an identifier that is not made of the MAC address
	request := tcp6(vmGuest, gwMAC, guest6, metadata6, segment(40000, 80, syn), "")
	extended := func(next layers.IPProtocol, b ...byte) []byte {
		return frame(ether(vmGuest, gwMAC, layers.EthernetTypeIPv6), ip6(guest6, metadata6, next), gopacket.Payload(append(b, request[14+40:]...)))
	}
	fragment := extended(layers.IPProtocolIPv6Fragment, 6, 0, 0, 1, 0, 0, 0, 1)
	return []steeredRow{
		{name: "SYN", in: request, want: to(70000, guest6, segment(40000, 80, syn), ""), outcome: "steered6"},
		{name: "data", in: tcp6(vmGuest, gwMAC, guest6, metadata6, segment(40000, 80, pushed), "GET"), want: to(70000, guest6, segment(40000, 80, pushed), "GET"), outcome: "steered6"},
		{name: "another link-local address", in: tcp6(vmGuest, gwMAC, stable, metadata6, segment(40000, 80, syn), ""), want: to(70000, stable, segment(40000, 80, syn), ""), outcome: "steered6"},
		{name: "VLAN", vlan: 300, in: request, want: to(6, guest6, segment(40000, 80, syn), ""), outcome: "steered6"},
		{name: "segments", gso: 1400, in: tcp6(vmGuest, gwMAC, guest6, metadata6, segment(40000, 80, pushed), large), want: to(70000, guest6, segment(40000, 80, pushed), large), outcome: "steered6"},
		{name: "echo", in: echo6(vmGuest, gwMAC, guest6, metadata6, 128), want: echo6(hostMD, insideMD, numbered6(70000, guest6), proxy6, 128), outcome: "steered6"},
		{name: "unknown MAC", in: tcp6(strangerM, gwMAC, guest6, metadata6, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "unknown VLAN", vlan: 301, in: request, outcome: "passed_unknown_source"},
		{name: "global address", in: tcp6(vmGuest, gwMAC, "2001:db8::5", metadata6, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "link-local beyond /64", in: tcp6(vmGuest, gwMAC, "fe80:0:0:1::5", metadata6, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "an address that stands for a guest", in: tcp6(vmGuest, gwMAC, numbered6(6, guest6), metadata6, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "fragment", in: fragment, outcome: "dropped_fragment"},
		{name: "fragment of a stranger", in: changed(fragment, 6, strangerM[:]...), outcome: "passed_unknown_source"},
		{name: "hop-by-hop options", in: extended(layers.IPProtocolIPv6HopByHop, 6, 0, 1, 4, 0, 0, 0, 0), outcome: "passed_extension"},
		{name: "destination options", in: extended(layers.IPProtocolIPv6Destination, 6, 0, 1, 4, 0, 0, 0, 0), outcome: "passed_extension"},
		{name: "another port", in: tcp6(vmGuest, gwMAC, guest6, metadata6, segment(80, 8080, syn), "")},
		{name: "UDP", in: frame(ether(vmGuest, gwMAC, layers.EthernetTypeIPv6), ip6(guest6, metadata6, layers.IPProtocolUDP), &layers.UDP{SrcPort: 1, DstPort: 80})},
		{name: "echo reply", in: echo6(vmGuest, gwMAC, guest6, metadata6, 129)},
		{name: "to the group", in: tcp6(vmGuest, gwMAC, guest6, solicitedGroup, segment(40000, 80, syn), "")},
		{name: "TCP cut", in: request[:14+40+19]},
		{name: "ICMP cut", in: echo6(vmGuest, gwMAC, guest6, metadata6, 128)[:14+40+1]},
	}
}

func solicits(from intent.MAC, src, dst, target string, hops uint8, opts ...layers.ICMPv6Option) []byte {
	ip := ip6(src, dst, layers.IPProtocolICMPv6)
	ip.HopLimit = hops
	return frame(ether(from, mac("33:33:ff:fe:a9:fe"), layers.EthernetTypeIPv6), ip,
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborSolicitation, 0)},
		&layers.ICMPv6NeighborSolicitation{TargetAddress: net.ParseIP(target), Options: opts})
}

// advertises is the answer, whose checksum gopacket computes.
func advertises(to intent.MAC, dst string, flags uint8) []byte {
	ip := ip6(metadata6, dst, layers.IPProtocolICMPv6)
	ip.HopLimit = 255
	return frame(ether(answerM, to, layers.EthernetTypeIPv6), ip,
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(layers.ICMPv6TypeNeighborAdvertisement, 0)},
		&layers.ICMPv6NeighborAdvertisement{Flags: flags, TargetAddress: net.ParseIP(metadata6),
			Options: layers.ICMPv6Options{{Type: layers.ICMPv6OptTargetAddress, Data: answerM[:]}}})
}

func solicitations() []steeredRow {
	source := layers.ICMPv6Option{Type: layers.ICMPv6OptSourceAddress, Data: vmGuest[:]}
	nonce := layers.ICMPv6Option{Type: 14, Data: make([]byte, 6)}
	ask := solicits(vmGuest, guest6, solicitedGroup, metadata6, 255, source)
	answer := advertises(vmGuest, guest6, 0x60)
	in := func(name string, b []byte) steeredRow {
		return steeredRow{name: name, in: b, want: answer, outcome: "answered_nd"}
	}
	unknown := func(name string, b []byte) steeredRow {
		return steeredRow{name: name, in: b, outcome: "passed_unknown_source"}
	}
	on := func(name string, b []byte) steeredRow { return steeredRow{name: name, in: b} }
	inVLAN := in("in a VLAN", ask)
	inVLAN.vlan = 300
	otherVLAN := unknown("in another VLAN", ask)
	otherVLAN.vlan = 301
	return []steeredRow{
		in("to the group", ask),
		in("to the address", solicits(vmGuest, guest6, metadata6, metadata6, 255, source)),
		in("without option", solicits(vmGuest, guest6, metadata6, metadata6, 255)),
		in("with more options", solicits(vmGuest, guest6, solicitedGroup, metadata6, 255, source, nonce)),
		in("with padding", append(ask[:len(ask):len(ask)], make([]byte, 10)...)),
		inVLAN,
		{name: "that looks for duplicates", in: solicits(vmGuest, "::", solicitedGroup, metadata6, 255), want: advertises(mac("33:33:00:00:00:01"), "ff02::1", 0x20), outcome: "answered_nd"},
		{name: "that looks for duplicates, with a nonce", in: solicits(vmGuest, "::", solicitedGroup, metadata6, 255, nonce), want: advertises(mac("33:33:00:00:00:01"), "ff02::1", 0x20), outcome: "answered_nd"},
		unknown("that looks for duplicates, from another MAC", solicits(strangerM, "::", solicitedGroup, metadata6, 255)),
		unknown("from another MAC", solicits(strangerM, guest6, solicitedGroup, metadata6, 255, source)),
		{name: "from a global address", in: solicits(vmGuest, "2001:db8::5", solicitedGroup, metadata6, 255, source), want: advertises(vmGuest, "2001:db8::5", 0x60), outcome: "answered_nd"},
		unknown("from a global address, and another MAC", solicits(strangerM, "2001:db8::5", solicitedGroup, metadata6, 255, source)),
		unknown("from a group", solicits(vmGuest, "ff02::5", solicitedGroup, metadata6, 255, source)),
		otherVLAN,
		on("for another address", solicits(vmGuest, guest6, solicitedGroup, "fe80::1:a9fe:a9fe", 255, source)),
		on("from afar", solicits(vmGuest, guest6, solicitedGroup, metadata6, 254, source)),
		on("with a code", changed(ask, 55, 1)),
		on("that looks for duplicates at the address", solicits(vmGuest, "::", metadata6, metadata6, 255)),
		on("that looks for duplicates with its address", solicits(vmGuest, "::", solicitedGroup, metadata6, 255, source)),
		on("with an option of no length", changed(ask, 14+40+25, 0)),
		on("with an option that is too long", changed(ask, 14+40+25, 2)),
		on("too short", changed(ask, 18, 0, 16)),
		on("longer than the packet", changed(ask, 18, 0, 40)),
		on("cut", ask[:14+40+20]),
		on("advertisement", changed(ask, 54, 136)),
		on("router solicitation", changed(ask, 54, 133)),
	}
}
