package bpf_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// pairedFlows are flows of clients whose ports have a session with another VIP.
type pairedFlows struct {
	t    *testing.T
	dir  string
	tr   *ebpf.Tracer
	next uint16
	all  []pairedFlow
}

type pairedFlow struct {
	p                       intent.Protocol
	client, vip, backend    netip.AddrPort
	besideOf, besideBackend netip.AddrPort
}

// begin begins one of each kind.
func (f *pairedFlows) begin() {
	f.t.Helper()
	for _, c := range kindsOfFlows[:5] {
		f.next++
		one := pairedFlow{p: c.protocol, client: netip.AddrPortFrom(c.client, 1000+f.next), vip: c.vip, besideOf: netip.AddrPortFrom(c.vip.Addr(), 4000)}
		for _, flags := range []string{"S", "A"} {
			_, one.besideBackend = send(f.t, f.tr, asked(one.p, one.client, one.besideOf, flags))
		}
		for _, flags := range []string{"S", "A"} {
			_, one.backend = send(f.t, f.tr, asked(one.p, one.client, one.vip, flags))
		}
		f.all = append(f.all, one)
	}
}

// goOn checks that all flows are known in both directions, though the VIPs lead elsewhere.
func (f *pairedFlows) goOn() {
	f.t.Helper()
	for _, one := range f.all {
		for vip, backend := range map[netip.AddrPort]netip.AddrPort{one.vip: one.backend, one.besideOf: one.besideBackend} {
			if _, to := send(f.t, f.tr, asked(one.p, one.client, vip, "A")); to != backend {
				f.t.Errorf("%s %s > %s goes to %s, and went to %s", one.p, one.client, vip, to, backend)
			}
			if from, _ := send(f.t, f.tr, replied(one.p, backend, one.client, "A")); from != vip {
				f.t.Errorf("%s: %s is answered from %s, not from %s", one.p, one.client, from, vip)
			}
		}
	}
}

// newPairedFlows has VIPs of which all of the flows that begin know; later ones lead elsewhere.
func newPairedFlows(t *testing.T) (*pairedFlows, *ebpf.Dataplane) {
	dir := bpffs(t)
	d := balanced(t, dir)
	apply(t, d.VIPs(), besides())
	allKnown(t, dir)
	return &pairedFlows{t: t, dir: dir, tr: tracer(t, dir)}, d
}

// elsewhere has the table of each VIP lead all new flows to a backend that had none.
func elsewhere(t *testing.T, d *ebpf.Dataplane) {
	t.Helper()
	for _, c := range kindsOfFlows[:5] {
		a := addr("10.10.0.99")
		if c.vip.Addr().Is6() {
			a = addr("fd00:10::99")
		}
		apply(t, d.VIPs(), vips(vip(c.protocol, c.vip.Addr(), c.vip.Port(), intent.Backend{Addr: a, Port: 9, Weight: 1})))
	}
}

// bitsOfFlows counts the bits of flow_front, and tells its state.
func bitsOfFlows(t *testing.T, dir string) (n int, state byte) {
	t.Helper()
	rows := rowsOf(t, raw(t, dir, "flow_front_v1"))
	last := string([]byte{0x00, 0x40, 0, 0}) // 2 * (1 << 19) / 64
	for key, row := range rows {
		if key == last {
			state = row[0]
			continue
		}
		for _, b := range row {
			for ; b != 0; b &= b - 1 {
				n++
			}
		}
	}
	return n, state
}

// Flows beside the session of their client's port are found by the bits of flow_front, through
// sweeps, one that did not come to its end, and a start.
func TestFlowFront(t *testing.T) {
	f, d := newPairedFlows(t)
	f.begin()
	f.goOn()
	sweep := func(state byte) {
		t.Helper()
		if err := d.SweepFlowFront(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, is := bitsOfFlows(t, f.dir); n != len(f.all) || is != state {
			t.Errorf("%d bits of %d clients' ports, state %d, not %d", n, len(f.all), is, state)
		}
		f.goOn()
	}
	sweep(3)
	f.begin()
	elsewhere(t, d)
	f.goOn()
	sweep(2)
	// One that ends early has begun with the second generation: the first one has all bits alone.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.SweepFlowFront(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a sweep that is to end: %v", err)
	}
	if n, state := bitsOfFlows(t, f.dir); n != len(f.all) || state != 3 {
		t.Errorf("%d bits of %d clients' ports, state %d, after a sweep that has ended early", n, len(f.all), state)
	}
	f.goOn()
	f.begin()
	sweep(2)
	f.tr.Close()
	d.Close()
	d = load(t, ebpf.Config{Dir: f.dir, Node: node()})
	f.tr = tracer(t, f.dir)
	f.goOn()
	sweep(3)
	aged(t, f.dir, 8000)
	if err := errors.Join(d.SweepFlows(), d.SweepFlowFront(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n, _ := bitsOfFlows(t, f.dir); n != 0 || rowsOfFlows(t, f.dir) != 0 {
		t.Errorf("%d bits are left of flows of the past, and %d rows", n, rowsOfFlows(t, f.dir))
	}
}

// A sweep while programs run that use a map of another size loses no bit of a row that is copied later.
func TestFlowFrontWaitsForReplace(t *testing.T) {
	f, d := newPairedFlows(t)
	if err := d.SweepFlowFront(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.tr.Close()
	d.Close()
	d = opened(t, ebpf.Config{Dir: f.dir, Node: node(), Limits: ebpf.Limits{Flows: 1 << 18}})
	if d.Replaced() {
		t.Fatal("maps of another size are in use at once")
	}
	f.tr = tracer(t, f.dir)
	f.begin()
	if err := d.SweepFlowFront(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.tr.Close()
	if err := d.Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	elsewhere(t, d)
	f.tr = tracer(t, f.dir)
	f.goOn()
}

// A map of flows that gets smaller keeps its size while it has more rows than that.
func TestLimitOfFlowsShrinks(t *testing.T) {
	f, d := newPairedFlows(t)
	for range 10 {
		f.begin()
	}
	f.tr.Close()
	d.Close()
	d = load(t, ebpf.Config{Dir: f.dir, Node: node(), Limits: ebpf.Limits{Flows: 64}})
	elsewhere(t, d)
	f.tr = tracer(t, f.dir)
	f.goOn()
	for _, name := range mapsOfFlows {
		if n := raw(t, f.dir, name).MaxEntries(); n != 65536 {
			t.Errorf("%s has room for %d rows", name, n)
		}
	}
}

// A connection to a VIP that was eBPF's and is OVN's by now is OVN's from its first packet on, where
// the last one from the same port was eBPF's.
func TestSessionThenOVN(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	allKnown(t, dir)
	tr := tracer(t, dir)
	for _, c := range kindsOfFlows[:2] {
		client := netip.AddrPortFrom(c.client, clientPort)
		var backend netip.AddrPort
		for _, flags := range []string{"S", "A", "F"} {
			_, backend = send(t, tr, asked(c.protocol, client, c.vip, flags))
		}
		send(t, tr, replied(c.protocol, backend, client, "F"))
		v := worldVIPs()[intent.VIPKey{VNI: red, Protocol: c.protocol, Addr: c.vip.Addr(), Port: c.vip.Port()}]
		apply(t, d.VIPs(), vips(v.ByOVN()))
		for _, flags := range []string{"S", "A"} {
			if _, to := send(t, tr, asked(c.protocol, client, c.vip, flags)); to != c.vip {
				t.Errorf("%s of a connection of OVN's goes to %s", flags, to)
			}
		}
	}
}

// A flow that had rows beside another session, and whose connection begins anew as the session of
// its client's port, goes one way from then on.
func flowBecomesTheSession(t *testing.T, f *aging) {
	if f.p == intent.UDP {
		return
	}
	if f.beside {
		other := netip.AddrPortFrom(f.at.Addr(), 4000)
		_, to := send(t, f.tr, asked(f.p, f.from, other, "R"))
		send(t, f.tr, replied(f.p, to, f.from, "R"))
		aged(t, f.dir, 61)
	}
	f.without()
	aged(t, f.dir, 2)
	f.to = f.goes("S")
	f.goesOn()
	f.answers("SA")
	apply(t, f.d.VIPs(), worldVIPs())
	f.goes("R")
	f.to = f.goes("S")
	f.goesOn()
	f.answers("SA")
	if n, err := f.d.Reader().Flows(100, func(one ebpf.Flow) bool { return one.Key.Src == f.from && one.Key.Dst == f.at }); err != nil || len(n) != 1 {
		t.Errorf("%+v of one flow (%v)", n, err)
	}
}

// Of two VIPs whose one backend cannot tell a client's flows apart both are known: the later one
// has the answers.
func TestSessionOfOneBackend(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	apply(t, d.VIPs(), besides())
	one := map[intent.VIPKey]intent.VIP{}
	for _, port := range []uint16{5000, 5001} {
		for _, v := range []intent.VIP{
			vip(intent.UDP, vip4, port, intent.Backend{Addr: addr("10.10.0.9"), Port: 7053, Weight: 1}),
			vip(intent.UDP, vip6, port, intent.Backend{Addr: addr("fd00:10::9"), Port: 7053, Weight: 1}),
		} {
			one[v.Key] = v
		}
	}
	apply(t, d.VIPs(), one)
	tr := tracer(t, dir)
	for _, ends := range [][2]netip.Addr{{client4, vip4}, {client6, vip6}} {
		client := netip.AddrPortFrom(ends[0], clientPort)
		first, later := netip.AddrPortFrom(ends[1], 5000), netip.AddrPortFrom(ends[1], 5001)
		var backend netip.AddrPort
		for range 3 {
			send(t, tr, asked(intent.UDP, client, first, ""))
			_, backend = send(t, tr, asked(intent.UDP, client, later, ""))
			if from, _ := send(t, tr, replied(intent.UDP, backend, client, "")); from != later {
				t.Errorf("an answer is from %s, not from %s", from, later)
			}
		}
		known, err := d.Reader().Flows(100, func(f ebpf.Flow) bool { return f.ToVIP && f.Key.Src == client })
		if err != nil || len(known) != 2 {
			t.Errorf("%+v of two flows (%v)", known, err)
		}
	}
	stats, _ := d.VIPs().Stats()
	for k := range one {
		if n := stats[k].Flows; n != 1 {
			t.Errorf("%d flows to %s began", n, k)
		}
	}
}

// A client that connects to a backend from the port of a connection to a VIP, which that backend
// has ended and the client has not, has both: the answers are those of its own connection.
func TestSessionThenDirect(t *testing.T) {
	dir := bpffs(t)
	balanced(t, dir)
	allKnown(t, dir)
	tr := tracer(t, dir)
	for _, c := range kindsOfFlows[:2] {
		client := netip.AddrPortFrom(c.client, clientPort)
		var backend netip.AddrPort
		for _, flags := range []string{"S", "A"} {
			_, backend = send(t, tr, asked(c.protocol, client, c.vip, flags))
		}
		send(t, tr, replied(c.protocol, backend, client, "F"))
		send(t, tr, asked(c.protocol, client, backend, "S"))
		for _, flags := range []string{"A", "F"} {
			if _, to := send(t, tr, asked(c.protocol, client, c.vip, flags)); to != backend {
				t.Errorf("%s of the connection to %s goes to %s, and went to %s", flags, c.vip, to, backend)
			}
			if from, _ := send(t, tr, replied(c.protocol, backend, client, "A")); from != backend {
				t.Errorf("after %s of the other one an answer of %s is from %s", flags, backend, from)
			}
		}
	}
}

// What looks like a new connection, from the port of one beside a session whose backend gets no
// new flows, and is too much to be recorded, leaves that one where it went.
func TestFloodLeavesFlows(t *testing.T) {
	dir := bpffs(t)
	d, tr := slowIn(t, dir, worldVIPs())
	apply(t, d.VIPs(), besides())
	for _, c := range kindsOfFlows[:2] {
		client, other := netip.AddrPortFrom(c.client, clientPort), netip.AddrPortFrom(c.vip.Addr(), 4000)
		var backend netip.AddrPort
		for _, vip := range []netip.AddrPort{other, c.vip} {
			for _, flags := range []string{"S", "A"} {
				_, backend = send(t, tr, asked(c.protocol, client, vip, flags))
			}
		}
		elsewhere(t, d)
		aged(t, dir, 2)
		for i := range uint16(50) {
			send(t, tr, asked(c.protocol, netip.AddrPortFrom(c.client, 2000+i), c.vip, "S"))
		}
		send(t, tr, asked(c.protocol, client, c.vip, "S"))
		if _, to := send(t, tr, asked(c.protocol, client, c.vip, "A")); to != backend {
			t.Errorf("the connection of %s to %s goes to %s, and went to %s", client, c.vip, to, backend)
		}
	}
}
