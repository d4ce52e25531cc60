package bpf_test

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestTapIn has a packet for each branch of tap_in.
func TestTapIn(t *testing.T) {
	w := newMetadataWorld(t)
	for _, part := range []struct {
		name string
		rows []steeredRow
	}{
		{"IPv4", requests4()}, {"fragments and options", oddRequests4()}, {"IPv6", requests6()}, {"ARP", arpRequests()}, {"ND", solicitations()},
		{"not metadata", notMetadata()},
	} {
		t.Run(part.name, func(t *testing.T) {
			w.t = t
			w.run(w.tap, part.rows)
		})
	}
}

func requests4() []steeredRow {
	to := func(n uint32, tcp *layers.TCP, payload string) []byte {
		return tcp4(hostMD, insideMD, numbered4(n), metadata4, tcp, payload)
	}
	large := string(make([]byte, 3000))
	return []steeredRow{
		{name: "SYN", in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, syn), ""), want: to(300, segment(40000, 80, syn), ""), outcome: "steered4"},
		{name: "data", in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, pushed), "GET /"), want: to(300, segment(40000, 80, pushed), "GET /"), outcome: "steered4"},
		{name: "odd length", in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, pushed), "GET"), want: to(300, segment(40000, 80, pushed), "GET"), outcome: "steered4"},
		{name: "another address of the guest", in: tcp4(vmGuest, gwMAC, "10.0.1.5", metadata4, segment(40000, 80, syn), ""), want: to(302, segment(40000, 80, syn), ""), outcome: "steered4"},
		{name: "VLAN", vlan: 300, in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, syn), ""), want: to(5, segment(40000, 80, syn), ""), outcome: "steered4"},
		{name: "VLAN with a priority", vlan: 300 | 5<<13, in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, syn), ""), want: to(5, segment(40000, 80, syn), ""), outcome: "steered4"},
		{name: "segments", gso: 1400, in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, pushed), large), want: to(300, segment(40000, 80, pushed), large), outcome: "steered4"},
		{name: "echo", in: echo4(vmGuest, gwMAC, guest4, metadata4, 8), want: echo4(hostMD, insideMD, numbered4(300), metadata4, 8), outcome: "steered4"},
		{name: "unknown address", in: tcp4(vmGuest, gwMAC, "10.0.0.6", metadata4, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "unknown MAC", in: tcp4(strangerM, gwMAC, guest4, metadata4, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "unknown VLAN", vlan: 301, in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "address of the other VLAN alone", vlan: 300, in: tcp4(vmGuest, gwMAC, "10.0.1.5", metadata4, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "an address that stands for a guest", in: tcp4(vmGuest, gwMAC, numbered4(5), metadata4, segment(40000, 80, syn), ""), outcome: "passed_unknown_source"},
		{name: "unknown echo", in: echo4(vmGuest, gwMAC, "10.0.0.6", metadata4, 8), outcome: "passed_unknown_source"},
	}
}

func oddRequests4() []steeredRow {
	with := func(src, dst intent.MAC, from string, options ...layers.IPv4Option) []byte {
		ip := ip4(from, metadata4, layers.IPProtocolTCP)
		ip.Options = options
		return frame(ether(src, dst, layers.EthernetTypeIPv4), ip, segment(40000, 80, syn))
	}
	alert := layers.IPv4Option{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}
	whole := tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, pushed), "0123456789")
	stranger := tcp4(vmGuest, gwMAC, "10.0.0.6", metadata4, segment(40000, 80, pushed), "0123456789")
	udp4 := frame(ether(vmGuest, gwMAC, layers.EthernetTypeIPv4), ip4(guest4, metadata4, layers.IPProtocolUDP), &layers.UDP{SrcPort: 1, DstPort: 80})
	return []steeredRow{
		{name: "options", in: with(vmGuest, gwMAC, guest4, alert, alert), want: with(hostMD, insideMD, numbered4(300), alert, alert), outcome: "steered4"},
		{name: "first fragment", in: refrag(whole, 0x20, 0), outcome: "dropped_fragment"},
		{name: "later fragment", in: refrag(whole, 0x20, 100), outcome: "dropped_fragment"},
		{name: "last fragment", in: refrag(whole, 0, 100), outcome: "dropped_fragment"},
		{name: "fragment of an echo", in: refrag(echo4(vmGuest, gwMAC, guest4, metadata4, 8), 0x20, 0), outcome: "dropped_fragment"},
		{name: "fragment of a stranger", in: refrag(stranger, 0x20, 0), outcome: "passed_unknown_source"},
		{name: "fragment of UDP", in: refrag(udp4, 0x20, 0)},
		{name: "may not be fragmented", in: refrag(whole, 0x40, 0), want: refrag(tcp4(hostMD, insideMD, numbered4(300), metadata4, segment(40000, 80, pushed), "0123456789"), 0x40, 0), outcome: "steered4"},
		{name: "another port", in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(80, 8080, syn), "")},
		{name: "UDP", in: udp4},
		{name: "echo reply", in: echo4(vmGuest, gwMAC, guest4, metadata4, 0)},
		{name: "echo with a code", in: changed(echo4(vmGuest, gwMAC, guest4, metadata4, 8), 35, 1)},
		{name: "wrong version", in: changed(whole, 14, 0x65)},
		{name: "wrong header length", in: changed(whole, 14, 0x44)},
		{name: "header length beyond the packet", in: changed(whole[:14+40], 14, 0x4f)},
		{name: "TCP cut", in: whole[:14+20+19]},
		{name: "ICMP cut", in: echo4(vmGuest, gwMAC, guest4, metadata4, 8)[:14+20+1]},
		{name: "service tag", proto: 0x88a8, vlan: 300, in: whole},
	}
}

func arpRequests() []steeredRow {
	answer := func(b []byte) []byte {
		p := decode(b).Layer(layers.LayerTypeARP).(*layers.ARP)
		return frame(ether(answerM, vmGuest, layers.EthernetTypeARP), &layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPReply,
			SourceHwAddress: answerM[:], SourceProtAddress: p.DstProtAddress, DstHwAddress: vmGuest[:], DstProtAddress: p.SourceProtAddress})
	}
	ask := asking(vmGuest, guest4, metadata4, layers.ARPRequest)
	padded := append(ask[:len(ask):len(ask)], make([]byte, 18)...)
	again := changed(ask, 0, answerM[:]...) // to the known address
	return []steeredRow{
		{name: "request", in: ask, want: answer(ask), outcome: "answered_arp"},
		{name: "request with padding", in: padded, want: append(answer(ask), make([]byte, 18)...), outcome: "answered_arp"},
		{name: "request to one station", in: again, want: answer(ask), outcome: "answered_arp"},
		{name: "request in a VLAN", vlan: 300, in: ask, want: answer(ask), outcome: "answered_arp"},
		{name: "from another address", in: asking(vmGuest, "10.0.0.6", metadata4, layers.ARPRequest), outcome: "passed_unknown_source"},
		{name: "from another MAC", in: asking(strangerM, guest4, metadata4, layers.ARPRequest), outcome: "passed_unknown_source"},
		{name: "in another VLAN", vlan: 301, in: ask, outcome: "passed_unknown_source"},
		{name: "probe", in: asking(vmGuest, "0.0.0.0", metadata4, layers.ARPRequest), outcome: "passed_unknown_source"},
		{name: "announcement", in: asking(vmGuest, metadata4, metadata4, layers.ARPRequest)},
		{name: "reply", in: asking(vmGuest, guest4, metadata4, layers.ARPReply)},
		{name: "for another address", in: asking(vmGuest, guest4, "10.0.0.1", layers.ARPRequest)},
		{name: "of other hardware", in: changed(ask, 15, 6)}, {name: "of another protocol", in: changed(ask, 16, 0x86, 0xdd)},
		{name: "of other lengths", in: changed(ask, 18, 8)}, {name: "of other address lengths", in: changed(ask, 19, 16)},
		{name: "cut", in: ask[:14+27]},
	}
}

// notMetadata is what most of a machine's packets are.
func notMetadata() []steeredRow {
	return []steeredRow{
		{name: "another destination", in: tcp4(vmGuest, gwMAC, guest4, "169.254.169.253", segment(40000, 80, syn), "")},
		{name: "another destination 6", in: tcp6(vmGuest, gwMAC, guest6, "fe80::a9fe:a9fd", segment(40000, 80, syn), "")},
		{name: "another destination that ends alike", in: tcp6(vmGuest, gwMAC, guest6, "fe80::1:a9fe:a9fe", segment(40000, 80, syn), "")},
		{name: "fd6e::a9fe:a9fe", in: tcp6(vmGuest, gwMAC, guest6, proxy6, segment(40000, 80, syn), "")},
		{name: "DHCP", in: frame(ether(vmGuest, mac("ff:ff:ff:ff:ff:ff"), layers.EthernetTypeIPv4), ip4("0.0.0.0", "255.255.255.255", layers.IPProtocolUDP), &layers.UDP{SrcPort: 68, DstPort: 67}, gopacket.Payload(make([]byte, 240)))},
		{name: "from the metadata address", in: tcp4(vmGuest, gwMAC, metadata4, guest4, segment(80, 40000, pushed), "")},
		{name: "not IP", in: etherType(vmGuest, gwMAC, 0x88cc)},
		{name: "wrong version 6", in: changed(tcp6(vmGuest, gwMAC, guest6, metadata6, segment(40000, 80, syn), ""), 14, 0x40)},
		{name: "segments", gso: 1400, in: tcp4(vmGuest, gwMAC, guest4, "10.0.0.9", segment(1, 2, pushed), string(make([]byte, 3000)))},
	}
}

// Without a sign of life of the proxy, or without the proxy, everything goes on.
func TestTapInWithoutProxy(t *testing.T) {
	w := newMetadataWorld(t)
	rows := []steeredRow{
		{name: "IPv4", in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, syn), ""), outcome: "passed_stale"},
		{name: "IPv4 fragment", in: refrag(tcp4(vmGuest, gwMAC, guest4, metadata4, segment(40000, 80, syn), "0123456789"), 0x20, 0), outcome: "passed_stale"},
		{name: "IPv6", in: tcp6(vmGuest, gwMAC, guest6, metadata6, segment(40000, 80, syn), ""), outcome: "passed_stale"},
		{name: "echo", in: echo6(vmGuest, gwMAC, guest6, metadata6, 128), outcome: "passed_stale"},
		{name: "ARP", in: asking(vmGuest, guest4, metadata4, layers.ARPRequest), outcome: "passed_stale"},
		{name: "ND", in: solicits(vmGuest, guest6, solicitedGroup, metadata6, 255), outcome: "passed_stale"},
		{name: "not metadata", in: tcp4(vmGuest, gwMAC, guest4, "10.0.0.1", segment(40000, 80, syn), "")},
	}
	part := func(name string, change func() error) {
		t.Helper()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.run(w.tap, rows)
		})
		w.t = t
	}
	write := func(at func(now uint64) uint64) func() error {
		return func() error {
			return raw(t, w.dir, "heartbeat_v1").Put(uint32(0), at(monotonicNow(t)))
		}
	}
	const minute = 60_000_000_000
	part("stopped", w.beat.Stop)
	part("stale", write(func(now uint64) uint64 { return now - minute }))
	part("of another clock", write(func(now uint64) uint64 { return now + minute }))
	part("no proxy", func() error {
		if err := w.beat.Beat(); err != nil {
			return err
		}
		return w.taps.SetProxy(taps.Proxy{})
	})
	// It is not too old just before.
	if err := w.taps.SetProxy(taps.Proxy{Host: mdIndex, HostMAC: hostMD, Inside: insideMD}); err != nil {
		t.Fatal(err)
	}
	if err := write(func(now uint64) uint64 { return now - minute/2 })(); err != nil {
		t.Fatal(err)
	}
	w.run(w.tap, requests4()[:1])
}
