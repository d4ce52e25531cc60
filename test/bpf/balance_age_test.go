package bpf_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Offsets of ports in struct flow_key, and of the client's in struct session_key.
const (
	flowPorts   = 36
	sessionPort = 20
)

// Offsets in struct flow; seen is in struct session, too.
const (
	flowSeen = 4
	flowKind = 26
)

const flowToClient = 2 // enum flow_kind

// aged has some seconds go by for all flows that are known.
func aged(t *testing.T, dir string, s int32) {
	t.Helper()
	for _, name := range mapsOfFlows {
		m := raw(t, dir, name)
		for key, row := range rowsOf(t, m) {
			agedRow(t, m, key, row, s)
		}
	}
}

func agedRow(t *testing.T, m *kernel.Map, key string, row []byte, s int32) {
	t.Helper()
	seen := row[flowSeen : flowSeen+4]
	binary.NativeEndian.PutUint32(seen, binary.NativeEndian.Uint32(seen)-uint32(s))
	if err := m.Put([]byte(key), row); err != nil {
		t.Fatal(err)
	}
}

var mapsOfFlows = []string{"sessions_v1", "flows_v4"}

// rowsOfFlows is how many rows the maps of flows have.
func rowsOfFlows(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, name := range mapsOfFlows {
		n += len(rowsOf(t, raw(t, dir, name)))
	}
	return n
}

// aging is a flow to a VIP, whose backend gets no others after without.
type aging struct {
	t    *testing.T
	dir  string
	d    *ebpf.Dataplane
	tr   *ebpf.Tracer
	p    intent.Protocol
	at   netip.AddrPort // the VIP
	from netip.AddrPort
	to   netip.AddrPort // the backend
	// beside: the client's port has a session with another VIP, so that the flow has rows of its own.
	beside bool
}

// besides are VIPs of other backends, by protocol and family.
func besides() map[intent.VIPKey]intent.VIP {
	var all []intent.VIP
	for _, p := range []intent.Protocol{intent.TCP, intent.UDP, intent.SCTP} {
		all = append(all, vip(p, vip4, 4000, intent.Backend{Addr: addr("10.10.0.9"), Port: 4000, Weight: 1}),
			vip(p, vip6, 4000, intent.Backend{Addr: addr("fd00:10::9"), Port: 4000, Weight: 1}))
	}
	return vips(all...)
}

// flowsThatAge has each test begin a flow of each kind, in the map sessions and in the map flows.
func flowsThatAge(t *testing.T, tests map[string]func(t *testing.T, f *aging)) {
	dir := bpffs(t)
	d := balanced(t, dir)
	apply(t, d.VIPs(), besides())
	if err := d.SweepFlowFront(t.Context()); err != nil {
		t.Fatal(err)
	}
	allKnown(t, dir)
	tr := tracer(t, dir)
	port := uint16(clientPort)
	for name, test := range tests {
		for _, c := range kindsOfFlows[:5] {
			for what, beside := range map[string]bool{"": false, ", beside another": true} {
				t.Run(name+", "+c.name+what, func(t *testing.T) {
					apply(t, d.VIPs(), worldVIPs())
					port++
					f := &aging{t: t, dir: dir, d: d, tr: tr, p: c.protocol, at: c.vip, from: netip.AddrPortFrom(c.client, port), beside: beside}
					f.begin()
					f.answers("SA")
					f.goesOn()
					f.answers("A")
					test(t, f)
				})
			}
		}
	}
}

// begin sends the first packet.
func (f *aging) begin() {
	f.t.Helper()
	if f.beside {
		other := netip.AddrPortFrom(f.at.Addr(), 4000)
		send(f.t, f.tr, asked(f.p, f.from, other, "S"))
		send(f.t, f.tr, asked(f.p, f.from, other, "A"))
	}
	f.to = f.goes("S")
}

func (f *aging) goes(flags string) netip.AddrPort {
	f.t.Helper()
	_, to := send(f.t, f.tr, asked(f.p, f.from, f.at, flags))
	return to
}

// goesOn checks that the client's packets go where they went.
func (f *aging) goesOn() {
	f.t.Helper()
	if to := f.goes("A"); to != f.to {
		f.t.Errorf("the flow goes to %s, and went to %s", to, f.to)
	}
}

// answers checks that the backend's packets come from the VIP.
func (f *aging) answers(flags string) {
	f.t.Helper()
	if from, _ := send(f.t, f.tr, replied(f.p, f.to, f.from, flags)); from != f.at {
		f.t.Errorf("an answer is from %s, not from %s", from, f.at)
	}
}

// without takes the backend out of the VIP.
func (f *aging) without() {
	f.t.Helper()
	v := worldVIPs()[intent.VIPKey{VNI: red, Protocol: f.p, Addr: f.at.Addr(), Port: f.at.Port()}]
	var rest []intent.Backend
	for _, b := range v.Backends.All() {
		if b.Addr != f.to.Addr() {
			rest = append(rest, b)
		}
	}
	v.Backends = intent.NewBackendSet(rest...)
	apply(f.t, f.d.VIPs(), vips(v))
}

// idle is for how long, in s, a flow is known without a packet.
func (f *aging) idle() int32 {
	if f.p == intent.UDP {
		return 120
	}
	return 7440
}

func TestBalanceAges(t *testing.T) {
	flowsThatAge(t, map[string]func(t *testing.T, f *aging){
		"idle": flowIsKnown, "quiet server": flowWithQuietServer, "reset": flowIsReset, "lost answers": answersAreLost, "its port again": portAgain, "after a reset": portAgainAfterReset,
		"swept": flowIsSwept, "becomes the session": flowBecomesTheSession,
	})
}

// A flow is known for as long as one of its sides sends, in both directions, and then for as
// long as is documented (RFC 4787 REQ-5 and REQ-6, RFC 5382 REQ-5).
func flowIsKnown(t *testing.T, f *aging) {
	f.without()
	aged(t, f.dir, -1) // another processor was in the next second already
	f.goesOn()
	f.answers("A")
	for range 3 {
		aged(t, f.dir, f.idle()-20)
		f.goesOn()
	}
	f.answers("A") // the client alone has sent
	for range 3 {
		aged(t, f.dir, f.idle()-20)
		f.answers("A")
	}
	f.goesOn() // the backend alone has sent
	aged(t, f.dir, f.idle()+20)
	if to := f.goes("A"); to == f.to {
		t.Errorf("an idle flow still goes to %s", to)
	}
}

// The rows of a flow go when it is not known any more; those of a connection before, when both
// of its sides have ended it, and not when one has.
func flowIsSwept(t *testing.T, f *aging) {
	rows, m, ports := 1, raw(t, f.dir, "sessions_v1"), []int{sessionPort}
	if f.beside {
		rows, m, ports = 2, raw(t, f.dir, "flows_v4"), []int{flowPorts, flowPorts + 2}
	}
	swept := func(after int32) (left int) {
		t.Helper()
		aged(t, f.dir, after)
		if err := f.d.SweepFlows(); err != nil {
			t.Fatal(err)
		}
		for key := range rowsOf(t, m) {
			for _, at := range ports {
				if binary.BigEndian.Uint16([]byte(key)[at:]) == f.from.Port() {
					left++
				}
			}
		}
		return left
	}
	if n := swept(100); n != rows {
		t.Errorf("%d rows of a flow that goes on are left", n)
	}
	if f.p == intent.TCP {
		f.goes("F")
		if n := swept(100); n != rows {
			t.Errorf("%d rows of a connection that one side has ended are left", n)
		}
		f.answers("F")
		f.goesOn()
		if n := swept(50); n != rows {
			t.Errorf("%d rows of a connection that has just ended are left", n)
		}
		if n := swept(50); n != 0 {
			t.Errorf("%d rows of a connection that has ended are left", n)
		}
		return
	}
	if n := swept(f.idle()); n != 0 {
		t.Errorf("%d rows of a flow that is not known any more are left", n)
	}
	fills := f.d.Fills()
	name := map[bool]string{true: "flows", false: "sessions"}[f.beside]
	if i := slices.IndexFunc(fills, func(one ebpf.Fill) bool { return one.Map == name }); i < 0 || fills[i].Used != len(rowsOf(t, m)) {
		t.Errorf("%+v, with %d rows", fills, len(rowsOf(t, m)))
	}
}

// A connection that was reset is known for a shorter time.
func flowIsReset(t *testing.T, f *aging) {
	if f.p == intent.UDP {
		return
	}
	f.answers("R")
	f.without()
	aged(t, f.dir, 200)
	f.goesOn()
	aged(t, f.dir, 300)
	if to := f.goes("A"); to == f.to {
		t.Errorf("a connection that was reset still goes to %s", to)
	}
}

// The row of answers that has made room for other flows comes back with the client's packets.
func answersAreLost(t *testing.T, f *aging) {
	if !f.beside {
		return // both directions have one row
	}
	m := raw(t, f.dir, "flows_v4")
	for key, row := range rowsOf(t, m) {
		if row[flowKind] == flowToClient {
			if err := m.Delete([]byte(key)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if from, _ := send(t, f.tr, replied(f.p, f.to, f.from, "A")); from == f.at {
		t.Fatal("the row of answers is there")
	}
	aged(t, f.dir, 1)
	f.goesOn()
	f.answers("A")
}

// A connection from the port of one that is known goes where that went, unless the backend
// gets no new flows any more: it may have died without a word.
func portAgain(t *testing.T, f *aging) {
	if f.p == intent.UDP {
		return
	}
	aged(t, f.dir, 2)
	if to := f.goes("S"); to != f.to {
		t.Errorf("it goes to %s, and the last one went to %s", to, f.to)
	}
	copied := time.Now()
	f.without()
	aged(t, f.dir, -1-int32(time.Since(copied)/time.Second)) // that may have taken seconds, which are not to count
	if to := f.goes("S"); to != f.to {
		t.Errorf("a late copy of a connection's first packet goes to %s, the others to %s", to, f.to)
	}
	f.goesOn()
	aged(t, f.dir, 2)
	to := f.goes("S")
	if to == f.to {
		t.Fatalf("it goes to %s, which gets no new flows", to)
	}
	f.to = to
	f.answers("SA")
}

// One that the backend has reset is known to be over.
func portAgainAfterReset(t *testing.T, f *aging) {
	if f.p == intent.UDP {
		return
	}
	f.answers("R")
	f.without()
	if to := f.goes("S"); to == f.to {
		t.Errorf("after a reset it goes to %s, which gets no new flows", to)
	}
}

// A flood on VIPs whose backends have more VIPs than answers can be told of gets no answer
// that clients would take for another one's.
func TestBalanceFloodOfCrowd(t *testing.T) {
	crowd := worldVIPs()
	for i := range uint16(6) {
		for _, v := range []intent.VIP{
			vip(intent.TCP, vip4, 8000+i, backendsOf("10.10.0.%d", 3, 8080)...), vip(intent.TCP, vip6, 8000+i, backendsOf("fd00:10::%d", 3, 8080)...),
		} {
			crowd[v.Key] = v
		}
	}
	d, tr := slow(t, crowd)
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 8000)}, {client6, netip.AddrPortFrom(vip6, 8000)}} {
		dropped := 0
		before := dropsOf(t, d, drop.VIPFlood)
		for i := range 100 {
			client := netip.AddrPortFrom(c.client, uint16(clientPort+i))
			went, out, _, err := tr.Run(asked(intent.TCP, client, c.vip, "S"), 1)
			if err != nil {
				t.Fatal(err)
			}
			if !went {
				dropped++
				continue
			}
			_, backend := ends(t, decode(out))
			if from, _ := send(t, tr, replied(intent.TCP, backend, client, "SA")); from != c.vip {
				t.Fatalf("flow %d is answered from %s", i, from)
			}
		}
		if n := dropsOf(t, d, drop.VIPFlood) - before; dropped < 50 || n != uint64(dropped) {
			t.Errorf("%d of 100 were dropped, %d are counted", dropped, n)
		}
	}
}

func dropsOf(t *testing.T, d *ebpf.Dataplane, r drop.Reason) uint64 {
	t.Helper()
	counts, err := d.Reader().Drops()
	if err != nil {
		t.Fatal(err)
	}
	return counts[r]
}

// Where a gateway port goes or comes there may be flows that begin elsewhere, and come with it, though
// no route changes; where there is no VIP there are none.
func TestBalanceMoved(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	d.VIPs().Delete(t.Context(), []intent.VIPKey{{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 81}}) // it shares the backends
	tr := tracer(t, dir)
	for _, c := range []struct{ client, vip netip.Addr }{{client4, vip4}, {client6, vip6}} {
		client, at := netip.AddrPortFrom(c.client, clientPort), netip.AddrPortFrom(c.vip, 80)
		choice, _, err := ebpf.Choose(worldVIPs()[intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: c.vip, Port: 80}], client, at)
		if err != nil {
			t.Fatal(err)
		}
		backend := netip.AddrPortFrom(choice.Backend.Addr, choice.Backend.Port)
		answer := func() netip.AddrPort {
			from, _ := send(t, tr, replied(intent.TCP, backend, client, "A"))
			return from
		}
		allKnown(t, dir)
		if from := answer(); from != backend {
			t.Errorf("when all is known, the packet of %s is from %s", backend, from)
		}
		d.VRFs().Moved(map[intent.VNI]bool{red: true, blue: true})
		if from := answer(); from != at {
			t.Errorf("after the port has gone and is back, the answer of %s is from %s", at, from)
		}
	}
	m := raw(t, dir, "vrf_front_v2")
	if row, err := m.LookupBytes(uint32(blue) % m.MaxEntries()); err != nil || binary.NativeEndian.Uint32(row[28:]) != 0 {
		t.Errorf("of a VRF without VIPs the row is %x (%v)", row, err)
	}
}

// Of a VRF that shares its row of vrf_front with another one, which has it, it is known all
// the same that there may be flows which this node does not know.
func TestBalanceClaimOfSharedRow(t *testing.T) {
	const mate = red + 16384
	dir := bpffs(t)
	d := balanced(t, dir)
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{mate: {VNI: mate, Index: 9}})
	unknown := func(holder intent.VNI) uint32 {
		t.Helper()
		row, err := raw(t, dir, "vrf_front_v2").LookupBytes(uint32(red) % 16384)
		if err != nil || binary.NativeEndian.Uint32(row) != uint32(holder) {
			t.Fatalf("the row is %x (%v), not of %s", row, err, holder)
		}
		return binary.NativeEndian.Uint32(row[28:])
	}
	claimed := unknown(mate)
	if claimed < 2 {
		t.Errorf("flows of %s may be unknown until %d", red, claimed)
	}
	tr := tracer(t, dir)
	// By the table, as at any node: nothing of the flow is known here.
	v := worldVIPs()[intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip6, Port: 80}]
	client, at := netip.AddrPortFrom(client6, clientPort), netip.AddrPortFrom(vip6, 80)
	choice, _, err := ebpf.Choose(v, client, at)
	if err != nil {
		t.Fatal(err)
	}
	if from, _ := send(t, tr, replied(intent.TCP, netip.AddrPortFrom(choice.Backend.Addr, choice.Backend.Port), client, "A")); from != at {
		t.Errorf("the answer of a flow that is not known is from %s, not from %s", from, at)
	}
	d.Close()
	d = load(t, ebpf.Config{Dir: dir, Node: node()})
	if now := unknown(mate); now != claimed {
		t.Errorf("after a start flows may be unknown until %d, not %d", now, claimed)
	}
	for _, err := range d.VRFs().Delete(t.Context(), []intent.VNI{mate}) {
		t.Error(err)
	}
	if now := unknown(red); now != claimed {
		t.Errorf("when the other VRF has gone flows may be unknown until %d, not %d", now, claimed)
	}
}

// What a backend begins while there may be flows that this node does not know goes on as it
// is; and what was taken for an answer of a VIP, by chance, once the client itself has spoken.
func TestBalanceOwnOfBackends(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	all := worldVIPs()
	delete(all, intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 81}) // an answer that may be of two cannot be told
	apply(t, d.VIPs(), all)
	apply(t, d.Routes(), balancedRoutes())
	tr := tracer(t, dir)
	for _, c := range kindsOfFlows[:5] {
		t.Run(c.name, func(t *testing.T) {
			v := all[intent.VIPKey{VNI: red, Protocol: c.protocol, Addr: c.vip.Addr(), Port: c.vip.Port()}]
			own := v.Backends.All()[0]
			at := netip.AddrPortFrom(own.Addr, own.Port)
			for port := uint16(1); ; port++ {
				client := netip.AddrPortFrom(c.client, port)
				choice, _, err := ebpf.Choose(v, client, c.vip)
				if err != nil {
					t.Fatal(err)
				}
				if choice.Backend.Addr != own.Addr {
					if c.protocol == intent.UDP {
						continue
					}
					if from, _ := send(t, tr, replied(c.protocol, at, client, "S")); from != at {
						t.Fatalf("a connection of the backend's own begins at %s", from)
					}
					continue
				}
				if from, _ := send(t, tr, replied(c.protocol, at, client, "A")); from != c.vip {
					t.Fatalf("what looks like an answer is from %s", from)
				}
				send(t, tr, asked(c.protocol, client, at, "A"))
				if from, _ := send(t, tr, replied(c.protocol, at, client, "A")); from != at {
					t.Errorf("after the client has spoken to it the backend's packets are from %s", from)
				}
				return
			}
		})
	}
}
