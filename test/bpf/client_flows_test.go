package bpf_test

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// secondVLAN is another machine's, on the tap of tapWorld.
const secondVLAN = 5

// second adds a machine to the switch.
func (w *tapWorld) second() {
	w.t.Helper()
	k := intent.TapClientKey{IfIndex: w.tap, VLAN: secondVLAN}
	w.inside(func() {
		apply(w.t, w.d.VMs(), map[intent.TapClientKey]intent.TapClient{k: {Key: k, Scope: onSwitch}})
	})
}

// flow finds the flow of a machine; no VLAN is that of the first one.
func (w *tapWorld) flow(client, vip netip.AddrPort, vlan uint16) (ebpf.Flow, bool) {
	w.t.Helper()
	f, ok, err := w.d.Reader().Flow(ebpf.FlowKey{VNI: onSwitch, Protocol: intent.TCP, Src: client, Dst: vip, Tap: intent.TapClientKey{IfIndex: w.tap, VLAN: vlan}})
	if err != nil {
		w.t.Fatal(err)
	}
	return f, ok
}

// What a machine sends in another one's name changes nothing for the other one.
func TestClientForged(t *testing.T) {
	w := newTapWorld(t, ebpf.HookAuto)
	w.second()
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 80)}, {client6, netip.AddrPortFrom(vip6, 80)}} {
		client := netip.AddrPortFrom(c.client, clientPort)
		_, backend, _ := w.goes(t, w.asks(intent.TCP, client, c.vip, "S"))
		w.goes(t, w.asks(intent.TCP, client, c.vip, "A"))
		for _, flags := range []string{"S", "A", "R"} {
			w.goes(t, withVLAN(w.asks(intent.TCP, client, c.vip, flags), secondVLAN))
			w.goes(t, withVLAN(w.asks(intent.TCP, client, backend, flags), secondVLAN))
		}
		if f, ok := w.flow(client, c.vip, secondVLAN); !ok || !f.Ending {
			t.Errorf("the forged flow is %+v (%t)", f, ok)
		}
		if f, ok := w.flow(client, c.vip, 0); !ok || f.Ending || !f.Open || f.Becomes != backend {
			t.Errorf("the flow is %+v (%t)", f, ok)
		}
		if from, _, _ := w.goes(t, w.gets(intent.TCP, backend, client, "SA")); from != c.vip {
			t.Errorf("an answer is from %s", from)
		}
	}
}

// A connection to a backend itself has its answers, also from the port of one to a VIP that
// has ended, and the other way round.
func TestClientDirect(t *testing.T) {
	w := newTapWorld(t, ebpf.HookAuto)
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 80)}, {client6, netip.AddrPortFrom(vip6, 80)}} {
		client := netip.AddrPortFrom(c.client, clientPort)
		answer := func(backend netip.AddrPort, flags string, want netip.AddrPort) {
			t.Helper()
			if from, _, _ := w.goes(t, w.gets(intent.TCP, backend, client, flags)); from != want {
				t.Errorf("an answer is from %s, not from %s", from, want)
			}
		}
		for range 2 {
			_, backend, _ := w.goes(t, w.asks(intent.TCP, client, c.vip, "S"))
			// The backend has this connection: it answers no other one.
			w.untouched(t, w.asks(intent.TCP, client, backend, "S"))
			answer(backend, "SA", c.vip)
			w.goes(t, w.asks(intent.TCP, client, c.vip, "A"))
			w.untouched(t, w.asks(intent.TCP, client, backend, "S"))
			answer(backend, "A", c.vip)
			w.goes(t, w.asks(intent.TCP, client, c.vip, "F"))
			answer(backend, "F", c.vip)
			w.goes(t, w.asks(intent.TCP, client, c.vip, "A"))
			w.untouched(t, w.asks(intent.TCP, client, backend, "S"))
			answer(backend, "SA", backend)
			w.untouched(t, w.asks(intent.TCP, client, backend, "A"))
			answer(backend, "A", backend)
		}
	}
}

// A machine that begins too many flows takes the rows of no other one, and makes nothing
// uncertain for VIPs that it does not ask.
func TestClientFlood(t *testing.T) {
	dir := bpffs(t)
	w := tapWorldOf(t, ebpf.Config{Dir: dir, Plane: ebpf.Clients, Node: ebpf.Node{FlowRate: 4}})
	w.second()
	vip := netip.AddrPortFrom(vip4, 80)
	for i := range 200 {
		w.goes(t, w.asks(intent.TCP, netip.AddrPortFrom(client4, uint16(clientPort+i)), vip, "S"))
	}
	known := 0
	for i := range 200 {
		if _, ok := w.flow(netip.AddrPortFrom(client4, uint16(clientPort+i)), vip, 0); ok {
			known++
		}
	}
	if known == 0 || known > 100 {
		t.Errorf("%d of 200 flows are known", known)
	}
	// Its tokens are gone for all VIPs, those of others are not. Some come again meanwhile.
	known = 0
	for i := range 100 {
		client, other := netip.AddrPortFrom(client6, uint16(clientPort+i)), netip.AddrPortFrom(vip6, 80)
		w.goes(t, w.asks(intent.TCP, client, other, "S"))
		if _, ok := w.flow(client, other, 0); ok {
			known++
		}
	}
	if known > 50 {
		t.Errorf("%d of 100 flows to another VIP are known", known)
	}
	client, third := netip.AddrPortFrom(client4, 9000), netip.AddrPortFrom(vip4, 81)
	w.goes(t, withVLAN(w.asks(intent.TCP, client, third, "S"), secondVLAN))
	if _, ok := w.flow(client, third, secondVLAN); !ok {
		t.Error("a flow of another machine is not known")
	}
	// Answers of flows that are not known are told by their hash, for the VIP of the flood alone.
	of, untold := 0, 0
	for i := range 100 {
		client := netip.AddrPortFrom(client4, uint16(20000+i))
		if from, _, _ := w.goes(t, w.gets(intent.TCP, netip.AddrPortFrom(addr("10.10.0.1"), 8080), client, "A")); from == vip {
			of++
		}
		if from, _, _ := w.goes(t, w.gets(intent.UDP, netip.AddrPortFrom(addr("10.10.0.1"), 7000), client, "")); from.Addr() != vip4 {
			untold++
		}
	}
	if of == 0 || untold != 100 {
		t.Errorf("%d of 100 are answers of the VIP; %d of 100 are not of one that nobody asked", of, untold)
	}
}

// How full the maps of taps are is told by the tables that fill them.
func TestClientFills(t *testing.T) {
	w := newTapWorld(t, ebpf.HookAuto)
	used := map[string]int{}
	for _, f := range w.d.Fills() {
		used[f.Table+" "+f.Map] = f.Used
		if f.Max <= f.Used {
			t.Errorf("%+v", f)
		}
	}
	want := map[string]int{"clients clients": 1, "client-neighbors neighbors": 2 + 2*3, "client-vips vips": len(worldVIPs())}
	for what, n := range want {
		if used[what] != n {
			t.Errorf("%s: %d rows, want %d of %v", what, used[what], n, used)
		}
	}
	for _, name := range []string{"client-vips backends", "client-vips answers"} {
		if used[name] == 0 {
			t.Errorf("%s: no rows: %v", name, used)
		}
	}
}
