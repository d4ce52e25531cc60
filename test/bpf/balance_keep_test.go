package bpf_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A client of a VIP with affinity keeps its backend as long as that gets new flows, also
// where the table leads elsewhere by now.
func TestBalanceAffinity(t *testing.T) {
	for _, c := range []struct {
		name, clients, backends string
		vip                     netip.AddrPort
	}{
		{"4", "10.20.%d.9", "10.10.0.%d", netip.AddrPortFrom(vip4, 80)},
		{"6", "fd00:20::%d:9", "fd00:10::%d", netip.AddrPortFrom(vip6, 80)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := bpffs(t)
			d := balanced(t, dir)
			tr := tracer(t, dir)
			all := backendsOf(c.backends, 5, 8080)
			put := func(backends ...intent.Backend) intent.VIP {
				v := vip(intent.TCP, c.vip.Addr(), c.vip.Port(), backends...)
				v.Affinity, v.ByAddress = 300, true
				apply(t, d.VIPs(), vips(v))
				return v
			}
			port := uint16(1024)
			begins := func(client netip.Addr) netip.AddrPort {
				port++
				_, b := send(t, tr, asked(intent.TCP, netip.AddrPortFrom(client, port), c.vip, "S"))
				return b
			}
			hashed := func(v intent.VIP, client netip.Addr) netip.AddrPort {
				choice, ok, err := ebpf.Choose(v, netip.AddrPortFrom(client, port), c.vip)
				if err != nil || !ok {
					t.Fatal(err, ok)
				}
				return netip.AddrPortFrom(choice.Backend.Addr, choice.Backend.Port)
			}
			v := put(all[:3]...)
			const clients = 120
			had := map[netip.Addr]netip.AddrPort{}
			for i := range clients {
				client := addr(fmt.Sprintf(c.clients, i))
				had[client] = begins(client)
				if again := begins(client); again != had[client] || again != hashed(v, client) {
					t.Fatalf("%s had %s and then %s; by its address it has %s", client, had[client], again, hashed(v, client))
				}
			}
			// Two come, and get places of those that are there; one is being drained.
			drained := all[1]
			drained.Weight = 0
			v = put(all[0], drained, all[2], all[3], all[4])
			left := map[netip.Addr]bool{all[0].Addr: true, all[2].Addr: true, all[3].Addr: true, all[4].Addr: true}
			moved := 0
			for client, b := range had {
				now := begins(client)
				switch {
				case left[b.Addr()]:
					if now != b {
						t.Errorf("%s had %s, which still gets new flows, and now %s", client, b, now)
					}
					if hashed(v, client) != b {
						moved++
					}
				case !left[now.Addr()]:
					t.Errorf("%s goes to %s, which gets no new flows", client, now)
				}
			}
			if moved == 0 {
				t.Error("no client would have moved: this run shows nothing")
			}
			// Later on the table decides again.
			aged := raw(t, dir, "affinity_v3")
			for key, value := range rowsOf(t, aged) {
				row := []byte(value)
				binary.NativeEndian.PutUint32(row[4:], binary.NativeEndian.Uint32(row[4:])-301)
				if err := aged.Put([]byte(key), row); err != nil {
					t.Fatal(err)
				}
			}
			for client := range had {
				if now := begins(client); now != hashed(v, client) {
					t.Errorf("after its time %s goes to %s, not to %s", client, now, hashed(v, client))
				}
			}
		})
	}
}

// With Flush the flows to a backend end when it is taken out, and all with the VIP; those of
// other VIPs, and to a backend that is drained, go on.
func TestBalanceFlush(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	tr := tracer(t, dir)
	for _, c := range []struct {
		vip      netip.AddrPort
		client   netip.Addr
		backends string
	}{{netip.AddrPortFrom(vip4, 80), client4, "10.10.0.%d"}, {netip.AddrPortFrom(vip6, 80), client6, "fd00:10::%d"}} {
		all := backendsOf(c.backends, 3, 8080)
		put := func(port uint16, flush bool, backends ...intent.Backend) intent.VIP {
			v := vip(intent.TCP, c.vip.Addr(), port, backends...)
			v.Flush = flush
			apply(t, d.VIPs(), vips(v))
			return v
		}
		ends := map[uint16]map[int]netip.AddrPort{80: {}, 90: {}}
		goes := func(port uint16, i int, flags string) netip.AddrPort {
			_, b := send(t, tr, asked(intent.TCP, netip.AddrPortFrom(c.client, port*100+uint16(i)), netip.AddrPortFrom(c.vip.Addr(), port), flags))
			return b
		}
		for port, flows := range ends {
			put(port, port == 80, all...)
			for i := range 40 {
				flows[i] = goes(port, i, "S")
				goes(port, i, "A")
			}
		}
		drained := all[1]
		drained.Weight = 0
		for port := range ends {
			put(port, port == 80, all[0], drained)
		}
		for port, flows := range ends {
			for i, b := range flows {
				now := goes(port, i, "A")
				if taken := b.Addr() == all[2].Addr && port == 80; now != b != taken {
					t.Errorf("flow %d to port %d went from %s to %s", i, port, b, now)
				}
			}
		}
		before := rowsOfFlows(t, dir)
		want := before - 40
		if gone := d.VIPs().Delete(t.Context(), []intent.VIPKey{{VNI: red, Protocol: intent.TCP, Addr: c.vip.Addr(), Port: 80}}); gone != nil {
			t.Fatal(gone)
		}
		if got := rowsOfFlows(t, dir); got != want {
			t.Errorf("%d rows of flows, of %d; want %d", got, before, want)
		}
		if now := goes(90, 0, "A"); now != ends[90][0] {
			t.Errorf("a flow of another VIP went from %s to %s", ends[90][0], now)
		}
		// A VIP that gets it later has those end whose backend has left it before.
		left := 0
		for _, b := range ends[90] {
			if b.Addr() == all[2].Addr {
				left++
			}
		}
		want = rowsOfFlows(t, dir) - left
		put(90, true, all[0], drained)
		if got := rowsOfFlows(t, dir); got != want || left == 0 {
			t.Errorf("%d rows of flows when %d were to end; want %d", got, left, want)
		}
	}
}
