package bpf_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
)

const clientPort = 40000

var (
	vip4, vip6       = addr("10.99.0.1"), addr("fd00:99::1")
	client4, client6 = addr("10.20.0.9"), addr("fd00:20::9")
)

func backendsOf(format string, n int, port uint16) (out []intent.Backend) {
	for i := range n {
		out = append(out, intent.Backend{Addr: addr(fmt.Sprintf(format, i+1)), Port: port, Weight: 1})
	}
	return out
}

func vip(p intent.Protocol, a netip.Addr, port uint16, backends ...intent.Backend) intent.VIP {
	return intent.VIP{Key: intent.VIPKey{VNI: red, Protocol: p, Addr: a, Port: port}, Backends: intent.NewBackendSet(backends...), Slots: 1021}
}

func vips(list ...intent.VIP) map[intent.VIPKey]intent.VIP {
	out := map[intent.VIPKey]intent.VIP{}
	for _, v := range list {
		out[v.Key] = v
	}
	return out
}

// worldVIPs are those of balanced.
func worldVIPs() map[intent.VIPKey]intent.VIP {
	other := vip(intent.TCP, vip4, 81, backendsOf("10.10.0.%d", 3, 8080)...)
	other.Affinity, other.ByAddress = 300, true
	return vips(
		vip(intent.TCP, vip4, 80, backendsOf("10.10.0.%d", 3, 8080)...), vip(intent.UDP, vip4, 7000, backendsOf("10.10.0.%d", 3, 7000)...),
		vip(intent.TCP, vip6, 80, backendsOf("fd00:10::%d", 3, 8080)...), vip(intent.UDP, vip6, 7000, backendsOf("fd00:10::%d", 3, 7001)...),
		vip(intent.SCTP, vip4, 5060, backendsOf("10.10.0.%d", 2, 5060)...), vip(intent.SCTP, vip6, 0, backendsOf("fd00:10::%d", 2, 0)...),
		vip(intent.TCP, vip4, 82), vip(intent.TCP, vip4, 83, intent.Backend{Addr: addr("10.10.0.7"), Port: 80}),
		vip(intent.TCP, vip4, 84, intent.Backend{Addr: addr("10.20.0.7"), Port: 80, Weight: 1}), other,
	)
}

// kindsOfFlows are to VIPs of worldVIPs.
var kindsOfFlows = []struct {
	name     string
	protocol intent.Protocol
	client   netip.Addr
	vip      netip.AddrPort
}{
	{"TCP4", intent.TCP, client4, netip.AddrPortFrom(vip4, 80)}, {"TCP6", intent.TCP, client6, netip.AddrPortFrom(vip6, 80)},
	{"UDP4", intent.UDP, client4, netip.AddrPortFrom(vip4, 7000)}, {"UDP6", intent.UDP, client6, netip.AddrPortFrom(vip6, 7000)},
	{"SCTP4", intent.SCTP, client4, netip.AddrPortFrom(vip4, 5060)}, {"SCTP6, all ports", intent.SCTP, client6, netip.AddrPortFrom(vip6, 99)},
}

// balanced is the world with VIPs behind the gateway port gw.
func balanced(t testing.TB, dir string) *ebpf.Dataplane {
	t.Helper()
	d := world(t, dir, node())
	fillBalanced(t, d)
	return d
}

func fillBalanced(t testing.TB, d *ebpf.Dataplane) {
	t.Helper()
	apply(t, d.VIPs(), worldVIPs())
	apply(t, d.Routes(), balancedRoutes())
}

func balancedRoutes() map[intent.RouteKey]intent.Route {
	out := routes(local(red, "10.99.0.1/32", gw), local(red, "fd00:99::1/128", gw))
	for k, r := range out {
		r.VIP = true
		out[k] = r
	}
	return out
}

// flowPacket is a packet of a flow.
func flowPacket(p intent.Protocol, from, to netip.AddrPort, flags string, eth *layers.Ethernet) []byte {
	proto := layers.IPProtocol(p)
	var l4 gopacket.SerializableLayer
	payload := gopacket.Payload("hello")
	switch p {
	case intent.TCP:
		l4 = &layers.TCP{SrcPort: layers.TCPPort(from.Port()), DstPort: layers.TCPPort(to.Port()), SYN: flags == "S" || flags == "SA",
			ACK: flags != "S", FIN: flags == "F", RST: flags == "R", Window: 1000}
	case intent.UDP:
		l4 = &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	default:
		// One chunk: INIT, INIT ACK, ABORT, or DATA.
		if payload = (gopacket.Payload{6, 0, 0, 4}); flags != "R" {
			payload = append(gopacket.Payload{map[string]byte{"S": 1, "SA": 2}[flags], 3, 0, 20}, make([]byte, 16)...)
		}
		l4 = &layers.SCTP{SrcPort: layers.SCTPPort(from.Port()), DstPort: layers.SCTPPort(to.Port())}
	}
	if from.Addr().Is4() {
		eth.EthernetType = layers.EthernetTypeIPv4
		return frame(eth, ip4(from.Addr().String(), to.Addr().String(), proto), l4, payload)
	}
	eth.EthernetType = layers.EthernetTypeIPv6
	return frame(eth, ip6(from.Addr().String(), to.Addr().String(), proto), l4, payload)
}

// asked is a client's packet to a VIP, replied one of a backend to the client.
func asked(p intent.Protocol, from, to netip.AddrPort, flags string) ebpf.TraceRequest {
	return fromFabric(flowPacket(p, from, to, flags, ether(peerMAC, routerMAC, 0)))
}

func replied(p intent.Protocol, from, to netip.AddrPort, flags string) ebpf.TraceRequest {
	return fromOVN(flowPacket(p, from, to, flags, ether(gwMAC, nextHopMAC, 0)))
}

// ends are the two ends of a packet.
func ends(t *testing.T, p gopacket.Packet) (from, to netip.AddrPort) {
	t.Helper()
	if p.NetworkLayer() == nil || p.TransportLayer() == nil {
		t.Fatalf("no packet with ports:\n%s", p)
	}
	n, l4 := p.NetworkLayer().NetworkFlow(), p.TransportLayer().TransportFlow()
	end := func(a, port gopacket.Endpoint) netip.AddrPort {
		ip, _ := netip.AddrFromSlice(a.Raw())
		return netip.AddrPortFrom(ip, uint16(port.Raw()[0])<<8|uint16(port.Raw()[1]))
	}
	return end(n.Src(), l4.Src()), end(n.Dst(), l4.Dst())
}

// send runs a packet for real and gives where it is from and goes to afterwards.
func send(t *testing.T, tr *ebpf.Tracer, in ebpf.TraceRequest) (from, to netip.AddrPort) {
	t.Helper()
	redirected, out, _, err := tr.Run(in, 1)
	if err != nil || !redirected {
		t.Fatalf("sent nothing (%v)", err)
	}
	checksums(t, out)
	return ends(t, decode(out))
}

func TestBalance(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	tr := tracer(t, dir)
	for _, c := range kindsOfFlows {
		t.Run(c.name, func(t *testing.T) {
			seen := map[netip.AddrPort]int{}
			for i := range 50 {
				client := netip.AddrPortFrom(c.client, uint16(clientPort+i))
				from, backend := send(t, tr, asked(c.protocol, client, c.vip, "S"))
				if from != client {
					t.Fatalf("the client is %s, want %s", from, client)
				}
				seen[backend]++
				// Trace mode takes the known flow, too. A VIP of all ports changes none.
				port := uint32(backend.Port())
				if _, own := worldVIPs()[intent.VIPKey{VNI: red, Protocol: c.protocol, Addr: c.vip.Addr(), Port: c.vip.Port()}]; !own {
					port = 0
				}
				row{in: asked(c.protocol, client, c.vip, "A"), out: lo, step: &ebpf.Step{What: ebpf.StepBackend, Value: port, Addr: backend.Addr()},
					check: func(t *testing.T, _, out gopacket.Packet) {
						eth := out.LinkLayer().(*layers.Ethernet)
						if intent.MAC(eth.DstMAC) != gwMAC || intent.MAC(eth.SrcMAC) != nextHopMAC {
							t.Errorf("MAC addresses are %s > %s", eth.SrcMAC, eth.DstMAC)
						}
					}}.run(t, d, tr)
				if from, to := send(t, tr, replied(c.protocol, backend, client, "SA")); from != c.vip || to != client {
					t.Fatalf("the answer is from %s to %s, want from %s to %s", from, to, c.vip, client)
				}
			}
			for b := range seen {
				k := intent.VIPKey{VNI: red, Protocol: c.protocol, Addr: c.vip.Addr(), Port: c.vip.Port()}
				v, ok := worldVIPs()[k]
				if k.Port = 0; !ok {
					v = worldVIPs()[k]
				}
				if !slices.ContainsFunc(v.Backends.All(), func(x intent.Backend) bool { return x.Addr == b.Addr() && (x.Port == b.Port() || x.Port == 0) }) {
					t.Errorf("%s is none of %s", b, v.Backends)
				}
			}
			if len(seen) < 2 {
				t.Errorf("all flows went to one backend: %v", seen)
			}
		})
	}
}

// allKnown has the time go by in which flows of red may be known to another node alone, or
// to OVN.
func allKnown(t *testing.T, dir string) {
	t.Helper()
	knownIn(t, dir, 0)
	vips := raw(t, dir, "vips_v2")
	for key, row := range rowsOf(t, vips) {
		clear(row[12:16]) // until
		if err := vips.Put([]byte(key), row); err != nil {
			t.Fatal(err)
		}
	}
}

// knownIn has most of it go by: what is left is in seconds.
func knownIn(t *testing.T, dir string, left uint32) {
	t.Helper()
	until := uint32(1)
	if left > 0 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		until = uint32(now.Sec) + left
	}
	m := raw(t, dir, "vrf_front_v2")
	slot := uint32(red) % m.MaxEntries()
	row, err := m.LookupBytes(slot)
	if err != nil || len(row) != 32 || binary.NativeEndian.Uint32(row) != uint32(red) || binary.NativeEndian.Uint32(row[28:]) == 0 {
		t.Fatalf("%x (%v)", row, err)
	}
	binary.NativeEndian.PutUint32(row[28:], until)
	if err := m.Put(slot, row); err != nil {
		t.Fatal(err)
	}
}

// foreign is a packet of a backend that is no answer of the VIP's: tr sends what its client
// would have asked to another backend.
func foreign(t *testing.T, tr *ebpf.Tracer, p intent.Protocol, vip, backend netip.AddrPort) ebpf.TraceRequest {
	t.Helper()
	for port := uint16(1); port < 100; port++ {
		client := netip.AddrPortFrom(client4, port)
		if _, to := send(t, tr, asked(p, client, vip, "S")); to != backend {
			return replied(p, backend, client, "A")
		}
	}
	t.Fatalf("%s gets all of 100 flows", backend)
	return ebpf.TraceRequest{}
}

// A node to which VIPs have come knows by the table what an answer is of, unless it is a
// backend's own; those wait for the other side.
func TestBalanceUnknownFlows(t *testing.T) {
	// An answer that may be of two VIPs cannot be told.
	shares := []intent.VIPKey{{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 81}}
	old := bpffs(t)
	balanced(t, old).VIPs().Delete(t.Context(), shares)
	before := tracer(t, old)
	dir := bpffs(t)
	d := balanced(t, dir)
	d.VIPs().Delete(t.Context(), shares)
	tr := tracer(t, dir)
	// Nor can one of more VIPs than are named, until they are gone.
	shared := worldVIPs()[intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 80}].Backends.All()
	crowd := map[intent.VIPKey]intent.VIP{}
	for port := range uint16(5) {
		v := vip(intent.TCP, vip4, 9000+port, shared...)
		crowd[v.Key] = v
	}
	apply(t, d.VIPs(), crowd)
	row{in: replied(intent.TCP, netip.AddrPortFrom(shared[0].Addr, shared[0].Port), netip.AddrPortFrom(client4, clientPort), "A"), drop: drop.AnswerUnknown}.run(t, d, tr)
	d.VIPs().Delete(t.Context(), slices.Collect(maps.Keys(crowd)))
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 80)}, {client6, netip.AddrPortFrom(vip6, 80)}} {
		for i := range 30 {
			client := netip.AddrPortFrom(c.client, uint16(clientPort+i))
			_, backend := send(t, before, asked(intent.TCP, client, c.vip, "S"))
			if from, _ := send(t, tr, replied(intent.TCP, backend, client, "A")); from != c.vip {
				t.Fatalf("the answer of flow %d is from %s", i, from)
			}
			if _, to := send(t, tr, asked(intent.TCP, client, c.vip, "A")); to != backend {
				t.Fatalf("flow %d goes to %s, not to %s", i, to, backend)
			}
			// Another backend that sends there has a connection of its own.
			own := netip.AddrPortFrom(backend.Addr().Prev(), backend.Port())
			if last := own.Addr().As16(); last[15] == 0 {
				own = netip.AddrPortFrom(backend.Addr().Next(), backend.Port())
			}
			own4 := replied(intent.TCP, own, client, "A")
			row{in: own4, drop: drop.AnswerUnknown}.run(t, d, tr)
			send(t, tr, asked(intent.TCP, client, own, "A"))
			if from, _ := send(t, tr, own4); from != own {
				t.Fatalf("the backend's own connection %d is from %s", i, from)
			}
		}
		// What a backend begins is its own.
		opens := netip.AddrPortFrom(c.client, 22)
		for _, b := range worldVIPs()[intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: c.vip.Addr(), Port: 80}].Backends.All() {
			backend := netip.AddrPortFrom(b.Addr, b.Port)
			for _, flags := range []string{"S", "A"} {
				if from, _ := send(t, tr, replied(intent.TCP, backend, opens, flags)); from != backend {
					t.Errorf("what %s began is from %s", backend, from)
				}
			}
		}
	}
	// What backends send by UDP is not held for as long: no flow of it lasts.
	datagram := foreign(t, before, intent.UDP, netip.AddrPortFrom(vip4, 7000), netip.AddrPortFrom(addr("10.10.0.1"), 7000))
	tcp := foreign(t, before, intent.TCP, netip.AddrPortFrom(vip4, 80), netip.AddrPortFrom(addr("10.10.0.1"), 8080))
	for _, own := range []ebpf.TraceRequest{datagram, tcp} {
		row{in: own, drop: drop.AnswerUnknown}.run(t, d, tr)
	}
	knownIn(t, dir, 7000)
	row{in: tcp, drop: drop.AnswerUnknown}.run(t, d, tr)
	if from, _ := send(t, tr, datagram); from.Port() != 7000 {
		t.Errorf("a backend's own datagram is from %s", from)
	}
	allKnown(t, dir)
	own := netip.AddrPortFrom(addr("10.10.0.1"), 8080)
	if from, _ := send(t, tr, replied(intent.TCP, own, netip.AddrPortFrom(client4, 9), "A")); from != own {
		t.Errorf("when all is known, %s is from %s", own, from)
	}
}

// What is near a VIP and is none of its flows.
func TestBalanceRows(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	allKnown(t, dir)
	tcp4 := func(to netip.Addr, port uint16, flags string) ebpf.TraceRequest {
		return asked(intent.TCP, netip.AddrPortFrom(client4, clientPort), netip.AddrPortFrom(to, port), flags)
	}
	unchanged := forwarded(nextHopMAC, gwMAC)
	back := func(p intent.Protocol, port uint16) ebpf.TraceRequest {
		return replied(p, netip.AddrPortFrom(addr("10.10.0.1"), port), netip.AddrPortFrom(client4, clientPort), "A")
	}
	short := ip4(client4.String(), vip4.String(), layers.IPProtocolTCP)
	runRows(t, dir, d, []row{
		{name: "a port without a VIP", in: tcp4(vip4, 8443, "S"), out: lo, check: unchanged},
		{name: "another protocol", in: fromFabric(in4(client4.String(), vip4.String())), out: lo, check: unchanged},
		{name: "no backends", in: tcp4(vip4, 82, "S"), drop: drop.NoBackend},
		{name: "drained backends", in: tcp4(vip4, 83, "S"), drop: drop.NoBackend},
		{name: "a backend behind the fabric", in: tcp4(vip4, 84, "S"), drop: drop.BackendAway},
		{name: "a header that is cut", in: fromFabric(frame(ether(peerMAC, routerMAC, layers.EthernetTypeIPv4), short, gopacket.Payload{0x9c, 0x40, 0, 80, 0, 0, 0, 0, 0, 0})[:14+20+10]), drop: drop.NAT},
		{name: "the same VIP in another VRF", in: via(tcp4(vip4, 80, "S"), peer4, blue), drop: drop.NoRoute},
		{name: "a backend's own packet", in: back(intent.TCP, 8080), out: vxlan, check: forwarded(routerMAC, peerMAC)},
		{name: "a backend's other port", in: back(intent.TCP, 22), out: vxlan, check: forwarded(routerMAC, peerMAC)},
	})
}

// A change of backends leaves flows that are known where they are; those that begin
// go where the new table leads. A restart knows all of it.
func TestBalanceChange(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	tr := tracer(t, dir)
	at := netip.AddrPortFrom(vip4, 80)
	packet := func(i int, flags string) ebpf.TraceRequest {
		return asked(intent.TCP, netip.AddrPortFrom(client4, uint16(clientPort+i)), at, flags)
	}
	before := map[int]netip.AddrPort{}
	for i := range 60 {
		_, before[i] = send(t, tr, packet(i, "S"))
		if i < 30 {
			send(t, tr, packet(i, "A"))
		}
	}
	rest := backendsOf("10.10.0.%d", 2, 8080)
	gone := netip.AddrPortFrom(addr("10.10.0.3"), 8080)
	apply(t, d.VIPs(), vips(vip(intent.TCP, vip4, 80, rest...)))
	check := func(when string) {
		t.Helper()
		moved := 0
		for i := range 30 {
			if _, b := send(t, tr, packet(i, "A")); b != before[i] {
				t.Errorf("%s: the known flow %d went from %s to %s", when, i, before[i], b)
			}
		}
		for i := 30; i < 60; i++ {
			_, b := send(t, tr, packet(i, "S"))
			if b == gone || b != before[i] && before[i] != gone {
				moved++
			}
		}
		if moved > 3 { // a hundredth of a table, and here by chance
			t.Errorf("%s: %d of 30 new flows went elsewhere, or to a backend that is gone", when, moved)
		}
		if from, _ := send(t, tr, replied(intent.TCP, before[0], netip.AddrPortFrom(client4, clientPort), "A")); from != at {
			t.Errorf("%s: the answer of a known flow is from %s", when, from)
		}
	}
	check("changed")
	want := worldVIPs()
	maps.Copy(want, vips(vip(intent.TCP, vip4, 80, rest...)))
	tr.Close()
	d.Close()
	d = load(t, ebpf.Config{Dir: dir, Node: node()})
	tr = tracer(t, dir)
	wantList(t, d.VIPs(), want)
	check("started again")
	// A connection that ends, and begins anew, is another one.
	for i := range 30 {
		send(t, tr, packet(i, "F"))
		if _, b := send(t, tr, packet(i, "S")); b == gone {
			t.Errorf("a new connection goes to %s", b)
		}
	}
	remove(t, d.Routes(), func() map[intent.RouteKey]intent.Route {
		out := worldRoutes()
		maps.Copy(out, balancedRoutes())
		return out
	}())
	remove(t, d.VIPs(), want)
	for _, f := range d.Fills() {
		if f.Table == "vips" && f.Used != 0 {
			t.Errorf("%s still has %d rows", f.Map, f.Used)
		}
	}
	if rows := rowsOf(t, raw(t, dir, "vips_v2")); len(rows) != 0 {
		t.Errorf("there are still %d VIPs", len(rows))
	}
}

// The programs and package maglev agree on where a flow goes.
func TestBalanceByTable(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	weighted := backendsOf("10.10.0.%d", 5, 8080)
	weighted[1].Weight, weighted[4].Weight = 3, 0
	apply(t, d.VIPs(), vips(vip(intent.TCP, vip4, 80, weighted...)))
	tr := tracer(t, dir)
	var list []maglev.Backend
	for _, b := range weighted {
		list = append(list, maglev.Backend{Key: b.TableKey(intent.TCP), Weight: b.Weight})
	}
	table, err := maglev.Build(list, 1021)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		res, err := tr.Trace(t.Context(), asked(intent.TCP, netip.AddrPortFrom(client4, uint16(1024+i)), netip.AddrPortFrom(vip4, 80), "S"))
		if err != nil {
			t.Fatal(err)
		}
		slot, key := -1, ""
		for _, s := range res.Steps {
			switch s.What {
			case ebpf.StepMaglev:
				slot = int(s.Value)
			case ebpf.StepBackend:
				key = intent.FormatEndpoint(s.Addr, uint16(s.Value)) + "/tcp"
			}
		}
		v := vip(intent.TCP, vip4, 80, weighted...)
		choice, ok, err := ebpf.Choose(v, netip.AddrPortFrom(client4, uint16(1024+i)), netip.AddrPortFrom(vip4, 80))
		if err != nil || !ok || int(choice.Slot) != slot || choice.Backend.TableKey(intent.TCP) != key {
			t.Fatalf("Choose says %+v, %t (%v):\n%s", choice, ok, err, res)
		}
		if slot < 0 || table.Keys[table.Slots[slot]] != key {
			t.Fatalf("slot %d is %q's, not %q's:\n%s", slot, table.Keys[max(0, int(table.Slots[max(slot, 0)]))], key, res)
		}
	}
}
