package bpf_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Flows of one client's port to two VIPs that begin at the same time on two processors go to
// two backends, and each is answered by its VIP: whether the port has had a session or not.
func TestBalanceAtOnce(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	apply(t, d.VIPs(), besides())
	for _, family := range []struct {
		name        string
		client, vip netip.Addr
		backends    string
	}{{"IPv4", client4, vip4, "10.10.0.%d"}, {"IPv6", client6, vip6, "fd00:10::%d"}} {
		a, b, before := netip.AddrPortFrom(family.vip, 6000), netip.AddrPortFrom(family.vip, 6001), netip.AddrPortFrom(family.vip, 4000)
		for _, at := range []netip.AddrPort{a, b} {
			apply(t, d.VIPs(), vips(vip(intent.UDP, at.Addr(), at.Port(), backendsOf(family.backends, 3, 7100)...)))
		}
		allKnown(t, dir)
		tr := tracer(t, dir)
		for _, had := range []struct {
			what string
			vip  netip.AddrPort // of the session that the port has; the zero value is none
			over bool
			// rounds: of a thousand some have met where a session that is over was not replaced as it ought to be.
			rounds int
		}{
			{"no session", netip.AddrPort{}, false, 100},
			{"one that is over", before, true, 1000},
			{"one of the same VIP that is over", a, true, 1000},
			{"one that goes on", before, false, 100},
		} {
			t.Run(family.name+" "+had.what, func(t *testing.T) {
				for i := range had.rounds {
					from := netip.AddrPortFrom(family.client, uint16(20000+i))
					if had.vip.IsValid() {
						send(t, tr, asked(intent.UDP, from, had.vip, ""))
					}
					if had.over {
						unseenFor(t, dir, from.Port(), 130)
					}
					atOnce(t, tr, from, a, b)
				}
				for _, name := range mapsOfFlows {
					m := raw(t, dir, name)
					for key := range rowsOf(t, m) {
						if err := m.Delete([]byte(key)); err != nil {
							t.Fatal(err)
						}
					}
				}
			})
		}
	}
}

func atOnce(t *testing.T, tr *ebpf.Tracer, from, a, b netip.AddrPort) {
	t.Helper()
	results, err := tr.RunAtOnce(asked(intent.UDP, from, a, ""), asked(intent.UDP, from, b, ""))
	if err != nil {
		t.Fatal(err)
	}
	backends := map[netip.AddrPort]netip.AddrPort{} // by VIP
	for i, vip := range []netip.AddrPort{a, b} {
		if !results[i].Redirected {
			t.Fatalf("a packet from %s to %s went nowhere", from, vip)
		}
		_, backends[vip] = ends(t, decode(results[i].Frame))
	}
	if backends[a] == backends[b] {
		t.Errorf("both flows from %s have the backend %s", from, backends[a])
	}
	for vip, backend := range backends {
		if by, _ := send(t, tr, replied(intent.UDP, backend, from, "")); by != vip {
			t.Errorf("the flow from %s to %s is answered by %s", from, vip, by)
		}
		if _, to := send(t, tr, asked(intent.UDP, from, vip, "")); to != backend {
			t.Errorf("the flow from %s to %s goes to %s, and went to %s", from, vip, to, backend)
		}
	}
}

// unseenFor makes the sessions of a client's port older.
func unseenFor(t *testing.T, dir string, port uint16, s int32) {
	t.Helper()
	m := raw(t, dir, "sessions_v1")
	for key, row := range rowsOf(t, m) {
		if binary.BigEndian.Uint16([]byte(key)[sessionPort:]) == port {
			agedRow(t, m, key, row, s)
		}
	}
}
