package tables

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Routes that an earlier process left stay until the neighbours have sent theirs,
// and the VTEP is announced only while the fabric device is sound.
func TestUnderlay(t *testing.T) {
	var journal []string
	routes := newDriver[netip.Prefix, intent.UnderlayRoute]("route", &journal)
	announced := newDriver[netip.Prefix, intent.UnderlayAnnouncement]("announcement", &journal)
	inSync, broken := false, error(reconcile.ErrNotReady)
	u := NewUnderlay(driversOf(func(d Drivers) {
		Drive(d, intent.UnderlayRoutes, routes)
		Drive(d, intent.UnderlayAnnouncements, announced)
	}), UnderlaySources{BGP: func() bool { return inSync }, Fabric: func() error { return broken }},
		Options{Status: status.NewRegistry(slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler)})
	p := netip.MustParsePrefix
	old, fresh, vtep, more := p("10.0.0.1/32"), p("10.0.0.2/32"), p("10.0.0.7/32"), p("192.0.2.0/24")
	routes.rows[old] = intent.UnderlayRoute{Prefix: old}
	pass := func(want ...string) {
		t.Helper()
		journal = nil
		u.Pipeline.Pass(t.Context())
		u.Pipeline.Pass(t.Context())
		if !slices.Equal(journal, want) {
			t.Errorf("journal %v, want %v", journal, want)
		}
	}
	u.Pipeline.Update(func() {
		Of(u, intent.UnderlayRoutes).Set(map[netip.Prefix]intent.UnderlayRoute{fresh: {Prefix: fresh}})
		Of(u, intent.UnderlayAnnouncements).Set(map[netip.Prefix]intent.UnderlayAnnouncement{vtep: {Prefix: vtep, VTEP: true}, more: {Prefix: more}})
	})
	pass("+route", "+announcement")
	if _, ok := announced.rows[vtep]; ok || u.Held(Of(u, intent.UnderlayRoutes)) == "" || u.Held(Of(u, intent.UnderlayAnnouncements)) != "" {
		t.Error("the VTEP is announced without its device, or the routes are not held")
	}
	broken = nil
	u.Pipeline.Update(u.FabricChanged)
	pass("+announcement")
	inSync = true
	pass("-route")
	if _, ok := routes.rows[fresh]; !ok || len(routes.rows) != 1 {
		t.Errorf("routes %v", routes.rows)
	}
	broken = errors.New("gone")
	u.Pipeline.Update(u.FabricChanged)
	pass("-announcement")
	if _, ok := announced.rows[more]; !ok || len(announced.rows) != 1 {
		t.Errorf("announced %v", announced.rows)
	}
}
