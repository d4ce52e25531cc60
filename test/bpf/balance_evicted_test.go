package bpf_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// fewFlows are limits by which the map sessions has 1024 rows.
var fewFlows = ebpf.Limits{Flows: 2048}

const blueVIPPort = 80

// crowded is the world with VIPs of red and one of blue, in which few sessions have room. The
// answers of each VIP of red can be told from those of all others.
func crowded(t *testing.T, dir string) *ebpf.Dataplane {
	t.Helper()
	d := worldOf(t, ebpf.Config{Dir: dir, Node: node(), Limits: fewFlows})
	rows := worldVIPs()
	delete(rows, intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 81})
	blues := vip(intent.TCP, vip4, blueVIPPort, backendsOf("10.10.0.%d", 2, 8080)...)
	blues.Key.VNI = blue
	rows[blues.Key] = blues
	apply(t, d.VIPs(), rows)
	all := balancedRoutes()
	for k, r := range routes(local(blue, "10.99.0.1/32", blueGW)) {
		r.VIP = true
		all[k] = r
	}
	apply(t, d.Routes(), all)
	allKnown(t, dir)
	if err := d.SweepFlows(); err != nil {
		t.Fatal(err)
	}
	return d
}

// flood has blue open so many connections to its own VIP, from one address.
func flood(t *testing.T, tr *ebpf.Tracer, from, n int) {
	t.Helper()
	for i := range n {
		client := netip.AddrPortFrom(client4, uint16(10000+from+i))
		for _, flags := range []string{"S", "A"} {
			send(t, tr, via(asked(intent.TCP, client, netip.AddrPortFrom(vip4, blueVIPPort), flags), peer4, blue))
		}
	}
}

// evictions checks what is said of evictions.
func evictions(t *testing.T, d *ebpf.Dataplane, near, evicting, held bool) uint64 {
	t.Helper()
	got, err := d.Reader().Evictions()
	if err != nil || got.Near != near || got.Evicting != evicting || got.Held != held {
		t.Errorf("evictions are %+v (%v), want %t, %t, %t", got, err, near, evicting, held)
	}
	return got.Translated
}

// evicted floods until sessions are evicted. An LRU map takes the oldest of one CPU's rows at a time: those that
// another CPU has put last it takes when that one puts more, or none is left.
func evicted(t *testing.T, d *ebpf.Dataplane, keys []ebpf.FlowKey, flood func(round int)) {
	t.Helper()
	const rounds = 15
	for round := range rounds {
		flood(round)
		left := slices.ContainsFunc(keys, func(k ebpf.FlowKey) bool {
			_, known, err := d.Reader().Flow(k)
			if err != nil {
				t.Fatal(err)
			}
			return known
		})
		if !left {
			t.Logf("evicted in round %d", round+1)
			return
		}
	}
	t.Fatalf("sessions are there still after %d floods", rounds)
}

// besideBackend is another backend of the same VIP.
func besideBackend(b netip.AddrPort) netip.AddrPort {
	out := netip.AddrPortFrom(b.Addr().Prev(), b.Port())
	if last := out.Addr().As16(); last[15] == 0 {
		out = netip.AddrPortFrom(b.Addr().Next(), b.Port())
	}
	return out
}

// A tenant that fills the map of sessions resets no connection of another one: what a backend sends
// on a connection whose session was evicted comes from its VIP, or waits for the client, and
// connections to backends themselves go on.
func TestBalanceEvicted(t *testing.T) {
	dir := bpffs(t)
	d := crowded(t, dir)
	tr := tracer(t, dir)
	backends := make([]netip.AddrPort, len(kindsOfFlows))
	client := func(i int) netip.AddrPort { return netip.AddrPortFrom(kindsOfFlows[i].client, clientPort) }
	other := func(i int) netip.AddrPort { return besideBackend(backends[i]) }
	direct := func(i int, port uint16, flags string) {
		send(t, tr, asked(kindsOfFlows[i].protocol, netip.AddrPortFrom(kindsOfFlows[i].client, port), backends[i], flags))
	}
	for i, c := range kindsOfFlows {
		for _, flags := range []string{"S", "A"} {
			_, backends[i] = send(t, tr, asked(c.protocol, client(i), c.vip, flags))
			direct(i, 900, flags)
		}
	}
	evictions(t, d, false, false, false)
	flood(t, tr, 0, 400)
	evictions(t, d, true, false, false)
	var keys []ebpf.FlowKey
	for i, c := range kindsOfFlows {
		keys = append(keys, ebpf.FlowKey{VNI: red, Protocol: c.protocol, Src: client(i), Dst: c.vip})
	}
	evicted(t, d, keys, func(round int) {
		for i := range kindsOfFlows {
			direct(i, 900, "A")
		}
		flood(t, tr, 400+round*2600, 2600)
	})
	evictions(t, d, true, true, true)
	for i, c := range kindsOfFlows {
		row{in: replied(c.protocol, other(i), client(i), "A"), drop: drop.SessionEvicted}.run(t, d, tr)
		if from, to := send(t, tr, replied(c.protocol, backends[i], client(i), "A")); from != c.vip || to != client(i) {
			t.Errorf("%s: the answer is from %s to %s; its client would reset the connection to %s", c.name, from, to, c.vip)
		}
		if _, to := send(t, tr, asked(c.protocol, client(i), c.vip, "A")); to != backends[i] {
			t.Errorf("%s: it goes to %s, and went to %s", c.name, to, backends[i])
		}
		if from, _ := send(t, tr, replied(c.protocol, backends[i], netip.AddrPortFrom(c.client, 900), "A")); from != backends[i] {
			t.Errorf("%s: a connection to %s itself is answered from %s", c.name, backends[i], from)
		}
		// One that was silent waits for its client.
		send(t, tr, asked(c.protocol, client(i), other(i), "A"))
		if from, _ := send(t, tr, replied(c.protocol, other(i), client(i), "A")); from != other(i) {
			t.Errorf("%s: a connection to %s itself is answered from %s after its client has sent", c.name, other(i), from)
		}
	}
	if n := evictions(t, d, true, true, true); n != uint64(len(kindsOfFlows)) {
		t.Errorf("%d packets were translated, want %d", n, len(kindsOfFlows))
	}
}

// The maps of flows are full by the count of rows that are there, and not of all that were ever
// written.
func TestBalanceEvictedCount(t *testing.T) {
	dir := bpffs(t)
	d := crowded(t, dir)
	tr := tracer(t, dir)
	for round := range 4 {
		flood(t, tr, 0, 250)
		m := raw(t, dir, "sessions_v1")
		for key, row := range rowsOf(t, m) {
			binary.NativeEndian.PutUint32(row[4:], binary.NativeEndian.Uint32(row[4:])-7441)
			if err := m.Put([]byte(key), row); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.SweepFlows(); err != nil {
			t.Fatal(err)
		}
		if n := len(rowsOf(t, m)); n != 0 {
			t.Errorf("round %d: %d rows are left", round, n)
		}
		evictions(t, d, false, false, false)
	}
}

// The same on taps, where all machines share the map.
func TestClientEvicted(t *testing.T) {
	w := tapWorldOf(t, ebpf.Config{Dir: bpffs(t), Plane: ebpf.Clients, Limits: fewFlows})
	w.second()
	shares := intent.VIPKey{VNI: onSwitch, Protocol: intent.TCP, Addr: vip4, Port: 81}
	w.d.VIPs().Delete(t.Context(), []intent.VIPKey{shares})
	if err := w.d.SweepFlows(); err != nil {
		t.Fatal(err)
	}
	backends := make([]netip.AddrPort, len(kindsOfFlows))
	client := func(i int) netip.AddrPort { return netip.AddrPortFrom(kindsOfFlows[i].client, clientPort) }
	for i, c := range kindsOfFlows {
		for _, flags := range []string{"S", "A"} {
			_, backends[i], _ = w.goes(t, w.asks(c.protocol, client(i), c.vip, flags))
		}
	}
	var keys []ebpf.FlowKey
	for i, c := range kindsOfFlows {
		keys = append(keys, ebpf.FlowKey{VNI: onSwitch, Protocol: c.protocol, Src: client(i), Dst: c.vip, Tap: intent.TapClientKey{IfIndex: w.tap}})
	}
	evicted(t, w.d, keys, func(round int) {
		for i := range 3000 {
			from := netip.AddrPortFrom(client4, uint16(10000+3000*round+i))
			for _, flags := range []string{"S", "A"} {
				w.goes(t, withVLAN(w.asks(intent.TCP, from, netip.AddrPortFrom(vip4, 80), flags), secondVLAN))
			}
		}
	})
	evictions(t, w.d, true, true, true)
	for i, c := range kindsOfFlows {
		w.inside(func() {
			res, err := w.tr.Trace(t.Context(), w.gets(c.protocol, besideBackend(backends[i]), client(i), "A"))
			if err != nil || res.Dropped() != drop.SessionEvicted {
				t.Errorf("%s: an answer of another backend (%v):\n%s", c.name, err, res)
			}
		})
		if from, to, _ := w.goes(t, w.gets(c.protocol, backends[i], client(i), "A")); from != c.vip || to != client(i) {
			t.Errorf("%s: the answer is from %s to %s; its client would reset the connection to %s", c.name, from, to, c.vip)
		}
		if _, to, _ := w.goes(t, w.asks(c.protocol, client(i), c.vip, "A")); to != backends[i] {
			t.Errorf("%s: it goes to %s, and went to %s", c.name, to, backends[i])
		}
	}
}
