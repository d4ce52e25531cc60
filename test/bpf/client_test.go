package bpf_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A switch with a machine on a tap, whose number is the one of its scope.
var (
	onSwitch  = intent.Switch(7)
	clientMAC = mac("fa:16:3e:00:10:09")
	portMAC   = mac("fa:16:3e:00:10:fe") // of the router
	vipMAC    = mac("fa:16:3e:00:10:63") // that clients outside of the VIP's network do not know
)

// tapWorld is a switch's tables, with a machine on a tap in a namespace.
type tapWorld struct {
	t   *testing.T
	dir string
	d   *ebpf.Dataplane
	tr  *ebpf.Tracer
	ns  netns.Namespace
	tap uint32
}

// backendMAC is that of a backend of the switch: the last ones are behind the router.
func backendMAC(a netip.Addr) intent.MAC {
	b := a.As16()
	if b[15] == 3 {
		return portMAC
	}
	return intent.MAC{0xfa, 0x16, 0x3e, 0, 0x20, b[15]}
}

func newTapWorld(t *testing.T, hook ebpf.Hook) *tapWorld {
	t.Helper()
	return tapWorldOf(t, ebpf.Config{Dir: bpffs(t), Plane: ebpf.Clients, Hook: hook})
}

func tapWorldOf(t *testing.T, c ebpf.Config) *tapWorld {
	t.Helper()
	w := &tapWorld{t: t, dir: c.Dir}
	var index int
	w.ns, index = namespace(t)
	w.tap = uint32(index)
	w.d = load(t, c)
	onTap := map[intent.VIPKey]intent.VIP{}
	for k, v := range worldVIPs() {
		k.VNI = onSwitch
		v.Key = k
		onTap[k] = v
	}
	apply(t, w.d.VIPs(), onTap)
	neighbors := map[intent.NeighborKey]intent.Neighbor{}
	add := func(n intent.Neighbor) {
		n.Key.Scope = onSwitch
		neighbors[n.Key] = n
	}
	for _, a := range []netip.Addr{vip4, vip6} {
		add(intent.Neighbor{Key: intent.NeighborKey{Addr: a}, MAC: portMAC, VIP: true, Answer: true, Echo: true})
	}
	for _, format := range []string{"10.10.0.%d", "fd00:10::%d"} {
		for _, b := range backendsOf(format, 3, 0) {
			add(intent.Neighbor{Key: intent.NeighborKey{Addr: b.Addr}, MAC: backendMAC(b.Addr)})
		}
	}
	apply(t, w.d.Neighbors(), neighbors)
	w.client(false)
	w.tr = tracerOf(t, w.dir, ebpf.Clients)
	return w
}

func (w *tapWorld) inside(f func()) {
	w.t.Helper()
	if err := w.ns.Do(func() error { f(); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// client writes the machine's row.
func (w *tapWorld) client(ovn bool) {
	w.t.Helper()
	k := intent.TapClientKey{IfIndex: w.tap}
	w.inside(func() {
		apply(w.t, w.d.VMs(), map[intent.TapClientKey]intent.TapClient{k: {Key: k, Scope: onSwitch, OVN: ovn}})
	})
}

// asks is what the machine sends to a VIP, gets what comes to it.
func (w *tapWorld) asks(p intent.Protocol, from, to netip.AddrPort, flags string) ebpf.TraceRequest {
	return ebpf.TraceRequest{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: flowPacket(p, from, to, flags, ether(clientMAC, vipMAC, 0))}
}

func (w *tapWorld) gets(p intent.Protocol, from, to netip.AddrPort, flags string) ebpf.TraceRequest {
	return ebpf.TraceRequest{Program: ebpf.ClientOut, IfIndex: w.tap, Frame: flowPacket(p, from, to, flags, ether(portMAC, clientMAC, 0))}
}

// passes runs a packet for real that goes on, and gives what it is then.
func (w *tapWorld) passes(t *testing.T, in ebpf.TraceRequest) gopacket.Packet {
	t.Helper()
	var frame []byte
	w.inside(func() {
		res, err := w.tr.Trace(t.Context(), in)
		if err != nil || !res.Passed {
			t.Fatalf("it does not go on (%v):\n%s", err, res)
		}
		if _, frame, _, err = w.tr.Run(in, 1); err != nil {
			t.Fatal(err)
		}
	})
	checksums(t, frame)
	return decode(frame)
}

// goes is passes of a packet with ports.
func (w *tapWorld) goes(t *testing.T, in ebpf.TraceRequest) (from, to netip.AddrPort, mac intent.MAC) {
	t.Helper()
	out := w.passes(t, in)
	from, to = ends(t, out)
	return from, to, intent.MAC(out.LinkLayer().(*layers.Ethernet).DstMAC)
}

// untouched checks that a packet goes on as it came.
func (w *tapWorld) untouched(t *testing.T, in ebpf.TraceRequest) {
	t.Helper()
	w.inside(func() {
		res, err := w.tr.Trace(t.Context(), in)
		if err != nil || !res.Passed {
			t.Fatalf("it does not go on (%v):\n%s", err, res)
		}
		if _, frame, _, err := w.tr.Run(in, 1); err != nil || !bytes.Equal(frame, in.Frame) {
			t.Errorf("it was changed (%v):\n%s\n%s", err, decode(in.Frame), decode(frame))
		}
	})
}

// answered runs a packet that is answered on the tap.
func (w *tapWorld) answered(t *testing.T, in ebpf.TraceRequest) gopacket.Packet {
	t.Helper()
	var out gopacket.Packet
	w.inside(func() {
		redirected, frame, _, err := w.tr.Run(in, 1)
		if err != nil || !redirected {
			t.Fatalf("it is not answered (%v)", err)
		}
		checksums(t, frame)
		out = decode(frame)
	})
	return out
}

// What a machine sends to a VIP goes to a backend, with its MAC address or the router's,
// and the answers come from the VIP. All else goes on as it came.
func TestClients(t *testing.T) {
	w := newTapWorld(t, ebpf.HookAuto)
	for _, c := range kindsOfFlows {
		t.Run(c.name, func(t *testing.T) {
			seen := map[netip.AddrPort]int{}
			for i := range 50 {
				client := netip.AddrPortFrom(c.client, uint16(clientPort+i))
				for _, flags := range []string{"S", "A"} {
					from, backend, to := w.goes(t, w.asks(c.protocol, client, c.vip, flags))
					if from != client || to != backendMAC(backend.Addr()) || backend.Addr() == c.vip.Addr() {
						t.Fatalf("flow %d is from %s to %s at %s", i, from, backend, to)
					}
					seen[backend]++
					if from, to, _ := w.goes(t, w.gets(c.protocol, backend, client, "SA")); from != c.vip || to != client {
						t.Fatalf("the answer is from %s to %s", from, to)
					}
				}
			}
			if len(seen) < 2 {
				t.Errorf("all flows went to one backend: %v", seen)
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		client := netip.AddrPortFrom(client4, clientPort)
		away := netip.AddrPortFrom(addr("10.30.0.1"), 80)
		for _, in := range []ebpf.TraceRequest{
			w.asks(intent.TCP, client, away, "S"), w.asks(intent.TCP, client, netip.AddrPortFrom(vip4, 9), "S"), w.gets(intent.TCP, away, client, "SA"),
			w.asks(intent.TCP, client, netip.AddrPortFrom(addr("10.10.0.1"), 8080), "S"), w.gets(intent.TCP, client, away, "S"),
			withVLAN(w.asks(intent.TCP, client, netip.AddrPortFrom(vip4, 80), "S"), 5),
			{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: arp("10.20.0.9", "10.10.0.1", 1)},
			{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: arp("10.99.0.1", "10.99.0.1", 1)},
			{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: solicit("fd00:20::9", "ff02::1:ff00:1", "fd00:10::1", 255, sourceOption)},
			{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: solicit("fd00:20::9", "ff02::1:ff00:1", "fd00:99::1", 64, sourceOption)},
			{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: frame(ether(clientMAC, vipMAC, layers.EthernetTypeLLC), gopacket.Payload("hello"))},
		} {
			w.untouched(t, in)
		}
	})
	t.Run("hairpin", func(t *testing.T) {
		// Of a machine that is a backend itself, some flows would come back to it.
		left := 0
		for i := range 30 {
			in := w.asks(intent.TCP, netip.AddrPortFrom(addr("10.10.0.1"), uint16(clientPort+i)), netip.AddrPortFrom(vip4, 80), "S")
			_, to, _ := w.goes(t, in)
			if to.Addr() == addr("10.10.0.1") {
				t.Errorf("flow %d comes back", i)
			}
			if to.Addr() == vip4 {
				left++
				w.untouched(t, w.asks(intent.TCP, netip.AddrPortFrom(addr("10.10.0.1"), uint16(clientPort+i)), netip.AddrPortFrom(vip4, 80), "A"))
			}
		}
		if left == 0 || left == 30 {
			t.Errorf("%d of 30 flows are left to OVN", left)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		for port, reason := range map[uint16]drop.Reason{82: drop.NoBackend, 84: drop.BackendAway} {
			w.inside(func() {
				res, err := w.tr.Trace(t.Context(), w.asks(intent.TCP, netip.AddrPortFrom(client4, clientPort), netip.AddrPortFrom(vip4, port), "S"))
				if err != nil || res.Dropped() != reason {
					t.Errorf("to port %d: %s (%v)", port, res, err)
				}
			})
		}
	})
	t.Run("answers on the tap", w.answers)
	t.Run("fragments", w.fragments)
	t.Run("errors", w.errors)
}

// answers are those that the programs make themselves.
func (w *tapWorld) answers(t *testing.T) {
	on := func(frame []byte) ebpf.TraceRequest {
		return ebpf.TraceRequest{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: frame}
	}
	reply := w.answered(t, on(arp("10.20.0.9", "10.99.0.1", 1)))
	a := reply.Layer(layers.LayerTypeARP).(*layers.ARP)
	if a.Operation != 2 || !bytes.Equal(a.SourceHwAddress, portMAC[:]) || !net.IP(a.SourceProtAddress).Equal(net.ParseIP("10.99.0.1")) {
		t.Errorf("the answer to ARP is %s", reply)
	}
	for _, c := range []struct{ asker, group string }{{"fd00:20::9", "ff02::1:ff00:1"}, {"fe80::9", "ff02::1:ff00:1"}, {"fd00:20::9", "fd00:99::1"}} {
		reply := w.answered(t, on(solicit(c.asker, c.group, "fd00:99::1", 255, sourceOption)))
		na, ok := reply.Layer(layers.LayerTypeICMPv6NeighborAdvertisement).(*layers.ICMPv6NeighborAdvertisement)
		if !ok || !na.TargetAddress.Equal(net.ParseIP("fd00:99::1")) || len(na.Options) != 1 || !bytes.Equal(na.Options[0].Data, portMAC[:]) {
			t.Errorf("the answer to %s is %s", c.asker, reply)
		}
	}
	for _, c := range []struct{ client, vip netip.Addr }{{client4, vip4}, {client6, vip6}} {
		request, kind := echo4, uint8(8)
		if c.client.Is6() {
			request, kind = echo6, 128
		}
		in := on(request(clientMAC, vipMAC, c.client.String(), c.vip.String(), kind))
		reply := w.answered(t, in)
		eth := reply.LinkLayer().(*layers.Ethernet)
		if reply.NetworkLayer().NetworkFlow() != decode(in.Frame).NetworkLayer().NetworkFlow().Reverse() || intent.MAC(eth.DstMAC) != clientMAC || intent.MAC(eth.SrcMAC) != vipMAC {
			t.Errorf("the answer to an echo request is %s", reply)
		}
		w.client(true)
		w.untouched(t, in)
		w.client(false)
	}
	// What has no backend is not there.
	k := intent.NeighborKey{Scope: onSwitch, Addr: vip4}
	n := intent.Neighbor{Key: k, MAC: portMAC, VIP: true, Answer: true}
	apply(w.t, w.d.Neighbors(), map[intent.NeighborKey]intent.Neighbor{k: n})
	w.untouched(t, on(echo4(clientMAC, vipMAC, client4.String(), vip4.String(), 8)))
	n.Echo = true
	apply(w.t, w.d.Neighbors(), map[intent.NeighborKey]intent.Neighbor{k: n})
}

// fragments of a datagram all go where the first one goes.
func (w *tapWorld) fragments(t *testing.T) {
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 7000)}, {client6, netip.AddrPortFrom(vip6, 7000)}} {
		client := netip.AddrPortFrom(c.client, 1234)
		list := fragments(ether(clientMAC, vipMAC, 0), datagram(client, c.vip), 77)
		w.untouched(t, ebpf.TraceRequest{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: list[1]})
		var first netip.Addr
		for i, f := range list {
			var out []byte
			w.inside(func() {
				var err error
				if _, out, _, err = w.tr.Run(ebpf.TraceRequest{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: f}, 1); err != nil {
					t.Fatal(err)
				}
			})
			_, to := addrsOf(out[14:])
			if i == 0 {
				first = to
			}
			if to == c.vip.Addr() || to != first || intent.MAC(out[:6]) != backendMAC(to) {
				t.Errorf("fragment %d goes to %s at %s, the first one to %s", i, to, intent.MAC(out[:6]), first)
			}
		}
	}
}

// errors about packets of flows to VIPs quote what their receivers have sent.
func (w *tapWorld) errors(t *testing.T) {
	for _, c := range []struct {
		client, router netip.Addr
		vip            netip.AddrPort
	}{{client4, addr("10.10.0.200"), netip.AddrPortFrom(vip4, 80)}, {client6, addr("fd00:10::200"), netip.AddrPortFrom(vip6, 80)}} {
		client := netip.AddrPortFrom(c.client, clientPort)
		_, backend, _ := w.goes(t, w.asks(intent.TCP, client, c.vip, "S"))
		about := flowPacket(intent.TCP, client, backend, "A", ether(gwMAC, nextHopMAC, 0))
		out := w.passes(t, ebpf.TraceRequest{Program: ebpf.ClientOut, IfIndex: w.tap, Frame: icmpError(ether(portMAC, clientMAC, 0), c.router, c.client, tooBig, about, 1000)})
		if from, to := quotedEnds(t, out); from != client || to != c.vip {
			t.Errorf("an error to the machine is about a packet from %s to %s", from, to)
		}
		about = flowPacket(intent.TCP, c.vip, client, "A", ether(gwMAC, nextHopMAC, 0))
		out = w.passes(t, ebpf.TraceRequest{Program: ebpf.ClientIn, IfIndex: w.tap, Frame: icmpError(ether(clientMAC, portMAC, 0), c.client, c.vip.Addr(), unreachable, about, 1000)})
		if from, to := quotedEnds(t, out); from != backend || to != client {
			t.Errorf("an error of the machine is about a packet from %s to %s", from, to)
		}
		if mac := intent.MAC(out.LinkLayer().(*layers.Ethernet).DstMAC); mac != backendMAC(backend.Addr()) {
			t.Errorf("an error of the machine goes to %s", mac)
		}
	}
}

// A machine whose flows change between OVN and eBPF keeps those that it has.
func TestClientFlips(t *testing.T) {
	w := newTapWorld(t, ebpf.HookAuto)
	vip := netip.AddrPortFrom(vip4, 80)
	known, other, third := netip.AddrPortFrom(client4, 1), netip.AddrPortFrom(client4, 2), netip.AddrPortFrom(client4, 3)
	_, backend, _ := w.goes(t, w.asks(intent.TCP, known, vip, "S"))
	w.client(true)
	if _, to, _ := w.goes(t, w.asks(intent.TCP, known, vip, "A")); to != backend {
		t.Errorf("a known flow goes to %s, not to %s", to, backend)
	}
	w.untouched(t, w.asks(intent.TCP, other, vip, "S"))
	w.client(false)
	w.untouched(t, w.asks(intent.TCP, other, vip, "A"))
	w.untouched(t, w.asks(intent.TCP, third, vip, "A")) // OVN's, as none has begun since
	if _, to, _ := w.goes(t, w.asks(intent.TCP, netip.AddrPortFrom(client4, 4), vip, "S")); to == vip {
		t.Error("a new flow is OVN's")
	}
	// A backend that is made anew has another MAC address.
	k := intent.NeighborKey{Scope: onSwitch, Addr: backend.Addr()}
	anew := mac("fa:16:3e:00:20:aa")
	apply(t, w.d.Neighbors(), map[intent.NeighborKey]intent.Neighbor{k: {Key: k, MAC: anew}})
	if _, to, mac := w.goes(t, w.asks(intent.TCP, known, vip, "A")); to != backend || mac != anew {
		t.Errorf("a flow goes to %s at %s", to, mac)
	}
	// One that is taken out keeps its flows, and they their MAC address.
	if err := w.d.Neighbors().Delete(t.Context(), []intent.NeighborKey{k}); err != nil {
		t.Fatal(err)
	}
	if _, to, mac := w.goes(t, w.asks(intent.TCP, known, vip, "A")); to != backend || mac != backendMAC(backend.Addr()) {
		t.Errorf("the flow of a backend that is gone goes to %s at %s", to, mac)
	}
}

// Connections that began before eBPF balanced a new VIP are OVN's; those of a machine that
// has come from another node with them are not.
func TestClientTakeover(t *testing.T) {
	w := newTapWorld(t, ebpf.HookAuto)
	w.d.Close()
	w.d = load(t, ebpf.Config{Dir: w.dir, Plane: ebpf.Clients})
	k := intent.TapClientKey{IfIndex: w.tap}
	write := func(v intent.TapClient) {
		t.Helper()
		v.Key, v.Scope = k, onSwitch
		w.inside(func() { apply(t, w.d.VMs(), map[intent.TapClientKey]intent.TapClient{k: v}) })
	}
	remove := func() {
		t.Helper()
		w.inside(func() {
			if errs := w.d.VMs().Delete(t.Context(), []intent.TapClientKey{k}); errs != nil {
				t.Fatal(errs)
			}
		})
	}
	for i, c := range []struct {
		client netip.Addr
		v      intent.VIP
	}{{client4, vip(intent.TCP, vip4, 8090, backendsOf("10.10.0.%d", 3, 8080)...)}, {client6, vip(intent.TCP, vip6, 8090, backendsOf("fd00:10::%d", 3, 8080)...)}} {
		c.v.Key.VNI = onSwitch
		apply(t, w.d.VIPs(), map[intent.VIPKey]intent.VIP{c.v.Key: c.v})
		to := netip.AddrPortFrom(c.v.Key.Addr, c.v.Key.Port)
		from := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(c.client, port) }
		w.untouched(t, w.asks(intent.TCP, from(1), to, "A"))
		if _, at, _ := w.goes(t, w.asks(intent.TCP, from(2), to, "S")); at == to {
			t.Error("a new connection is OVN's")
		}
		if i > 0 {
			continue
		}
		for j, before := range []intent.Before{intent.BeforeUnknown, intent.BeforeNode} {
			remove()
			w.d.VMs().Before(map[intent.TapClientKey]intent.Before{k: before})
			write(intent.TapClient{})
			if _, at, _ := w.goes(t, w.asks(intent.TCP, from(uint16(30+j)), to, "A")); at == to {
				t.Error("a connection that has come with the machine is OVN's")
			}
		}
		remove()
		w.d.VMs().Before(map[intent.TapClientKey]intent.Before{k: intent.BeforeNode})
		write(intent.TapClient{Idle: true}) // the switch's VIPs are not known yet
		write(intent.TapClient{})
		if _, at, _ := w.goes(t, w.asks(intent.TCP, from(32), to, "A")); at == to {
			t.Error("a connection that has come with the machine before VIPs were known is OVN's")
		}
		remove()
		write(intent.TapClient{Idle: true})
		write(intent.TapClient{})
		w.untouched(t, w.asks(intent.TCP, from(4), to, "A"))
		remove()
		w.d.VMs().Before(map[intent.TapClientKey]intent.Before{k: intent.BeforeOVN})
		write(intent.TapClient{})
		w.untouched(t, w.asks(intent.TCP, from(5), to, "A"))
		write(intent.TapClient{})
		w.untouched(t, w.asks(intent.TCP, from(6), to, "A"))
	}
}

// Rows and programs of taps come and go, by each hook, and outlive the process.
func TestClientDevices(t *testing.T) {
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			w := newTapWorld(t, hook)
			k := intent.TapClientKey{IfIndex: w.tap}
			sub := intent.TapClientKey{IfIndex: w.tap, VLAN: 100}
			list := func(want map[intent.TapClientKey]intent.TapClient) {
				t.Helper()
				w.inside(func() {
					got, err := w.d.VMs().List(t.Context())
					if err != nil || len(got) != len(want) {
						t.Fatalf("%v (%v), want %v", got, err, want)
					}
					for k, v := range want {
						if got[k] != v {
							t.Errorf("%s: %+v, want %+v", k, got[k], v)
						}
					}
				})
			}
			first := intent.TapClient{Key: k, Scope: onSwitch}
			second := intent.TapClient{Key: sub, Scope: intent.Switch(8), OVN: true}
			list(map[intent.TapClientKey]intent.TapClient{k: first})
			w.inside(func() { apply(t, w.d.VMs(), map[intent.TapClientKey]intent.TapClient{sub: second}) })
			list(map[intent.TapClientKey]intent.TapClient{k: first, sub: second})
			w.d.Close()
			w.d = load(t, ebpf.Config{Dir: w.dir, Plane: ebpf.Clients, Hook: hook})
			list(map[intent.TapClientKey]intent.TapClient{k: first, sub: second})
			w.inside(func() {
				if err := w.d.Detach(ebpf.ClientOut, int(w.tap)); err != nil {
					t.Fatal(err)
				}
			})
			list(map[intent.TapClientKey]intent.TapClient{k: {}, sub: {}})
			w.inside(func() {
				if errs := w.d.VMs().Delete(t.Context(), []intent.TapClientKey{k}); errs != nil {
					t.Fatal(errs)
				}
				apply(t, w.d.VMs(), map[intent.TapClientKey]intent.TapClient{sub: second})
			})
			list(map[intent.TapClientKey]intent.TapClient{sub: second})
			// Without VIPs nothing is on the tap, once that is so of all of its machines.
			idle, idleSub := intent.TapClient{Key: k, Scope: onSwitch, Idle: true}, intent.TapClient{Key: sub, Scope: intent.Switch(8), Idle: true}
			for _, step := range []struct {
				write    intent.TapClient
				want     map[intent.TapClientKey]intent.TapClient
				attached bool
			}{
				{idle, map[intent.TapClientKey]intent.TapClient{k: idle, sub: second}, true},
				{idleSub, map[intent.TapClientKey]intent.TapClient{k: idle, sub: idleSub}, false},
				{first, map[intent.TapClientKey]intent.TapClient{k: first, sub: idleSub}, true},
				{idle, map[intent.TapClientKey]intent.TapClient{k: idle, sub: idleSub}, false},
				{second, map[intent.TapClientKey]intent.TapClient{k: idle, sub: second}, true},
			} {
				w.inside(func() {
					apply(t, w.d.VMs(), map[intent.TapClientKey]intent.TapClient{step.write.Key: step.write})
					if ok, err := w.d.Attached(ebpf.ClientIn, int(w.tap)); ok != step.attached || err != nil {
						t.Errorf("after %+v programs are attached: %v (%v)", step.write, ok, err)
					}
				})
				list(step.want)
			}
			w.inside(func() {
				if errs := w.d.VMs().Delete(t.Context(), []intent.TapClientKey{k}); errs != nil {
					t.Fatal(errs)
				}
			})
			command(t, "ip -n "+name(w.ns)+" link del sluice0")
			list(map[intent.TapClientKey]intent.TapClient{sub: {}})
			w.inside(func() {
				if errs := w.d.VMs().Delete(t.Context(), []intent.TapClientKey{sub}); errs != nil {
					t.Fatal(errs)
				}
			})
			list(map[intent.TapClientKey]intent.TapClient{})
		})
	}
}

// On a tap with the qdisc ingress, as metadata makes it where there is no tcx, both have
// their programs in the end; one with filters of others is left alone.
func TestClientQdisc(t *testing.T) {
	ns, index := namespace(t)
	key := intent.TapClientKey{IfIndex: uint32(index)}
	client := map[intent.TapClientKey]intent.TapClient{key: {Key: key, Scope: onSwitch}}
	metadata := loadTaps(t, bpffs(t), pinned.HookClsact)
	d := load(t, ebpf.Config{Dir: bpffs(t), Plane: ebpf.Clients, Hook: ebpf.HookClsact})
	if err := ns.Do(func() error {
		if err := metadata.Attach(uint32(index)); err != nil {
			return err
		}
		apply(t, d.VMs(), client)
		if n := len(onDevice(t, pinned.HookClsact, index)); n != 2 {
			t.Errorf("the tap has %d programs for what comes in", n)
		}
		if ok, err := d.Attached(ebpf.ClientOut, index); !ok || err != nil {
			t.Errorf("the program for answers is attached: %v (%v)", ok, err)
		}
		return metadata.Attach(uint32(index)) // it finds its own
	}); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error {
		if errs := d.VMs().Delete(t.Context(), []intent.TapClientKey{key}); errs != nil {
			return errs[0]
		}
		command(t, "tc -n "+name(ns)+" qdisc del dev sluice0 clsact")
		foreignOn(t, pinned.HookClsact, index)
		errs := d.VMs().Apply(t.Context(), []reconcile.Row[intent.TapClientKey, intent.TapClient]{{Key: key, Value: client[key]}})
		if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrForeign) {
			t.Errorf("beside a filter of others: %v", errs)
		}
		if n := len(onDevice(t, pinned.HookClsact, index)); n != 1 {
			t.Errorf("the tap has %d programs", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
