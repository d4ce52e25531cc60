package bpf_test

import (
	"net"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
)

// TestProxyIn has a packet for each branch of proxy_in.
func TestProxyIn(t *testing.T) {
	w := newMetadataWorld(t)
	if err := w.taps.Put(taps.Source{IfIndex: lo, MAC: strangerM, Number: 8, Answer: answerM}); err != nil {
		t.Fatal(err)
	}
	w.run(w.proxy, append(replies(), noReplies()...))
	// What was begun goes on without a sign of life.
	if err := w.beat.Stop(); err != nil {
		t.Fatal(err)
	}
	w.run(w.proxy, replies()[:1])
	// A guest that has gone gets nothing.
	if err := w.taps.Remove(here4); err != nil {
		t.Fatal(err)
	}
	w.run(w.proxy, []steeredRow{{name: "a guest that has gone", in: replies()[0].in, outcome: "dropped_number"}})
}

func synAck(t *layers.TCP) { t.SYN, t.ACK, t.Ack = true, true, 1001 }

func reset(seq uint32, ack bool) func(*layers.TCP) {
	return func(t *layers.TCP) { t.RST, t.ACK, t.Seq = true, ack, seq }
}

func replies() []steeredRow {
	in := func(n uint32, set func(*layers.TCP), payload string) []byte {
		return tcp4(insideMD, hostMD, metadata4, numbered4(n), segment(80, 40000, set), payload)
	}
	out := func(set func(*layers.TCP), payload string) []byte {
		return tcp4(answerM, vmGuest, metadata4, guest4, segment(80, 40000, set), payload)
	}
	in6 := func(n uint32, set func(*layers.TCP), payload string) []byte {
		return tcp6(insideMD, hostMD, proxy6, numbered6(n, guest6), segment(80, 40000, set), payload)
	}
	out6 := func(set func(*layers.TCP), payload string) []byte {
		return tcp6(answerM, vmGuest, metadata6, guest6, segment(80, 40000, set), payload)
	}
	optional := func(b []byte) []byte {
		p := decode(b)
		ip := p.NetworkLayer().(*layers.IPv4)
		ip.Options = []layers.IPv4Option{{OptionType: 7, OptionLength: 3, OptionData: []byte{4}}, {OptionType: 0}}
		return frame(p.LinkLayer().(*layers.Ethernet), ip, gopacket.Payload(ip.Payload))
	}
	large := string(make([]byte, 3000))
	return []steeredRow{
		{name: "SYN and ACK", in: in(300, synAck, ""), want: out(synAck, ""), outcome: "replied4"},
		{name: "data", in: in(300, pushed, "HTTP/1.1"), want: out(pushed, "HTTP/1.1"), outcome: "replied4"},
		{name: "segments", gso: 1400, in: in(300, pushed, large), want: out(pushed, large), outcome: "replied4"},
		{name: "the last number", in: in(uint32(identity.Max), synAck, ""), want: out(synAck, ""), outcome: "replied4"},
		{name: "into a VLAN", in: in(5, synAck, ""), want: out(synAck, ""), outcome: "replied4"},
		{name: "options", in: optional(in(300, synAck, "")), want: optional(out(synAck, "")), outcome: "replied4"},
		{name: "echo", in: echo4(insideMD, hostMD, metadata4, numbered4(300), 0), want: echo4(answerM, vmGuest, metadata4, guest4, 0), outcome: "replied4"},
		{name: "reset of a connection", in: in(300, reset(5000, true), ""), want: out(reset(5000, true), ""), outcome: "replied4"},
		{name: "reset without ACK", in: in(300, reset(0, false), ""), want: out(reset(0, false), ""), outcome: "replied4"},
		{name: "SYN and ACK 6", in: in6(70000, synAck, ""), want: out6(synAck, ""), outcome: "replied6"},
		{name: "data 6", in: in6(70000, pushed, "HTTP"), want: out6(pushed, "HTTP"), outcome: "replied6"},
		{name: "segments 6", gso: 1400, in: in6(70000, pushed, large), want: out6(pushed, large), outcome: "replied6"},
		{name: "into a VLAN 6", in: in6(6, synAck, ""), want: out6(synAck, ""), outcome: "replied6"},
		{name: "echo 6", in: echo6(insideMD, hostMD, proxy6, numbered6(70000, guest6), 129), want: echo6(answerM, vmGuest, metadata6, guest6, 129), outcome: "replied6"},
		{name: "reset of a connection 6", in: in6(70000, reset(5000, true), ""), want: out6(reset(5000, true), ""), outcome: "replied6"},
	}
}

// noReplies are whatever else a kernel with a proxy may send, or somebody who got into it.
func noReplies() []steeredRow {
	from4 := func(src, dst string, sport uint16) []byte {
		return tcp4(insideMD, hostMD, src, dst, segment(sport, 40000, pushed), "0123456789")
	}
	from6 := func(src, dst string, sport uint16) []byte {
		return tcp6(insideMD, hostMD, src, dst, segment(sport, 40000, pushed), "0123456789")
	}
	good, good6 := from4(metadata4, numbered4(300), 80), from6(proxy6, numbered6(70000, guest6), 80)
	unreachable := frame(ether(insideMD, hostMD, layers.EthernetTypeIPv4), ip4(metadata4, numbered4(300), layers.IPProtocolICMPv4),
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 3)}, gopacket.Payload(make([]byte, 28)))
	solicit := solicits(insideMD, "fe80::1", "ff02::1:ff00:5", guest6, 255)
	drop := func(name, outcome string, b []byte) steeredRow {
		return steeredRow{name: name, in: b, outcome: outcome}
	}
	other := func(name string, b []byte) steeredRow { return drop(name, "dropped_reply", b) }
	inVLAN := other("in a VLAN", good)
	inVLAN.vlan = 300
	return []steeredRow{
		drop("nobody listens", "dropped_reset", tcp4(insideMD, hostMD, metadata4, numbered4(300), segment(80, 40000, reset(0, true)), "")),
		drop("nobody listens 6", "dropped_reset", tcp6(insideMD, hostMD, proxy6, numbered6(70000, guest6), segment(80, 40000, reset(0, true)), "")),
		drop("no such number", "dropped_number", from4(metadata4, numbered4(301), 80)),
		drop("no such number 6", "dropped_number", from6(proxy6, numbered6(70001, guest6), 80)),
		drop("a number of IPv6", "dropped_number", from4(metadata4, numbered4(8), 80)),
		drop("a number of IPv4", "dropped_number", from6(proxy6, numbered6(300, guest6), 80)),
		drop("no number", "dropped_number", from4(metadata4, "100.64.0.0", 80)),
		other("another source", from4("10.0.0.1", numbered4(300), 80)), other("another source 6", from6("fd6e::1", numbered6(70000, guest6), 80)),
		other("another destination", from4(metadata4, guest4, 80)), other("another destination 6", from6(proxy6, guest6, 80)),
		other("beyond the numbers", from4(metadata4, "100.128.0.5", 80)), other("another prefix 6", from6(proxy6, "fd6d:1:0:1::5", 80)),
		other("another port", from4(metadata4, numbered4(300), 8080)), other("another port 6", from6(proxy6, numbered6(70000, guest6), 8080)),
		other("echo request", echo4(insideMD, hostMD, metadata4, numbered4(300), 8)), other("echo request 6", echo6(insideMD, hostMD, proxy6, numbered6(70000, guest6), 128)),
		other("ICMP error", unreachable),
		other("fragment", refrag(good, 0x20, 0)), other("later fragment", refrag(good, 0, 100)),
		other("UDP", frame(ether(insideMD, hostMD, layers.EthernetTypeIPv4), ip4(metadata4, numbered4(300), layers.IPProtocolUDP), &layers.UDP{SrcPort: 80, DstPort: 1})),
		other("extension header", frame(ether(insideMD, hostMD, layers.EthernetTypeIPv6), ip6(proxy6, numbered6(70000, guest6), layers.IPProtocolIPv6Destination), gopacket.Payload(append([]byte{6, 0, 1, 4, 0, 0, 0, 0}, good6[54:]...)))),
		other("ARP", asking(insideMD, metadata4, numbered4(300), layers.ARPRequest)), other("solicitation", solicit),
		other("not IP", etherType(insideMD, hostMD, 0x88cc)),
		other("wrong version", changed(good, 14, 0x65)), other("wrong header length", changed(good, 14, 0x44)), other("wrong version 6", changed(good6, 14, 0x40)),
		other("TCP cut", good[:14+20+19]), other("TCP cut 6", good6[:14+40+19]),
		inVLAN,
	}
}

// The programs and package identity make addresses alike.
func TestMetadataNumbers(t *testing.T) {
	w := newMetadataWorld(t)
	for _, n := range []uint32{1, 255, 256, 65536, 1 << 21, uint32(identity.Max)} {
		for _, s := range []taps.Source{{IfIndex: lo, VLAN: 7, MAC: vmGuest, Addr: addr(guest4), Number: n, Answer: answerM}, {IfIndex: lo, VLAN: 7, MAC: vmGuest, Number: n, Answer: answerM}} {
			if err := w.taps.Remove(there4); err != nil {
				t.Fatal(err)
			}
			if err := w.taps.Put(s); err != nil {
				t.Fatal(err)
			}
			row := steeredRow{name: net.ParseIP(numbered4(n)).String(), vlan: 7, in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(1, 80, syn), ""),
				want: tcp4(hostMD, insideMD, numbered4(n), metadata4, segment(1, 80, syn), ""), outcome: "steered4"}
			if !s.Addr.IsValid() {
				row = steeredRow{name: numbered6(n, guest6), vlan: 7, in: tcp6(vmGuest, gwMAC, guest6, metadata6, segment(1, 80, syn), ""),
					want: tcp6(hostMD, insideMD, numbered6(n, guest6), proxy6, segment(1, 80, syn), ""), outcome: "steered6"}
			}
			w.run(w.tap, []steeredRow{row})
			if err := w.taps.Remove(s); err != nil {
				t.Fatal(err)
			}
		}
	}
}
