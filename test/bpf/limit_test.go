package bpf_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestICMPRate sends more packets that deserve an error than the bucket has tokens.
func TestICMPRate(t *testing.T) {
	const burst, packets = 5, 50
	n := node()
	n.ICMPRate, n.ICMPBurst = 1, burst
	dir := bpffs(t)
	d := world(t, dir, n)
	tr := tracer(t, dir)
	for _, c := range []struct {
		name string
		in   ebpf.TraceRequest
	}{
		{"to the fabric", fromFabric(ttl(in4("10.20.0.9", "10.10.0.5"), 1))},
		{"to OVN 6", fromOVN(ttl(out6("fd00:10::5", "fd00:20::9"), 1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, dropsBefore := counts(t, d)
			start, answers := time.Now(), 0
			for i := range packets {
				redirected, _, _, err := tr.Run(c.in, 1)
				if err != nil {
					t.Fatal(err)
				}
				if redirected {
					answers++
				} else if i < burst {
					t.Errorf("packet %d got no answer", i)
				}
			}
			if most := burst + int(time.Since(start).Seconds()) + 1; answers > most {
				t.Errorf("%d answers, want at most %d", answers, most)
			}
			after, dropsAfter := counts(t, d)
			if got := after.Answers - before.Answers; got != uint64(answers) {
				t.Errorf("%d answers were counted, %d were sent", got, answers)
			}
			if got := dropsAfter[drop.TTLExpired] - dropsBefore[drop.TTLExpired]; got != packets {
				t.Errorf("%d drops were counted, want %d", got, packets)
			}
			// A trace takes no token and shows what would be sent.
			res, err := tr.Trace(context.Background(), c.in)
			if err != nil || !res.Redirected {
				t.Errorf("trace: %v\n%s", err, res)
			}
		})
	}
}

// TestDropWithoutTunnel has no VTEP of the next hop's address family.
func TestDropWithoutTunnel(t *testing.T) {
	to4, to6 := fromOVN(out4("10.10.0.5", "10.20.0.9")), fromOVN(out4("10.10.0.5", "10.26.0.9"))
	for _, c := range []struct {
		name string
		node func(*ebpf.Node)
		rows []row
	}{
		{"no IPv6", func(n *ebpf.Node) { n.VTEP6 = netip.Addr{} }, []row{
			{name: "over IPv4", in: to4, out: vxlan}, {name: "over IPv6", in: to6, drop: drop.TunnelKey}}},
		{"no IPv4", func(n *ebpf.Node) { n.VTEP4 = netip.Addr{} }, []row{
			{name: "over IPv4", in: to4, drop: drop.TunnelKey}, {name: "over IPv6", in: to6, out: vxlan}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, dir := node(), bpffs(t)
			c.node(&n)
			runRows(t, dir, world(t, dir, n), c.rows)
		})
	}
}

// TestDropStaleRow deletes rows in the wrong order, which the daemon does not do
// but a crash may leave behind.
func TestDropStaleRow(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	ctx := context.Background()
	for _, errs := range [][]error{
		d.VRFs().Delete(ctx, []intent.VNI{blue}),
		d.Gateways().Delete(ctx, []intent.GatewayKey{gw2}),
	} {
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	blueFrame := changed(out4("10.10.0.5", "10.20.0.9"), 6, blueMAC[:]...)
	runRows(t, dir, d, []row{
		{name: "gateway without VRF", in: fromOVN(blueFrame), drop: drop.StaleRow},
		{name: "VNI without VRF", in: via(fromFabric(in4("10.20.0.9", "10.10.0.5")), peer4, blue), drop: drop.UnknownVNI},
		{name: "route without gateway", in: fromFabric(in4("10.20.0.9", "10.11.0.5")), drop: drop.StaleRow},
		{name: "route without gateway 6", in: fromFabric(in6("fd00:20::9", "fd00:11::5")), drop: drop.StaleRow},
		{name: "another gateway that is gone", in: fromOVN(out4("10.10.0.5", "10.11.0.5")), drop: drop.StaleRow},
		{name: "the rest goes on", in: fromOVN(out4("10.10.0.5", "10.20.0.9")), out: vxlan},
	})
	// As a program that found the row before sees it: too big is for no MTU of 0.
	withoutMTU(t, dir)
	runRows(t, dir, d, []row{
		{name: "row that is cleared meanwhile 4", in: fromFabric(in4("10.20.0.9", "10.10.0.5")), drop: drop.StaleRow},
		{name: "row that is cleared meanwhile 6", in: fromFabric(in6("fd00:20::9", "fd00:10::5")), drop: drop.StaleRow},
	})
	apply(t, d.Gateways(), gateways())
	// The VRF and the gateway come back.
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{blue: {VNI: blue, Index: 2}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw2: gateways()[gw2]})
	apply(t, d.Routes(), worldRoutes())
	runRows(t, dir, d, []row{
		{name: "VRF is back", in: fromOVN(blueFrame), out: vxlan},
		{name: "gateway is back", in: fromFabric(in4("10.20.0.9", "10.11.0.5")), out: sluice},
	})
}

// withoutMTU clears the MTU of all rows of entries.
func withoutMTU(t *testing.T, dir string) {
	t.Helper()
	m, err := kernel.LoadPinnedMap(filepath.Join(dir, "entries_v1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const mtu = 16 // its offset in struct entry
	for row := range m.MaxEntries() {
		var e [64]byte
		if err := m.Lookup(row, &e); err != nil {
			t.Fatal(err)
		}
		e[mtu], e[mtu+1] = 0, 0
		if err := m.Put(row, e); err != nil {
			t.Fatal(err)
		}
	}
}
