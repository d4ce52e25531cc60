package bpf_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Types and codes: fragmentation needed and port unreachable of RFC 792, packet too big and
// port unreachable of RFC 4443.
var (
	tooBig      = map[bool][2]uint8{true: {3, 4}, false: {2, 0}}
	unreachable = map[bool][2]uint8{true: {3, 3}, false: {1, 4}}
)

// icmpError is an ICMP error about a packet, of which it quotes so many bytes.
func icmpError(eth *layers.Ethernet, from, to netip.Addr, kind map[bool][2]uint8, about []byte, quote int) []byte {
	k, mtu := kind[from.Is4()], uint16(1400)
	quoted := gopacket.Payload(about[14:min(len(about), 14+quote)])
	if from.Is4() {
		eth.EthernetType = layers.EthernetTypeIPv4
		return frame(eth, ip4(from.String(), to.String(), layers.IPProtocolICMPv4),
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(k[0], k[1]), Seq: mtu}, quoted)
	}
	eth.EthernetType = layers.EthernetTypeIPv6
	return frame(eth, ip6(from.String(), to.String(), layers.IPProtocolICMPv6),
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(k[0], k[1])}, append(gopacket.Payload{0, 0, byte(mtu >> 8), byte(mtu)}, quoted...))
}

// quotedEnds are the ends of the packet that an ICMP error quotes; an IPv4 header's checksum
// has to be right.
func quotedEnds(t *testing.T, out gopacket.Packet) (from, to netip.AddrPort) {
	t.Helper()
	b := out.Data()
	addr := func(b []byte) netip.Addr {
		a, _ := netip.AddrFromSlice(b)
		return a
	}
	port := func(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
	if b[14]>>4 == 4 {
		q := b[14+20+8:]
		checksum4(t, q[:20])
		return netip.AddrPortFrom(addr(q[12:16]), port(q[20:])), netip.AddrPortFrom(addr(q[16:20]), port(q[22:]))
	}
	q := b[14+40+8:]
	return netip.AddrPortFrom(addr(q[8:24]), port(q[40:])), netip.AddrPortFrom(addr(q[24:40]), port(q[42:]))
}

// errorRow is an ICMP error, and what becomes of it: who it is from and for, and whose packet it quotes.
type errorRow struct {
	name             string
	in               ebpf.TraceRequest
	from, to         netip.Addr
	quotes, quotesTo netip.AddrPort
}

func (e errorRow) row() row {
	var out uint32 = lo
	if e.in.Program == ebpf.OverlayIn {
		out = vxlan
	}
	return row{name: e.name, in: e.in, out: out, check: func(t *testing.T, _, p gopacket.Packet) {
		n := p.NetworkLayer().NetworkFlow()
		if n.Src().String() != e.from.String() || n.Dst().String() != e.to.String() {
			t.Errorf("the error is from %s to %s, want from %s to %s", n.Src(), n.Dst(), e.from, e.to)
		}
		if from, to := quotedEnds(t, p); from != e.quotes || to != e.quotesTo {
			t.Errorf("it quotes a packet from %s to %s, want from %s to %s", from, to, e.quotes, e.quotesTo)
		}
	}}
}

func fabricError(from, to netip.Addr, kind map[bool][2]uint8, about []byte, quote int) ebpf.TraceRequest {
	return fromFabric(icmpError(ether(peerMAC, routerMAC, 0), from, to, kind, about, quote))
}

func ovnError(from, to netip.Addr, kind map[bool][2]uint8, about []byte, quote int) ebpf.TraceRequest {
	return fromOVN(icmpError(ether(gwMAC, nextHopMAC, 0), from, to, kind, about, quote))
}

// An ICMP error about a flow to a VIP finds the backend or the client, and quotes what it
// has sent: of a flow that is known, and of one that another node knows.
func TestBalanceErrors(t *testing.T) {
	known, unknown := bpffs(t), bpffs(t)
	dk, du := balanced(t, known), balanced(t, unknown)
	// A backend of two VIPs cannot be told by the table alone.
	for _, d := range []*ebpf.Dataplane{dk, du} {
		d.VIPs().Delete(t.Context(), []intent.VIPKey{{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 81}})
	}
	for _, c := range []struct {
		name                string
		protocol            intent.Protocol
		client, hop, router netip.Addr
		vip                 netip.AddrPort
		header              int
	}{
		{name: "TCP4", protocol: intent.TCP, client: client4, hop: addr("10.20.0.1"), router: addr("10.10.0.200"), vip: netip.AddrPortFrom(vip4, 80), header: 20},
		{name: "UDP4", protocol: intent.UDP, client: client4, hop: addr("10.20.0.1"), router: addr("10.10.0.200"), vip: netip.AddrPortFrom(vip4, 7000), header: 20},
		{name: "TCP6", protocol: intent.TCP, client: client6, hop: addr("fd00:20::1"), router: addr("fd00:10::200"), vip: netip.AddrPortFrom(vip6, 80), header: 40},
		{name: "UDP6", protocol: intent.UDP, client: client6, hop: addr("fd00:20::1"), router: addr("fd00:10::200"), vip: netip.AddrPortFrom(vip6, 7000), header: 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := netip.AddrPortFrom(c.client, clientPort)
			_, backend := send(t, tracer(t, known), asked(c.protocol, client, c.vip, "S"))
			toClient := flowPacket(c.protocol, c.vip, client, "A", ether(peerMAC, routerMAC, 0))
			toBackend := flowPacket(c.protocol, client, backend, "A", ether(gwMAC, nextHopMAC, 0))
			rows := func(quote int) (list []row) {
				for _, e := range []errorRow{
					{"too big for the way to the client", fabricError(c.hop, c.vip.Addr(), tooBig, toClient, quote), c.hop, backend.Addr(), backend, client},
					{"the client's port is closed", fabricError(c.client, c.vip.Addr(), unreachable, toClient, quote), c.client, backend.Addr(), backend, client},
					{"too big for the way to the backend", ovnError(c.router, c.client, tooBig, toBackend, quote), c.router, c.client, client, c.vip},
					{"the backend's port is closed", ovnError(backend.Addr(), c.client, unreachable, toBackend, quote), c.vip.Addr(), c.client, client, c.vip},
				} {
					list = append(list, e.row())
				}
				return list
			}
			// What is quoted at least, and all of it.
			t.Run("known", func(t *testing.T) { runRows(t, known, dk, rows(c.header+8)) })
			t.Run("whole", func(t *testing.T) { runRows(t, known, dk, rows(1000)) })
			t.Run("unknown", func(t *testing.T) { runRows(t, unknown, du, rows(c.header+8)) })
			other, another := netip.AddrPortFrom(c.vip.Addr(), 9), netip.AddrPortFrom(backend.Addr(), 9)
			runRows(t, known, dk, []row{
				errorRow{"about no VIP", fabricError(c.hop, c.vip.Addr(), tooBig, flowPacket(c.protocol, other, client, "A", ether(peerMAC, routerMAC, 0)), 64),
					c.hop, c.vip.Addr(), other, client}.row(),
				errorRow{"about no backend", ovnError(c.router, c.client, tooBig, flowPacket(c.protocol, client, another, "A", ether(gwMAC, nextHopMAC, 0)), 64),
					c.router, c.client, client, another}.row(),
				// It must not lead to a backend whom its receiver has nothing to do with.
				errorRow{"for another than it quotes", fabricError(c.hop, backend.Addr(), tooBig, toClient, 64), c.hop, backend.Addr(), c.vip, client}.row(),
				{name: "cut", in: fabricError(c.hop, c.vip.Addr(), tooBig, toClient, c.header-4), out: lo, check: forwarded(nextHopMAC, gwMAC)},
			})
		})
	}
}

// An echo request to a VIP is answered; one to what is no VIP goes into OVN.
func TestBalanceEcho(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	reply := func(t *testing.T, in, out gopacket.Packet) {
		t.Helper()
		asked, answer := in.NetworkLayer(), out.NetworkLayer()
		if answer.NetworkFlow() != asked.NetworkFlow().Reverse() {
			t.Errorf("the answer is %s", answer.NetworkFlow())
		}
		eth := out.LinkLayer().(*layers.Ethernet)
		if intent.MAC(eth.SrcMAC) != routerMAC || intent.MAC(eth.DstMAC) != peerMAC {
			t.Errorf("MAC addresses are %s > %s", eth.SrcMAC, eth.DstMAC)
		}
		switch l := answer.(type) {
		case *layers.IPv4:
			e, ok := out.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
			if !ok || l.TTL != 64 || e.TypeCode.Type() != 0 || e.Id != 7 || e.Seq != 1 || string(e.Payload) != "hello" {
				t.Errorf("answered with\n%s", out)
			}
		case *layers.IPv6:
			e, ok := out.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
			if !ok || l.HopLimit != 64 || e.TypeCode.Type() != 129 || string(e.Payload) != "\x00\x07\x00\x01hello" {
				t.Errorf("answered with\n%s", out)
			}
		}
	}
	echo := func(from, to netip.Addr, kind, hops uint8) ebpf.TraceRequest {
		b := echo4
		if from.Is6() {
			b = echo6
		}
		return fromFabric(ttl(b(peerMAC, routerMAC, from.String(), to.String(), kind), hops))
	}
	runRows(t, dir, d, []row{
		{name: "4", in: echo(client4, vip4, 8, 9), out: vxlan, step: &ebpf.Step{What: ebpf.StepEcho, Addr: vip4}, check: reply},
		{name: "6", in: echo(client6, vip6, 128, 9), out: vxlan, step: &ebpf.Step{What: ebpf.StepEcho, Addr: vip6}, check: reply},
		{name: "4 at the end of its way", in: echo(client4, vip4, 8, 1), out: vxlan, check: reply},
		{name: "6 at the end of its way", in: echo(client6, vip6, 128, 1), out: vxlan, check: reply},
		{name: "4 for a host", in: echo(client4, addr("10.10.0.1"), 8, 9), out: lo, check: forwarded(nextHopMAC, gwMAC)},
		{name: "6 for a host", in: echo(client6, addr("fd00:10::1"), 128, 9), out: lo, check: forwarded(nextHopMAC, gwMAC)},
		{name: "4, a reply", in: echo(client4, vip4, 0, 9), out: lo, check: forwarded(nextHopMAC, gwMAC)},
		{name: "6, a reply", in: echo(client6, vip6, 129, 9), out: lo, check: forwarded(nextHopMAC, gwMAC)},
		{name: "4 from nowhere", in: echo(addr("203.0.113.9"), vip4, 8, 9), drop: drop.NoRoute},
		{name: "6 from nowhere", in: echo(addr("2001:db8:ffff::9"), vip6, 128, 9), drop: drop.NoRoute},
		{name: "4 from behind the gateway", in: echo(addr("10.10.0.1"), vip4, 8, 9), drop: drop.NoRoute},
	})
}
