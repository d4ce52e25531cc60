package bpf_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// alikeVIPs are VIPs of both families and protocols, of few backends and of many, with and without
// weights, one by the client's address alone. None shares a backend with another: where two of
// a client's flows would meet depends on what a node has seen before.
func alikeVIPs() (list []intent.VIP) {
	port := uint16(2000)
	for _, p := range []intent.Protocol{intent.TCP, intent.UDP} {
		for _, family := range []struct {
			vip    netip.Addr
			format string
		}{{vip4, "10.10.0.1%02d"}, {vip6, "fd00:10::1%02d"}} {
			for i, n := range []int{3, 10, 90} {
				port++
				v := vip(p, family.vip, uint16(1000+i), backendsOf(family.format, n, port)...)
				if n == 90 {
					v.Slots = 16381
				}
				if n == 10 {
					weighted := v.Backends.All()
					weighted[1].Weight, weighted[4].Weight = 3, 0
					v.Backends = intent.NewBackendSet(weighted...)
				}
				list = append(list, v)
			}
		}
	}
	list[0].ByAddress, list[0].Affinity = true, 300
	return list
}

// pastOf are other rows of a VIP, one after the other: what a node may have had before.
func pastOf(v intent.VIP) []intent.VIP {
	all := v.Backends.All()
	alone, more, drained, ovn, size := v, v, v, intent.VIP{Key: v.Key, OVN: true}, v
	alone.Backends = intent.NewBackendSet(all[len(all)-1])
	extra := slices.Clone(all)
	for i, b := range all[:2] {
		b.Addr = b.Addr.Next()
		for slices.ContainsFunc(extra, func(o intent.Backend) bool { return o.Addr == b.Addr }) {
			b.Addr = b.Addr.Next()
		}
		b.Weight = uint16(1 + i)
		extra = append(extra, b)
	}
	more.Backends = intent.NewBackendSet(extra...)
	idle := slices.Clone(all)
	idle[0].Weight = 0
	drained.Backends = intent.NewBackendSet(idle...)
	size.Slots = 4093
	return []intent.VIP{alone, more, drained, ovn, size}
}

// balancer is a node that a client's packet to a VIP comes to.
type balancer struct {
	name  string
	asked func(intent.Protocol, netip.AddrPort, netip.AddrPort) ebpf.TraceRequest
	tr    *ebpf.Tracer
	// frames are packets of each protocol and family, whose addresses and ports are written anew.
	frames map[intent.VIPKey]ebpf.TraceRequest
}

// backend is where the node's programs send the first packet of a flow.
func (b *balancer) backend(t *testing.T, v intent.VIPKey, client netip.AddrPort) netip.AddrPort {
	t.Helper()
	at := netip.AddrPortFrom(v.Addr, v.Port)
	in, ok := b.frames[v]
	if !ok {
		in = b.asked(v.Protocol, client, at)
		b.frames[v] = in
	}
	const l2 = 14
	size, length, l4 := 4, 20, l2+20
	if v.Addr.Is6() {
		size, length, l4 = 16, 40, l2+40
	}
	copy(in.Frame[l2+length-2*size:], client.Addr().AsSlice())
	binary.BigEndian.PutUint16(in.Frame[l4:], client.Port())
	_, out, _, err := b.tr.Run(in, 1)
	if err != nil || len(out) != len(in.Frame) {
		t.Fatalf("%s: %d of %d bytes (%v)", b.name, len(out), len(in.Frame), err)
	}
	to, _ := netip.AddrFromSlice(out[l4-size : l4])
	return netip.AddrPortFrom(to, binary.BigEndian.Uint16(out[l4+2:]))
}

// gateway is a node where the VIPs came in an order, each after a past of its own, and that
// was started again if it has one.
func gateway(t *testing.T, name string, order []intent.VIP, past func(intent.VIP) []intent.VIP) *balancer {
	t.Helper()
	dir := bpffs(t)
	d := world(t, dir, node())
	apply(t, d.Routes(), balancedRoutes())
	if past != nil {
		// What goes leaves room that others take.
		others := map[intent.VIPKey]intent.VIP{}
		for _, v := range order[:len(order)/2] {
			v.Key.Port += 100
			others[v.Key] = v
		}
		apply(t, d.VIPs(), others)
		for step := range len(past(order[0])) {
			for _, v := range order {
				apply(t, d.VIPs(), vips(past(v)[step]))
			}
		}
		for _, err := range d.VIPs().Delete(t.Context(), append(slices.Collect(maps.Keys(others)), order[0].Key)) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, v := range order {
		apply(t, d.VIPs(), vips(v))
	}
	if past != nil {
		d.Close()
		d = load(t, ebpf.Config{Dir: dir, Node: node()})
	}
	wantList(t, d.VIPs(), vips(order...))
	return &balancer{name, func(p intent.Protocol, from, to netip.AddrPort) ebpf.TraceRequest { return asked(p, from, to, "S") }, tracer(t, dir), map[intent.VIPKey]ebpf.TraceRequest{}}
}

// onTap is a node with a machine, on whose tap the VIPs are.
func (w *tapWorld) balancer(order []intent.VIP) *balancer {
	w.t.Helper()
	neighbors := map[intent.NeighborKey]intent.Neighbor{}
	for _, v := range order {
		for _, b := range v.Backends.All() {
			k := intent.NeighborKey{Scope: onSwitch, Addr: b.Addr}
			neighbors[k] = intent.Neighbor{Key: k, MAC: portMAC}
		}
		v.Key.VNI = onSwitch
		apply(w.t, w.d.VIPs(), vips(v))
	}
	apply(w.t, w.d.Neighbors(), neighbors)
	return &balancer{"a tap", func(p intent.Protocol, from, to netip.AddrPort) ebpf.TraceRequest { return w.asks(p, from, to, "S") }, w.tr, map[intent.VIPKey]ebpf.TraceRequest{}}
}

// randomClient is any address and port of a family.
func randomClient(r *rand.Rand, of netip.Addr) netip.AddrPort {
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	a := netip.AddrFrom16(b)
	if of.Is4() {
		a = netip.AddrFrom4([4]byte{100, 64 | b[8]&63, b[9], b[10]})
	}
	return netip.AddrPortFrom(a, uint16(1+r.UintN(65535)))
}

// All nodes have the same backend for a flow, whatever they had before: two gateways, and the
// taps of machines.
func TestBalanceAlike(t *testing.T) {
	flows := 10_000
	if nightly.On() {
		flows = 100_000
	}
	order := alikeVIPs()
	reverse := slices.Clone(order)
	slices.Reverse(reverse)
	w := newTapWorld(t, ebpf.HookAuto)
	nodes := []*balancer{gateway(t, "a gateway", order, nil), gateway(t, "a gateway with a past", reverse, pastOf), w.balancer(reverse)}
	seed := nightly.Seed(t, 1)
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[intent.VIPKey]map[netip.AddrPort]int{}
	w.inside(func() {
		for i := range flows {
			v := order[i%len(order)]
			client := randomClient(r, v.Key.Addr)
			want := nodes[0].backend(t, v.Key, client)
			for _, n := range nodes[1:] {
				if got := n.backend(t, v.Key, client); got != want {
					t.Fatalf("flow %d of %s to %s, seed %d: %s has %s, %s has %s", i, client, v.Key, seed, nodes[0].name, want, n.name, got)
				}
			}
			if seen[v.Key] == nil {
				seen[v.Key] = map[netip.AddrPort]int{}
			}
			seen[v.Key][want]++
		}
	})
	for _, v := range order {
		live, missed := 0, 0
		for _, b := range v.Backends.All() {
			n := seen[v.Key][netip.AddrPortFrom(b.Addr, b.Port)]
			switch {
			case b.Weight == 0 && n > 0:
				t.Errorf("%s: backend %s has %d flows", v.Key, b, n)
			case b.Weight > 0:
				live++
				if n == 0 {
					missed++
				}
			}
		}
		// Of a hundred backends one in a while is not met by some hundred flows.
		if missed > live/20 || len(seen[v.Key]) != live-missed {
			t.Errorf("%s: flows go to %v", v.Key, slices.Collect(maps.Keys(seen[v.Key])))
		}
	}
}
