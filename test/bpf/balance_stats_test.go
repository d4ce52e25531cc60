package bpf_test

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Each packet of a flow to a VIP is counted for the VIP and for its backend, and a
// restart loses nothing.
func TestBalanceStats(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	allKnown(t, dir)
	tr := tracer(t, dir)
	wantVIPs, wantBackends := map[intent.VIPKey]ebpf.Balanced{}, map[ebpf.BackendKey]ebpf.Balanced{}
	count := func(v intent.VIPKey, backend netip.AddrPort, add func(*ebpf.Balanced)) {
		b := ebpf.BackendKey{VNI: red, Protocol: v.Protocol, Addr: backend}
		of, on := wantVIPs[v], wantBackends[b]
		add(&of)
		add(&on)
		wantVIPs[v], wantBackends[b] = of, on
	}
	const l2 = 14
	traffic := func(to *ebpf.Traffic, in ebpf.TraceRequest) {
		to.Packets++
		to.Bytes += uint64(len(in.Frame) - l2)
	}
	for _, c := range []struct {
		protocol intent.Protocol
		client   netip.Addr
		vip      netip.AddrPort
	}{
		{intent.TCP, client4, netip.AddrPortFrom(vip4, 80)}, {intent.TCP, client4, netip.AddrPortFrom(vip4, 81)},
		{intent.TCP, client6, netip.AddrPortFrom(vip6, 80)}, {intent.UDP, client6, netip.AddrPortFrom(vip6, 7000)},
	} {
		k := intent.VIPKey{VNI: red, Protocol: c.protocol, Addr: c.vip.Addr(), Port: c.vip.Port()}
		for i := range 20 {
			client := netip.AddrPortFrom(c.client, uint16(clientPort+100*int(c.vip.Port()%7)+i))
			opens, goes := asked(c.protocol, client, c.vip, "S"), asked(c.protocol, client, c.vip, "A")
			_, backend := send(t, tr, opens)
			send(t, tr, goes)
			answer := replied(c.protocol, backend, client, "A")
			send(t, tr, answer)
			count(k, backend, func(b *ebpf.Balanced) {
				b.Flows++
				traffic(&b.ToBackends, opens)
				traffic(&b.ToBackends, goes)
				traffic(&b.ToClients, answer)
			})
		}
	}
	dropped := asked(intent.TCP, netip.AddrPortFrom(client4, clientPort), netip.AddrPortFrom(vip4, 82), "S")
	row{in: dropped, drop: drop.NoBackend}.run(t, d, tr)
	empty := intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 82}
	vips, _ := d.VIPs().Stats()
	if vips[empty].Drops == 0 || vips[empty] != (ebpf.Balanced{Drops: vips[empty].Drops}) {
		t.Errorf("the VIP without a backend has %+v", vips[empty])
	}
	wantVIPs[empty] = vips[empty]
	check := func(when string) {
		t.Helper()
		vips, backends := d.VIPs().Stats()
		for k, want := range wantVIPs {
			if vips[k] != want {
				t.Errorf("%s: VIP %s has %+v, want %+v", when, k, vips[k], want)
			}
		}
		for k, want := range wantBackends {
			if backends[k] != want {
				t.Errorf("%s: backend %v has %+v, want %+v", when, k, backends[k], want)
			}
		}
	}
	check("at first")
	d.Close()
	d = load(t, ebpf.Config{Dir: dir, Node: node()})
	check("after a restart")
	for k, hash := range d.VIPs().Hashes() {
		if want, _, err := ebpf.TableOf(worldVIPs()[k]); err != nil || hash != want {
			t.Errorf("the hash of the table of %s is %x, want %x (%v)", k, hash, want, err)
		}
	}

	// Another VIP begins with nothing, in another row.
	k := intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 80}
	for _, err := range d.VIPs().Delete(t.Context(), []intent.VIPKey{k}) {
		t.Error(err)
	}
	apply(t, d.VIPs(), worldVIPs())
	delete(wantVIPs, k)
	check("after a VIP went and came")
	if vips, _ := d.VIPs().Stats(); vips[k] != (ebpf.Balanced{}) {
		t.Errorf("a new VIP has %+v", vips[k])
	}
}

// slow is a node that takes few new flows, and knows all from before.
func slow(t *testing.T, rows map[intent.VIPKey]intent.VIP) (*ebpf.Dataplane, *ebpf.Tracer) {
	t.Helper()
	return slowIn(t, bpffs(t), rows)
}

func slowIn(t *testing.T, dir string, rows map[intent.VIPKey]intent.VIP) (*ebpf.Dataplane, *ebpf.Tracer) {
	t.Helper()
	n := node()
	n.FlowRate = 4
	d := world(t, dir, n)
	apply(t, d.VIPs(), rows)
	apply(t, d.Routes(), balancedRoutes())
	allKnown(t, dir)
	return d, tracer(t, dir)
}

// A flood of packets that begin connections takes no rows of others: it goes where its
// hash leads, as do its answers, and those that become connections are recorded.
func TestBalanceFlood(t *testing.T) {
	rows := worldVIPs()
	// An answer that may be of two VIPs cannot be told.
	delete(rows, intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 81})
	d, tr := slow(t, rows)
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 80)}, {client6, netip.AddrPortFrom(vip6, 80)}} {
		v := worldVIPs()[intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: c.vip.Addr(), Port: 80}]
		const flood = 300
		unrecorded := 0
		var last netip.AddrPort
		for i := range flood {
			client := netip.AddrPortFrom(c.client, uint16(clientPort+i))
			_, backend := send(t, tr, asked(intent.TCP, client, c.vip, "S"))
			choice, _, err := ebpf.Choose(v, client, c.vip)
			if err != nil || backend != netip.AddrPortFrom(choice.Backend.Addr, choice.Backend.Port) {
				t.Fatalf("flow %d goes to %s, and its hash leads to %v (%v)", i, backend, choice, err)
			}
			if from, to := send(t, tr, replied(intent.TCP, backend, client, "SA")); from != c.vip || to != client {
				t.Fatalf("the answer of flow %d is from %s to %s", i, from, to)
			}
			if _, known, err := d.Reader().Flow(ebpf.FlowKey{VNI: red, Protocol: intent.TCP, Src: client, Dst: c.vip}); err != nil {
				t.Fatal(err)
			} else if !known {
				unrecorded++
				last = client
			}
		}
		stats, _ := d.VIPs().Stats()
		t.Logf("%d of %d flows were not recorded: %+v", unrecorded, flood, stats[v.Key])
		if got := stats[v.Key]; unrecorded < flood/2 || got.Unrecorded != uint64(unrecorded) || got.Flows != uint64(flood-unrecorded) ||
			got.ToBackends.Packets != flood || got.ToClients.Packets != flood {
			t.Errorf("%d of %d flows were not recorded: %+v", unrecorded, flood, got)
		}
		// There are tokens left for a connection that goes on.
		send(t, tr, asked(intent.TCP, last, c.vip, "A"))
		if _, known, err := d.Reader().Flow(ebpf.FlowKey{VNI: red, Protocol: intent.TCP, Src: last, Dst: c.vip}); !known {
			t.Errorf("a connection that goes on is not recorded (%v)", err)
		}
		// What a backend says to a client of its own stays as it is, after the client spoke.
		own := v.Backends.All()[0]
		at, client := netip.AddrPortFrom(own.Addr, own.Port), netip.AddrPortFrom(c.client, 999)
		send(t, tr, asked(intent.TCP, client, at, "S"))
		if from, _ := send(t, tr, replied(intent.TCP, at, client, "SA")); from != at {
			t.Errorf("a direct connection's answer is from %s", from)
		}
	}
}

// Above the rate a client that keeps a backend, where the table leads to another one by now,
// gets no answer rather than that one's: what becomes of the connection is the kept one's.
func TestBalanceFloodOfKept(t *testing.T) {
	d, tr := slow(t, worldVIPs())
	for _, c := range []struct {
		client   netip.Addr
		vip      netip.AddrPort
		backends string
	}{{client4, netip.AddrPortFrom(vip4, 80), "10.10.0.%d"}, {client6, netip.AddrPortFrom(vip6, 80), "fd00:10::%d"}} {
		v := vip(intent.TCP, c.vip.Addr(), 80)
		v.Affinity, v.ByAddress = 300, true
		put := func(backends ...intent.Backend) netip.AddrPort {
			v.Backends = intent.NewBackendSet(backends...)
			apply(t, d.VIPs(), vips(v))
			choice, _, err := ebpf.Choose(v, netip.AddrPortFrom(c.client, clientPort), c.vip)
			if err != nil {
				t.Fatal(err)
			}
			return netip.AddrPortFrom(choice.Backend.Addr, choice.Backend.Port)
		}
		// One backend is kept; then others come until the table leads elsewhere.
		kept := put(backendsOf(c.backends, 1, 8080)...)
		if _, to := send(t, tr, asked(intent.TCP, netip.AddrPortFrom(c.client, 999), c.vip, "S")); to != kept {
			t.Fatalf("the first connection goes to %s", to)
		}
		for n := 2; put(backendsOf(c.backends, n, 8080)...) == kept; n++ {
			if n == 9 {
				t.Fatal("the table leads to the kept backend still")
			}
		}
		const flood = 300
		dropped, before := 0, dropsOf(t, d, drop.VIPFlood)
		for i := range flood {
			went, out, _, err := tr.Run(asked(intent.TCP, netip.AddrPortFrom(c.client, uint16(clientPort+i)), c.vip, "S"), 1)
			if err != nil {
				t.Fatal(err)
			}
			if !went {
				dropped++
			} else if _, to := ends(t, decode(out)); to != kept {
				t.Fatalf("connection %d begins at %s; the client keeps %s", i, to, kept)
			}
		}
		if n := dropsOf(t, d, drop.VIPFlood) - before; dropped < flood/2 || n != uint64(dropped) {
			t.Errorf("%d of %d are dropped, and %d are counted", dropped, flood, n)
		}
	}
}

// What a flood has left without a row goes on where it began, while a VIP has changed over
// so lately that other packets without one go where flows went before.
func TestBalanceFloodOfChangedVIP(t *testing.T) {
	dir := bpffs(t)
	n := node()
	n.FlowRate = 4
	d := world(t, dir, n)
	apply(t, d.VIPs(), worldVIPs())
	apply(t, d.Routes(), balancedRoutes())
	knownIn(t, dir, 0)
	tr := tracer(t, dir)
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 80)}, {client6, netip.AddrPortFrom(vip6, 80)}} {
		v := worldVIPs()[intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: c.vip.Addr(), Port: 80}]
		if _, to := send(t, tr, asked(intent.TCP, netip.AddrPortFrom(c.client, 998), c.vip, "A")); to != c.vip {
			t.Errorf("a packet from before the flood went to %s, want OVN", to)
		}
		for i, ovn := range []bool{false, true} {
			if ovn {
				apply(t, d.VIPs(), vips(intent.VIP{Key: v.Key, OVN: true}))
			}
			const flood = 300
			began := map[netip.AddrPort]netip.AddrPort{}
			for j := range flood {
				client := netip.AddrPortFrom(c.client, uint16(clientPort+i*flood+j))
				_, to := send(t, tr, asked(intent.TCP, client, c.vip, "S"))
				if (to == c.vip) != ovn {
					t.Fatalf("flow %d of a flood went to %s; OVN's is %t", j, to, ovn)
				}
				if _, known, err := d.Reader().Flow(ebpf.FlowKey{VNI: red, Protocol: intent.TCP, Src: client, Dst: c.vip}); err != nil {
					t.Fatal(err)
				} else if !known {
					began[client] = to
				}
			}
			if len(began) < flood/2 {
				t.Fatalf("%d of %d flows are without a row", len(began), flood)
			}
			for client, to := range began {
				if _, now := send(t, tr, asked(intent.TCP, client, c.vip, "A")); now != to {
					t.Fatalf("a flow of a flood went to %s, then to %s", to, now)
				}
			}
		}
	}
}
