package bpf_test

import (
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// etherType is a frame of some other protocol.
func etherType(src, dst [6]byte, t layers.EthernetType) []byte {
	return frame(ether(src, dst, t), gopacket.Payload(make([]byte, 46)))
}

// changed gives a copy of a frame with some bytes set.
func changed(b []byte, at int, bytes ...byte) []byte {
	b = append([]byte(nil), b...)
	copy(b[at:], bytes)
	return b
}

func bfd(port layers.UDPPort) []byte {
	return frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("10.10.0.5", "172.24.4.1", layers.IPProtocolUDP),
		&layers.UDP{SrcPort: 49152, DstPort: port}, gopacket.Payload(make([]byte, 24)))
}

func dropsFromFabric(t *testing.T, dir string, d *ebpf.Dataplane) {
	good := in4("10.20.0.9", "10.10.0.5")
	good6 := in6("fd00:20::9", "fd00:10::5")
	in := func(b []byte, why drop.Reason, name string) row { return row{name: name, in: fromFabric(b), drop: why} }
	noKey := fromFabric(good)
	noKey.VTEP = addr("0.0.0.0")
	direct := ebpf.TraceRequest{Program: ebpf.FabricIn, Frame: good}
	runRows(t, dir, d, []row{
		{name: "no tunnel key", in: direct, drop: drop.NoTunnelKey},
		{name: "zero outer source", in: noKey, drop: drop.UnknownVTEP},
		{name: "unknown VTEP", in: via(fromFabric(good), addr("192.0.2.66"), red), drop: drop.UnknownVTEP},
		{name: "unknown VTEP 6", in: via(fromFabric(good), addr("2001:db8::66"), red), drop: drop.UnknownVTEP},
		// Rows of zeros in the front of the VRFs are nobody's.
		{name: "VNI 0", in: via(fromFabric(good), peer4, 0), drop: drop.UnknownVNI},
		in(in4("169.254.1.1", "10.10.0.5"), drop.Martian, "link-local source 4"),
		in(in4("10.20.0.9", "169.254.169.254"), drop.Martian, "link-local destination 4"),
		in(in4("10.10.0.5", "10.10.0.5"), drop.Martian, "source is destination"),
		in(in6("fd00:10::5", "fd00:10::5"), drop.Martian, "source is destination 6"),
		{name: "unknown VNI", in: via(fromFabric(good), peer4, 4999), drop: drop.UnknownVNI},
		in(changed(good, 0, 2, 0, 0, 0, 0, 0x77), drop.ForeignMAC, "foreign router MAC"),
		in(changed(good, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), drop.ForeignMAC, "broadcast"),
		in(etherType(peerMAC, routerMAC, layers.EthernetTypeARP), drop.NotIP, "ARP from the fabric"),
		in(etherType(peerMAC, routerMAC, 0x88cc), drop.NotIP, "not IP"),
		in(etherType(peerMAC, routerMAC, layers.EthernetTypeDot1Q), drop.NestedVLAN, "inner tag"),
		in(etherType(peerMAC, routerMAC, layers.EthernetTypeQinQ), drop.NestedVLAN, "inner service tag"),
		// Shorter than an IP header PROG_TEST_RUN takes no frame; see "ARP cut" for those.
		in(good[:14+32], drop.ShortFrame, "cut 4"),
		in(good6[:len(good6)-1], drop.ShortFrame, "cut 6"),
		in(changed(good, 14, 0x65), drop.MalformedIP, "version 4"),
		in(changed(good6, 14, 0x40), drop.MalformedIP, "version 6"),
		in(changed(good, 14, 0x44), drop.MalformedIP, "header length"),
		in(changed(good, 16, 0, 10), drop.MalformedIP, "total length"),
		in(in4("10.20.0.9", "224.0.0.5"), drop.Martian, "multicast 4"),
		in(in4("10.20.0.9", "127.0.0.1"), drop.Martian, "loopback"),
		in(in4("255.255.255.255", "10.10.0.5"), drop.Martian, "broadcast source"),
		in(in4("0.0.0.0", "10.10.0.5"), drop.Martian, "unspecified source"),
		in(in6("fd00:20::9", "ff02::5"), drop.Martian, "multicast 6"),
		in(in6("fe80::9", "fd00:10::5"), drop.Martian, "link-local source"),
		in(in6("fd00:20::9", "::1"), drop.Martian, "loopback 6"),
		in(in6("fd00:20::9", "::ffff:10.10.0.5"), drop.Martian, "IPv4-mapped"),
		in(in4("10.20.0.9", "10.10.0.66"), drop.Blocked, "blocked"),
		in(in4("10.20.0.9", "10.20.0.8"), drop.RelayRefused, "back to where it came from"),
		in(in6("fd00:20::9", "fd00:20::8"), drop.RelayRefused, "back to where it came from 6"),
		// The other tenant's IPv6 default route is no route for IPv4.
		{name: "no IPv4 route beside an IPv6 default", in: via(fromFabric(in4("10.20.0.9", "10.99.0.1")), peer4, blue), drop: drop.NoRoute},
	})
}

func dropsFromOVN(t *testing.T, dir string, d *ebpf.Dataplane) {
	good := out4("10.10.0.5", "10.20.0.9")
	out := func(b []byte, why drop.Reason, name string) row { return row{name: name, in: fromOVN(b), drop: why} }
	long := ip6("fd00:10::5", "fd00:20::9", layers.IPProtocolIPv6HopByHop)
	var chain []byte
	for range 9 {
		chain = append(chain, 0, 0, 1, 4, 0, 0, 0, 0)
	}
	runRows(t, dir, d, []row{
		out(changed(good, 6, 2, 0, 0, 0, 0, 0x66), drop.UnknownGateway, "unknown source MAC"),
		{name: "wrong VLAN", in: withVLAN(fromOVN(good), 301), drop: drop.UnknownGateway},
		{name: "missing VLAN", in: fromOVN(frame(ether(gw2MAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("10.11.0.5", "10.20.0.9", 17), udp())), drop: drop.UnknownGateway},
		out(changed(good, 0, 2, 0, 0, 0, 0, 0x66), drop.ForeignMAC, "foreign destination MAC"),
		out(etherType(gwMAC, nextHopMAC, 0x88cc), drop.NotIP, "not IP"),
		{name: "nested tag", in: withVLAN(fromOVN(etherType(gwMAC, nextHopMAC, layers.EthernetTypeDot1Q)), 300), drop: drop.NestedVLAN},
		out(good[:14+32], drop.ShortFrame, "cut"),
		out(frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv6), long, gopacket.Payload(chain)), drop.MalformedIP, "too many extension headers"),
		out(out4("10.99.0.5", "10.20.0.9"), drop.SourceNotExposed, "source without a route"),
		out(out4("10.20.0.9", "10.20.0.8"), drop.SourceNotExposed, "source of the fabric"),
		out(out4("10.10.0.5", "10.10.0.5"), drop.Martian, "source is destination"),
		out(out6("fd00:10::5", "fd00:10::5"), drop.Martian, "source is destination 6"),
		out(out4("10.10.0.5", "169.254.169.254"), drop.Martian, "metadata address"),
		out(out4("169.254.0.5", "10.20.0.9"), drop.Martian, "link-local source 4"),
		out(out4("10.11.0.5", "10.20.0.9"), drop.SourceNotExposed, "source of another gateway"),
		out(out4("10.10.0.66", "10.20.0.9"), drop.SourceNotExposed, "blocked source"),
		out(out6("fd00:11::5", "fd00:20::9"), drop.SourceNotExposed, "source 6 of another gateway"),
		out(out4("10.10.0.5", "239.1.1.1"), drop.Martian, "multicast"),
		out(out6("fd00:10::5", "ff0e::1"), drop.Martian, "multicast 6"),
		out(bfd(3784), drop.BFD, "BFD"),
		out(bfd(3785), drop.BFD, "BFD echo"),
		out(bfd(4784), drop.BFD, "BFD multihop"),
		out(out4("10.10.0.5", "10.10.0.66"), drop.Blocked, "blocked destination"),
		out(out4("10.10.0.5", "10.10.0.9"), drop.Hairpin, "back to the same gateway"),
	})
}

// The programs and the daemon agree on where no destination of a tenant lies: what is
// announced is forwarded.
func TestMartians(t *testing.T) {
	dir := bpffs(t)
	balanced(t, dir)
	tr := tracer(t, dir)
	for _, text := range []string{
		"0.0.0.0", "0.255.255.255", "1.0.0.0", "126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", "169.253.255.255", "169.254.0.0", "169.254.255.255",
		"169.255.0.0", "223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255",
		"::", "::1", "::2", "::ffff:ffff", "::1:0:0", "::fffe:a00:1", "64:ff9b::1", "fe7f:ffff::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "ff00::", "ff02::1", "fd00:20::9",
	} {
		a := netip.MustParseAddr(text)
		in, to := in4, "10.10.0.5"
		if a.Is6() {
			in, to = in6, "fd00:10::5"
		}
		redirected, _, _, err := tr.Run(fromFabric(in(text, to)), 1)
		if martian := intent.Martian(netip.PrefixFrom(a, a.BitLen())); err != nil || redirected == martian {
			t.Errorf("from %s: redirected %t, martian %t (%v)", a, redirected, martian, err)
		}
	}
}
