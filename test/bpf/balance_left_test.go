package bpf_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// flowWithQuietServer is known in both directions as long as any open one is, though the
// server has sent nothing since the connection began.
func flowWithQuietServer(t *testing.T, f *aging) {
	if f.p == intent.UDP {
		return
	}
	f.from = netip.AddrPortFrom(f.from.Addr(), f.from.Port()+20000)
	f.begin()
	f.answers("SA")
	f.goesOn()
	aged(t, f.dir, 300)
	f.answers("A")
}

// leavings are of one family.
type leavings struct {
	backends string
	client   netip.Addr
	at       netip.AddrPort
}

var leavingsOf = map[string]leavings{
	"4": {"10.10.0.%d", client4, netip.AddrPortFrom(vip4, 90)},
	"6": {"fd00:10::%d", client6, netip.AddrPortFrom(vip6, 90)},
}

// open opens connections, and tells where each one goes, by its port.
func (l leavings) open(t *testing.T, tr *ebpf.Tracer) map[uint16]netip.AddrPort {
	t.Helper()
	to := map[uint16]netip.AddrPort{}
	for port := uint16(2000); port < 2020; port++ {
		to[port] = l.flow(t, tr, port, "S")
		l.flow(t, tr, port, "A")
	}
	return to
}

// goOn has connections go on where they went.
func (l leavings) goOn(t *testing.T, tr *ebpf.Tracer, to map[uint16]netip.AddrPort) {
	t.Helper()
	for port, was := range to {
		if now := l.flow(t, tr, port, "A"); now != was {
			t.Errorf("the flow from port %d went to %s, and goes to %s", port, was, now)
		}
	}
}

// flow is a client's by its port.
func (l leavings) flow(t *testing.T, tr *ebpf.Tracer, port uint16, flags string) netip.AddrPort {
	t.Helper()
	_, to := send(t, tr, asked(intent.TCP, netip.AddrPortFrom(l.client, port), l.at, flags))
	return to
}

func (l leavings) vip(backends ...intent.Backend) intent.VIP {
	return vip(intent.TCP, l.at.Addr(), l.at.Port(), backends...)
}

// A connection that begins where another one to a backend that has gone is known goes to one
// that is there, also when the row of the one that has gone is another's by now.
func TestBalanceRowUsedAgain(t *testing.T) {
	for name, l := range leavingsOf {
		t.Run(name, func(t *testing.T) {
			dir := bpffs(t)
			d := balanced(t, dir)
			all := backendsOf(l.backends, 4, 8080)
			apply(t, d.VIPs(), vips(l.vip(append([]intent.Backend{{Addr: all[2].Addr, Port: 9999, Weight: 1}}, all[:2]...)...)))
			tr := tracer(t, dir)
			gone := map[uint16]bool{}
			for port := uint16(2000); port < 2030; port++ {
				gone[port] = l.flow(t, tr, port, "S").Port() == 9999
				l.flow(t, tr, port, "A")
			}
			apply(t, d.VIPs(), vips(l.vip(all[:2]...)))
			tr.Close()
			d.Close()
			// What a start finds unused may be used at once.
			d = load(t, ebpf.Config{Dir: dir, Node: node()})
			apply(t, d.VIPs(), vips(l.vip(all[0], all[1], intent.Backend{Addr: all[3].Addr, Port: 7777, Weight: 1})))
			tr = tracer(t, dir)
			aged(t, dir, 2)
			n := 0
			for port, was := range gone {
				if !was {
					continue
				}
				n++
				if to := l.flow(t, tr, port, "S"); to.Port() == 9999 {
					t.Errorf("from port %d a connection begins at %s, which has gone", port, to)
				}
			}
			if n == 0 {
				t.Error("no flow went to the backend that has gone: this run shows nothing")
			}
		})
	}
}

// Flows that have lost their rows go where they went when OVN takes a VIP over whose table
// leads clients by their addresses.
func TestBalanceFlipByAddress(t *testing.T) {
	for name, l := range leavingsOf {
		t.Run(name, func(t *testing.T) {
			dir := bpffs(t)
			d := balanced(t, dir)
			v := l.vip(backendsOf(l.backends, 3, 8080)...)
			v.ByAddress, v.Affinity = true, 300
			apply(t, d.VIPs(), vips(v))
			allKnown(t, dir)
			tr := tracer(t, dir)
			to := l.open(t, tr)
			ovn := intent.VIP{Key: v.Key, OVN: true}
			apply(t, d.VIPs(), vips(ovn))
			for _, name := range append(mapsOfFlows, "affinity_v3") {
				m := raw(t, dir, name)
				for key := range rowsOf(t, m) {
					if err := m.Delete([]byte(key)); err != nil {
						t.Fatal(err)
					}
				}
			}
			l.goOn(t, tr, to)
			got, err := d.VIPs().List(t.Context())
			if err != nil || got[v.Key] != ovn {
				t.Errorf("%+v (%v)", got[v.Key], err)
			}
		})
	}
}

// With Flush flows end, too, when the last backend is taken out, which makes the VIP OVN's;
// and at a start, if the process before had written the VIP and not come to the flows.
func TestBalanceFlushOfAll(t *testing.T) {
	for name, l := range leavingsOf {
		t.Run(name, func(t *testing.T) {
			dir := bpffs(t)
			d := balanced(t, dir)
			v := l.vip(backendsOf(l.backends, 2, 8080)...)
			v.Flush = true
			flows := func(d *ebpf.Dataplane) int {
				t.Helper()
				found, err := d.Reader().Flows(1000, func(f ebpf.Flow) bool { return f.Key.Dst == l.at || f.Key.Src.Port() == 8080 })
				if err != nil {
					t.Fatal(err)
				}
				return len(found)
			}
			begin := func() {
				t.Helper()
				tr := tracer(t, dir)
				for port := uint16(2000); port < 2020; port++ {
					l.flow(t, tr, port, "S")
				}
				tr.Close()
				if n := flows(d); n != 40 {
					t.Fatalf("%d directions of 20 flows", n)
				}
			}
			apply(t, d.VIPs(), vips(v))
			begin()
			left := map[string][]byte{}
			for key, row := range rowsOf(t, raw(t, dir, "sessions_v1")) {
				left[key] = row
			}
			ovn := v
			ovn.Backends = intent.NewBackendSet()
			apply(t, d.VIPs(), vips(ovn.ByOVN()))
			if n := flows(d); n != 0 {
				t.Errorf("without a backend %d rows are left", n)
			}
			tr := tracer(t, dir)
			if to := l.flow(t, tr, 2000, "A"); to != l.at {
				t.Errorf("without a backend a flow from before goes to %s", to)
			}
			tr.Close()
			// The process is killed before the flows are ended.
			v.Backends = intent.NewBackendSet(backendsOf(l.backends, 1, 8080)...)
			apply(t, d.VIPs(), vips(v))
			m := raw(t, dir, "sessions_v1")
			for key, row := range left {
				if err := m.Put([]byte(key), row); err != nil {
					t.Fatal(err)
				}
			}
			d.Close()
			d = load(t, ebpf.Config{Dir: dir, Node: node()})
			stays := backendsOf(l.backends, 1, 8080)[0].Addr
			found, err := d.Reader().Flows(1000, func(f ebpf.Flow) bool { return f.ToVIP && f.Key.Dst == l.at })
			if err != nil || len(found) == 0 {
				t.Fatalf("%d flows are left: %v", len(found), err)
			}
			for _, f := range found {
				if f.Becomes.Addr() != stays {
					t.Errorf("a flow to %s is left", f.Becomes)
				}
			}
			// It was to remove the VIP: it has taken its table, and is killed then.
			apply(t, d.VIPs(), vips(ovn.ByOVN()))
			for key, row := range left {
				if err := m.Put([]byte(key), row); err != nil {
					t.Fatal(err)
				}
			}
			d.Close()
			d = load(t, ebpf.Config{Dir: dir, Node: node()})
			if n := flows(d); n != 0 {
				t.Errorf("of a VIP that was to be removed %d rows are left", n)
			}
		})
	}
}

// With Flush what eBPF has balanced before OVN took the VIP over goes on, and ends with the VIP.
func TestBalanceFlushAfterFlip(t *testing.T) {
	for name, l := range leavingsOf {
		t.Run(name, func(t *testing.T) {
			dir := bpffs(t)
			d := balanced(t, dir)
			v := l.vip(backendsOf(l.backends, 2, 8080)...)
			v.Flush = true
			apply(t, d.VIPs(), vips(v))
			tr := tracer(t, dir)
			to := l.open(t, tr)
			ovn := v.ByOVN()
			apply(t, d.VIPs(), vips(ovn))
			l.goOn(t, tr, to)
			// Over a start, too, and one that finds the VIP's table to be another's.
			lose := func() {
				m := raw(t, dir, "vips_v2")
				for key, row := range rowsOf(t, m) {
					lost := []byte(row)
					binary.NativeEndian.PutUint32(lost, 1<<20)
					if err := m.Put([]byte(key), lost); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, before := range []func(){func() {}, lose} {
				tr.Close()
				d.Close()
				before()
				d = load(t, ebpf.Config{Dir: dir, Node: node()})
				apply(t, d.VIPs(), vips(ovn))
				tr = tracer(t, dir)
				l.goOn(t, tr, to)
			}
			apply(t, d.VIPs(), vips(v))
			apply(t, d.VIPs(), vips(ovn))
			if got, err := d.VIPs().List(t.Context()); err != nil || got[v.Key] != ovn {
				t.Errorf("%+v (%v)", got[v.Key], err)
			}
			if gone := d.VIPs().Delete(t.Context(), []intent.VIPKey{v.Key}); gone != nil {
				t.Fatal(gone)
			}
			for port := range to {
				if now := l.flow(t, tr, port, "A"); now != l.at {
					t.Errorf("without the VIP the flow from port %d goes to %s", port, now)
				}
			}
		})
	}
}
