package bpf_test

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A VIP that goes from eBPF to OVN, or back, takes its new flows along alone: flows that are
// known go on where they were, and a packet that is of none, and opens none, is one from
// before. A restart changes nothing of that.
func TestBalanceFlip(t *testing.T) {
	for _, c := range []struct {
		name, backends string
		client         netip.Addr
		vip            netip.AddrPort
		udp            netip.AddrPort
	}{
		{"4", "10.10.0.%d", client4, netip.AddrPortFrom(vip4, 8000), netip.AddrPortFrom(vip4, 8001)},
		{"6", "fd00:10::%d", client6, netip.AddrPortFrom(vip6, 8000), netip.AddrPortFrom(vip6, 8001)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := bpffs(t)
			// Load balancing is switched on while the VRF is there.
			d := world(t, dir, node())
			apply(t, d.Routes(), balancedRoutes())
			d.Close()
			d = load(t, ebpf.Config{Dir: dir, Node: node()})
			tr := tracer(t, dir)
			ours := vip(intent.TCP, c.vip.Addr(), c.vip.Port(), backendsOf(c.backends, 3, 8080)...)
			udp := vip(intent.UDP, c.udp.Addr(), c.udp.Port(), backendsOf(c.backends, 3, 8080)...)
			put := func(ovn bool) {
				t.Helper()
				want := vips()
				for _, v := range []intent.VIP{ours, udp} {
					if ovn {
						v = intent.VIP{Key: v.Key, OVN: true}
					}
					apply(t, d.VIPs(), vips(v))
					want[v.Key] = v
				}
				if c.client.Is4() { // a start takes seconds
					tr.Close()
					d.Close()
					d = load(t, ebpf.Config{Dir: dir, Node: node()})
					tr = tracer(t, dir)
				}
				wantList(t, d.VIPs(), want)
			}
			goes := func(i int, flags string) netip.AddrPort {
				t.Helper()
				_, to := send(t, tr, asked(intent.TCP, netip.AddrPortFrom(c.client, uint16(1000+i)), c.vip, flags))
				return to
			}
			const flows = 20
			all := map[int]netip.AddrPort{}
			check := func(when string) {
				t.Helper()
				for i, to := range all {
					if now := goes(i, "A"); now != to {
						t.Errorf("%s: flow %d went from %s to %s", when, i, to, now)
					}
				}
			}
			begin := func(from int, ovn bool) {
				t.Helper()
				for i := from; i < from+flows; i++ {
					all[i] = goes(i, "S")
					if (all[i] == c.vip) != ovn {
						t.Fatalf("flow %d began at %s; OVN's is %t", i, all[i], ovn)
					}
				}
				if _, to := send(t, tr, asked(intent.UDP, netip.AddrPortFrom(c.client, uint16(1000+from)), c.udp, "")); (to == c.udp) != ovn {
					t.Errorf("a datagram went to %s; OVN's is %t", to, ovn)
				}
			}
			put(false)
			// What opens nothing is OVN's, where it has begun.
			if to := goes(1, "A"); to != c.vip {
				t.Errorf("a connection that OVN knows went to %s", to)
			}
			begin(100, false)
			check("in eBPF")
			put(true)
			check("OVN's now")
			begin(200, true)
			check("OVN's, with flows of both")
			// Of a flow that began in eBPF, and of which nothing is known here.
			before := goes(150, "A")
			if choice, ok, err := ebpf.Choose(ours, netip.AddrPortFrom(c.client, 1150), c.vip); err != nil || !ok || before != netip.AddrPortFrom(choice.Backend.Addr, choice.Backend.Port) {
				t.Errorf("a flow that the table leads to %v went to %s (%v)", choice.Backend, before, err)
			}
			if from, _ := send(t, tr, replied(intent.TCP, all[100], netip.AddrPortFrom(c.client, 1100), "A")); from != c.vip {
				t.Errorf("the answer of a known flow is from %s", from)
			}
			put(false)
			check("back in eBPF")
			begin(300, false)
			check("in eBPF again")
			// What was always OVN's has no table.
			apply(t, d.VIPs(), vips(intent.VIP{Key: intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: c.vip.Addr(), Port: 8002}, OVN: true}))
			for _, flags := range []string{"S", "A"} {
				at := netip.AddrPortFrom(c.vip.Addr(), 8002)
				row{in: asked(intent.TCP, netip.AddrPortFrom(c.client, 7), at, flags), out: lo, drop: drop.Reason(0), check: forwarded(nextHopMAC, gwMAC)}.run(t, d, tr)
			}
			if gone := d.VIPs().Delete(t.Context(), []intent.VIPKey{ours.Key, udp.Key, {VNI: red, Protocol: intent.TCP, Addr: c.vip.Addr(), Port: 8002}}); gone != nil {
				t.Error(gone)
			}
			wantList(t, d.VIPs(), vips())
		})
	}
}
