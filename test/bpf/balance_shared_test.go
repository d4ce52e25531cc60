package bpf_test

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A client may have one port for VIPs that share their backends: each of its flows goes to
// another backend then, which could not tell them apart, for as long as there is one.
func TestBalanceShared(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	const backends = 3
	list := map[intent.VIPKey]intent.VIP{}
	for i := range uint16(backends + 1) {
		for _, v := range []intent.VIP{
			vip(intent.TCP, vip4, 80+i, backendsOf("10.10.0.%d", backends, 8080)...), vip(intent.UDP, vip4, 80+i, backendsOf("10.10.0.%d", backends, 7000)...),
			vip(intent.TCP, vip6, 80+i, backendsOf("fd00:10::%d", backends, 8080)...), vip(intent.UDP, vip6, 80+i, backendsOf("fd00:10::%d", backends, 7000)...),
		} {
			list[v.Key] = v
		}
	}
	apply(t, d.VIPs(), list)
	apply(t, d.Routes(), balancedRoutes())
	if err := d.SweepFlowFront(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr := tracer(t, dir)
	for _, p := range []intent.Protocol{intent.TCP, intent.UDP} {
		for _, ends := range [][2]netip.Addr{{client4, vip4}, {client6, vip6}} {
			if err := d.SweepFlowFront(t.Context()); err != nil {
				t.Fatal(err)
			}
			for port := uint16(clientPort); port < clientPort+50; port++ {
				client := netip.AddrPortFrom(ends[0], port)
				of, to := map[netip.AddrPort]netip.AddrPort{}, func(i uint16) netip.AddrPort { return netip.AddrPortFrom(ends[1], 80+i) }
				begin := func(i uint16, free func(backend netip.AddrPort) bool) {
					t.Helper()
					_, backend := send(t, tr, asked(p, client, to(i), "S"))
					if !free(backend) {
						t.Fatalf("%s: %s goes to %s; others: %v", client, to(i), backend, of)
					}
					if _, again := send(t, tr, asked(p, client, to(i), "A")); again != backend {
						t.Fatalf("%s: %s goes to %s, and then to %s", client, to(i), backend, again)
					}
					of[backend] = to(i)
				}
				for i := range uint16(backends) {
					begin(i, func(b netip.AddrPort) bool { return !of[b].IsValid() })
				}
				for backend, from := range of {
					if got, _ := send(t, tr, replied(p, backend, client, "A")); got != from {
						t.Fatalf("%s: an answer of %s is from %s, not from %s", client, backend, got, from)
					}
				}
				// All have one: the next flow takes the place of another, of one that has ended if there is one.
				if p == intent.TCP {
					send(t, tr, asked(p, client, to(1), "R"))
				}
				var last netip.AddrPort
				begin(backends, func(b netip.AddrPort) bool {
					last = b
					return p == intent.UDP || of[b] == to(1)
				})
				if got, _ := send(t, tr, replied(p, last, client, "SA")); got != to(backends) {
					t.Fatalf("%s: an answer of %s is from %s, not from the last VIP, %s", client, last, got, to(backends))
				}
			}
		}
	}
}
