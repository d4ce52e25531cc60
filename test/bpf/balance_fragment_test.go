package bpf_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

const fragmentBytes = 512

// datagram is a UDP packet of 1300 bytes without Ethernet header.
func datagram(from, to netip.AddrPort) []byte {
	payload := bytes.Repeat([]byte("0123456789"), 130)
	l4 := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	if from.Addr().Is4() {
		return frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv4), ip4(from.Addr().String(), to.Addr().String(), layers.IPProtocolUDP), l4, gopacket.Payload(payload))[14:]
	}
	return frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv6), ip6(from.Addr().String(), to.Addr().String(), layers.IPProtocolUDP), l4, gopacket.Payload(payload))[14:]
}

// fragments are a packet in pieces, with an Ethernet header each.
func fragments(eth *layers.Ethernet, packet []byte, id uint32) (list [][]byte) {
	header := 40
	if packet[0]>>4 == 4 {
		header = 20
	}
	src, dst := addrsOf(packet)
	rest := packet[header:]
	for offset := 0; len(rest) > 0; offset += fragmentBytes {
		piece := rest[:min(fragmentBytes, len(rest))]
		rest = rest[len(piece):]
		if header == 20 {
			ip := ip4(src.String(), dst.String(), layers.IPProtocolUDP)
			ip.Id, ip.FragOffset = uint16(id), uint16(offset/8)
			if len(rest) > 0 {
				ip.Flags = layers.IPv4MoreFragments
			}
			eth.EthernetType = layers.EthernetTypeIPv4
			list = append(list, frame(eth, ip, gopacket.Payload(piece)))
			continue
		}
		h := []byte{byte(layers.IPProtocolUDP), 0, 0, 0, 0, 0, 0, 0}
		more := uint16(0)
		if len(rest) > 0 {
			more = 1
		}
		binary.BigEndian.PutUint16(h[2:], uint16(offset)|more)
		binary.BigEndian.PutUint32(h[4:], id)
		eth.EthernetType = layers.EthernetTypeIPv6
		list = append(list, frame(eth, ip6(src.String(), dst.String(), layers.IPProtocolIPv6Fragment), gopacket.Payload(append(h, piece...))))
	}
	return list
}

func addrsOf(packet []byte) (src, dst netip.Addr) {
	at, n := 8, 16
	if packet[0]>>4 == 4 {
		at, n = 12, 4
	}
	src, _ = netip.AddrFromSlice(packet[at : at+n])
	dst, _ = netip.AddrFromSlice(packet[at+n : at+2*n])
	return src, dst
}

// together sends fragments, in order, and gives the payload that their receiver sees, and
// where they are from and go to.
func together(t *testing.T, tr *ebpf.Tracer, list [][]byte, as func([]byte) ebpf.TraceRequest) (src, dst netip.Addr, payload []byte) {
	t.Helper()
	for i, b := range list {
		redirected, out, _, err := tr.Run(as(b), 1)
		if err != nil || !redirected {
			t.Fatalf("fragment %d was not sent on (%v)", i, err)
		}
		from, to := addrsOf(out[14:])
		if i > 0 && (from != src || to != dst) {
			t.Fatalf("fragment %d is from %s to %s, the first one from %s to %s", i, from, to, src, dst)
		}
		src, dst = from, to
		if from.Is4() {
			checksum4(t, out[14:34])
			payload = append(payload, out[34:]...)
		} else {
			payload = append(payload, out[14+40+8:]...)
		}
	}
	return src, dst, payload
}

func checksum4(t *testing.T, header []byte) {
	t.Helper()
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	if sum = sum&0xffff + sum>>16; sum&0xffff+sum>>16 != 0xffff {
		t.Errorf("the checksum of the IPv4 header is wrong: %x", header)
	}
}

// Fragments go where the first one goes, in both directions; without it they are dropped on
// their way to a VIP.
func TestBalanceFragments(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	allKnown(t, dir)
	tr := tracer(t, dir)
	for _, c := range []struct {
		name        string
		client      netip.Addr
		vip         netip.AddrPort
		backendPort uint16
	}{
		{"4", client4, netip.AddrPortFrom(vip4, 7000), 7000},
		{"6", client6, netip.AddrPortFrom(vip6, 7000), 7001},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := netip.AddrPortFrom(c.client, clientPort)
			in := fragments(ether(peerMAC, routerMAC, 0), datagram(client, c.vip), 0xbeef)
			if len(in) != 3 {
				t.Fatalf("%d fragments", len(in))
			}
			for _, late := range in[1:] {
				row{in: fromFabric(late), drop: drop.VIPFragment}.run(t, d, tr)
			}
			_, backend := send(t, tr, asked(intent.UDP, client, c.vip, ""))
			header := headerLen(c.client)
			for range 2 { // the second time as one that is known
				src, dst, payload := together(t, tr, in, fromFabric)
				if want := datagram(client, backend)[header:]; src != c.client || dst != backend.Addr() || !bytes.Equal(payload, want) {
					t.Fatalf("what goes to %s is from %s to %s:\n%x\nwant\n%x", backend, src, dst, payload[:16], want[:16])
				}
			}
			out := fragments(ether(gwMAC, nextHopMAC, 0), datagram(backend, client), 77)
			if src, dst, payload := together(t, tr, out, fromOVN); src != c.vip.Addr() || dst != c.client || !bytes.Equal(payload, datagram(c.vip, client)[header:]) {
				t.Errorf("the answer is from %s to %s", src, dst)
			}
			// Those that are of no VIP and of no flow, and of a packet with the same number.
			for _, own := range []struct {
				what     string
				from, to netip.AddrPort
				mac      *layers.Ethernet
				as       func([]byte) ebpf.TraceRequest
			}{
				{"no VIP", client, netip.AddrPortFrom(c.vip.Addr(), 9), ether(peerMAC, routerMAC, 0), fromFabric},
				{"no flow", netip.AddrPortFrom(backend.Addr(), 9), netip.AddrPortFrom(c.client, 9), ether(gwMAC, nextHopMAC, 0), fromOVN},
			} {
				src, dst, payload := together(t, tr, fragments(own.mac, datagram(own.from, own.to), 78), own.as)
				if src != own.from.Addr() || dst != own.to.Addr() || !bytes.Equal(payload, datagram(own.from, own.to)[header:]) {
					t.Errorf("%s: from %s to %s", own.what, src, dst)
				}
			}
		})
	}
}

func headerLen(a netip.Addr) int {
	if a.Is4() {
		return 20
	}
	return 40
}
