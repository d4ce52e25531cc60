package tables

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// TestVIPsOfMachinesAwaitTheirBackends: a table never leads to a backend of which the
// programs do not know where frames for it go.
func TestVIPsOfMachinesAwaitTheirBackends(t *testing.T) {
	scope := intent.Switch(7)
	for _, addresses := range [][3]string{{"10.0.0.9", "10.0.0.1", "10.0.0.2"}, {"fd00::9", "fd00::1", "fd00::2"}} {
		vip, one, two := netip.MustParseAddr(addresses[0]), netip.MustParseAddr(addresses[1]), netip.MustParseAddr(addresses[2])
		var journal []string
		neighbors := newDriver[intent.NeighborKey, intent.Neighbor]("neighbor", &journal)
		vips := newDriver[intent.VIPKey, intent.VIP]("vip", &journal)
		c := NewClients(ClientDrivers{VIPs: vips, Neighbors: neighbors, Clients: newDriver[intent.ClientKey, intent.Client]("client", &journal)},
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
				c.Neighbors.Set(rows)
				c.VIPs.Set(map[intent.VIPKey]intent.VIP{key: v})
				c.Clients.Set(nil)
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
		if ok, err := c.VIPs.State(key); ok || !errors.Is(err, reconcile.ErrNotReady) {
			t.Errorf("the VIP's state is %t, %v", ok, err)
		}
		neighbors.fail = nil
		c.Pipeline.Update(func() { c.Neighbors.Touch(neighbors.failKey) })
		for range 3 {
			c.Pipeline.Pass(t.Context())
		}
		if vips.rows[key] != after {
			t.Errorf("the VIP is %+v, want %+v", vips.rows[key], after)
		}
	}
}
