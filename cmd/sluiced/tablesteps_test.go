package main

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/learned"
	"github.com/ovn-sluice/sluice/controlplane/rib"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

func TestTableSteps(t *testing.T) {
	vip := func(address string, slots uint32) intent.VIP {
		a := netip.MustParseAddrPort(address)
		return intent.VIP{Key: intent.VIPKey{VNI: 1001, Protocol: intent.TCP, Addr: a.Addr(), Port: a.Port()}, Slots: slots, OVN: slots == 0}
	}
	all := func(vips ...intent.VIP) map[intent.VIPKey]intent.VIP {
		out := map[intent.VIPKey]intent.VIP{}
		for _, v := range vips {
			out[v.Key] = v
		}
		return out
	}
	many := func(slots uint32) (out []intent.VIP) {
		for i := range tenantLines + 1 {
			out = append(out, vip(netip.AddrPortFrom(netip.MustParseAddr("fd99::1"), uint16(i+1)).String(), slots))
		}
		return out
	}
	for _, tt := range []struct {
		name        string
		before, set map[intent.VIPKey]intent.VIP
		count       uint64
		want        []string
	}{
		{"new", nil, all(vip("10.99.0.1:80", 1021)), 0, nil},
		{"the same size", all(vip("10.99.0.1:80", 1021)), all(vip("10.99.0.1:80", 1021)), 0, nil},
		{"to OVN, and back", all(vip("10.99.0.1:80", 1021), vip("[fd99::1]:80", 0)), all(vip("10.99.0.1:80", 0), vip("[fd99::1]:80", 1021)), 0, nil},
		{
			"both families", all(vip("10.99.0.1:80", 1021), vip("[fd99::1]:80", 4093)), all(vip("10.99.0.1:80", 4093), vip("[fd99::1]:80", 1021)), 2,
			[]string{`vip="1001 10.99.0.1:80/tcp" from=1021 to=4093`, `vip="1001 [fd99::1]:80/tcp" from=4093 to=1021`},
		},
		{"many", all(many(1021)...), all(many(4093)...), tenantLines + 1, []string{`vips=33 to=[4093]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			s := tableSteps{log: slog.New(slog.NewTextHandler(&b, nil))}
			s.say(stepsOf(tt.set, func(k intent.VIPKey) (intent.VIP, bool) { v, ok := tt.before[k]; return v, ok }))
			if s.count.Load() != tt.count || strings.Count(b.String(), "\n") != len(tt.want) {
				t.Errorf("%d steps, want %d:\n%s", s.count.Load(), tt.count, b.String())
			}
			for _, line := range tt.want {
				if !strings.Contains(b.String(), line) {
					t.Errorf("no %s in\n%s", line, b.String())
				}
			}
		})
	}
}

// Both planes tell of the VIPs whose tables they change.
func TestTableStepsOfBothPlanes(t *testing.T) {
	d := followingDaemon(t, nil)
	n := deadNode(d)
	n.rib = rib.New()
	n.learned = learned.New(n.rib)
	w := &clientsAtWork{tables: tables.NewClients(driversOf(func(d tables.Drivers) {
		tables.Drive(d, intent.ClientVIPs, reconcile.ReadOnly(reconcile.Unseen[intent.VIPKey, intent.VIP]{}))
		tables.Drive(d, intent.ClientNeighbors, reconcile.ReadOnly(reconcile.Unseen[intent.NeighborKey, intent.Neighbor]{}))
		tables.Drive(d, intent.Clients, reconcile.ReadOnly(reconcile.Unseen[intent.ClientKey, intent.Client]{}))
	}), d.steps.AllInSync, tables.Options{Status: d.reg, Log: d.log})}
	for i, slots := range []uint32{1021, 4093, 4093, 1021} {
		v := intent.VIP{Key: intent.VIPKey{VNI: 1001, Protocol: intent.UDP, Addr: netip.MustParseAddr("fd99::1"), Port: 53}, Slots: slots}
		change := wanted.Delta[intent.VIPKey, intent.VIP]{Set: map[intent.VIPKey]intent.VIP{v.Key: v}}
		before := d.tableSteps.count.Load()
		n.patch(wanted.With(wanted.Difference{}, intent.VIPs, change), nil)
		steps := w.patch(wanted.With(wanted.Difference{}, intent.ClientVIPs, change), false)
		want := uint64(i % 2)
		if got := d.tableSteps.count.Load() - before; got != want || uint64(len(steps)) != want {
			t.Errorf("change %d: %d steps of the gateway's, %v of machines', want %d", i, got, steps, want)
		}
	}
}
