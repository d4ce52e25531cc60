package tables

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// TestVIPsOfVMsAwaitTheirBackends: a table never leads to a backend of which the
// programs do not know where frames for it go.
func TestVIPsOfVMsAwaitTheirBackends(t *testing.T) {
	scope := intent.Switch(7)
	for _, addresses := range [][3]string{{"10.0.0.9", "10.0.0.1", "10.0.0.2"}, {"fd00::9", "fd00::1", "fd00::2"}} {
		vip, one, two := netip.MustParseAddr(addresses[0]), netip.MustParseAddr(addresses[1]), netip.MustParseAddr(addresses[2])
		var journal []string
		neighbors := newDriver[intent.NeighborKey, intent.Neighbor]("neighbor", &journal)
		vips := newDriver[intent.VIPKey, intent.VIP]("vip", &journal)
		c := NewClients(driversOf(func(d Drivers) {
			Drive(d, intent.ClientVIPs, vips)
			Drive(d, intent.ClientNeighbors, neighbors)
			Drive(d, intent.TapClients, newDriver[intent.TapClientKey, intent.TapClient]("client", &journal))
		}),
			func() bool { return true }, Options{Status: status.NewRegistry(slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler)})
		key := intent.VIPKey{VNI: scope, Protocol: intent.TCP, Addr: vip, Port: 80}
		want := func(backends ...netip.Addr) (v intent.VIP) {
			rows := map[intent.NeighborKey]intent.Neighbor{}
			var list []intent.Backend
			for _, a := range backends {
				k := intent.NeighborKey{Scope: scope, Addr: a}
				rows[k] = intent.Neighbor{Key: k, MAC: intent.MAC{2}}
				list = append(list, intent.Backend{Addr: a, Port: 80, Weight: 1})
			}
			v = intent.VIP{Key: key, Backends: intent.NewBackendSet(list...), Slots: 1021}
			c.Pipeline.Update(func() {
				Of(c, intent.ClientNeighbors).Set(rows)
				Of(c, intent.ClientVIPs).Set(map[intent.VIPKey]intent.VIP{key: v})
				Of(c, intent.TapClients).Set(nil)
			})
			for range 5 {
				c.Pipeline.Pass(t.Context())
			}
			return v
		}
		before := want(one)
		if vips.rows[key] != before {
			t.Fatalf("the VIP is %+v, want %+v", vips.rows[key], before)
		}
		failed := errors.New("full")
		neighbors.fail, neighbors.failKey = failed, intent.NeighborKey{Scope: scope, Addr: two}
		after := want(one, two)
		if vips.rows[key] != before {
			t.Errorf("the VIP leads to %s, where no frame gets", two)
		}
		if ok, err := Of(c, intent.ClientVIPs).State(key); ok || !errors.Is(err, reconcile.ErrNotReady) {
			t.Errorf("the VIP's state is %t, %v", ok, err)
		}
		neighbors.fail = nil
		c.Pipeline.Update(func() { Of(c, intent.ClientNeighbors).Touch(neighbors.failKey) })
		for range 3 {
			c.Pipeline.Pass(t.Context())
		}
		if vips.rows[key] != after {
			t.Errorf("the VIP is %+v, want %+v", vips.rows[key], after)
		}
	}
}

// TestVMsLeave: what a VM needs outlives its port for a moment, in which OVN may bind
// it again; what others have on the switch changes at once all the same.
func TestVMsLeave(t *testing.T) {
	scope, other := intent.Switch(7), intent.Switch(8)
	var journal []string
	neighbors := newDriver[intent.NeighborKey, intent.Neighbor]("neighbor", &journal)
	vips := newDriver[intent.VIPKey, intent.VIP]("vip", &journal)
	vms := newDriver[intent.TapClientKey, intent.TapClient]("client", &journal)
	c := NewClients(driversOf(func(d Drivers) {
		Drive(d, intent.ClientVIPs, vips)
		Drive(d, intent.ClientNeighbors, neighbors)
		Drive(d, intent.TapClients, vms)
	}), func() bool { return true },
		Options{Status: status.NewRegistry(slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler)})
	now, woken := time.Unix(1000, 0), 0
	c.leaving.now, c.leaving.wake = func() time.Time { return now }, func(time.Duration) { woken++ }
	want := func(scopes ...intent.VNI) {
		t.Helper()
		n, v, m := map[intent.NeighborKey]intent.Neighbor{}, map[intent.VIPKey]intent.VIP{}, map[intent.TapClientKey]intent.TapClient{}
		for i, s := range scopes {
			nk := intent.NeighborKey{Scope: s, Addr: netip.MustParseAddr("fd00::9")}
			vk := intent.VIPKey{VNI: s, Protocol: intent.TCP, Addr: nk.Addr, Port: 80}
			mk := intent.TapClientKey{IfIndex: uint32(s&0xff) + uint32(i)<<8}
			n[nk], v[vk], m[mk] = intent.Neighbor{Key: nk, VIP: true}, intent.VIP{Key: vk, OVN: true}, intent.TapClient{Key: mk, Scope: s}
		}
		c.Pipeline.Update(func() {
			Of(c, intent.ClientNeighbors).Set(n)
			Of(c, intent.ClientVIPs).Set(v)
			Of(c, intent.TapClients).Set(m)
		})
		for range 3 {
			c.Pipeline.Pass(t.Context())
		}
	}
	see := func(what string, rows int) {
		t.Helper()
		if len(neighbors.rows) != rows || len(vips.rows) != rows || len(vms.rows) != rows {
			t.Errorf("%s: %d neighbors, %d VIPs, %d VMs, want %d of each", what, len(neighbors.rows), len(vips.rows), len(vms.rows), rows)
		}
	}
	want(scope)
	want()
	see("it has just left", 1)
	want(scope)
	now = now.Add(time.Hour)
	want()
	see("it has just left again", 1)
	if woken != 2 || !Of(c, intent.TapClients).Settled() || !Of(c, intent.ClientVIPs).Settled() {
		t.Errorf("woken %d times, settled: %t, %t", woken, Of(c, intent.TapClients).Settled(), Of(c, intent.ClientVIPs).Settled())
	}
	now = now.Add(leaveTime)
	want()
	see("it has left", 0)
	// A switch with another VM loses a VIP at once, and one whose last VM is idle, too.
	want(scope, other)
	c.Pipeline.Update(func() { Of(c, intent.ClientVIPs).Set(nil) })
	for range 3 {
		c.Pipeline.Pass(t.Context())
	}
	if len(vips.rows) != 0 {
		t.Errorf("VIPs that are gone stay: %v", vips.rows)
	}
}
