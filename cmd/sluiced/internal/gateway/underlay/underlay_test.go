package underlay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mainTable is one in memory, with a route of others to each prefix in foreign and
// without the link down0.
type mainTable struct {
	rows    map[netip.Prefix]intent.UnderlayRoute
	foreign netip.Prefix
}

func (m mainTable) List(context.Context) (map[netip.Prefix]intent.UnderlayRoute, error) {
	return maps.Clone(m.rows), nil
}

func (m mainTable) Apply(_ context.Context, rows []reconcile.Row[netip.Prefix, intent.UnderlayRoute]) []error {
	errs := make([]error, len(rows))
	for i, r := range rows {
		switch {
		case r.Key == m.foreign:
			errs[i] = reconcile.ErrForeign
		case r.Value.Hops.All()[0].Device == "down0":
			errs[i] = reconcile.ErrNotReady
		default:
			m.rows[r.Key] = r.Value
		}
	}
	return errs
}

func (m mainTable) Delete(_ context.Context, keys []netip.Prefix) []error {
	for _, k := range keys {
		delete(m.rows, k)
	}
	return make([]error, len(keys))
}

// Every route is told with its state: installed, refused, in the way of another,
// waiting for its link, or of an earlier start.
func TestUnderlayTellsOfEveryRoute(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	reg := status.NewRegistry(log)
	m := mainTable{rows: map[netip.Prefix]intent.UnderlayRoute{netip.MustParsePrefix("192.0.2.9/32"): {Prefix: netip.MustParsePrefix("192.0.2.9/32"), Metric: 7}}, foreign: netip.MustParsePrefix("fd00::3/128")}
	p := &Node{tables: tables.NewUnderlay(drivers(m, unseen), tables.UnderlaySources{BGP: func() bool { return false }, Fabric: func() error { return nil }}, tables.Options{Status: reg, Log: log})}
	row := func(p, device string) intent.UnderlayRoute {
		return intent.UnderlayRoute{Prefix: netip.MustParsePrefix(p), Metric: 7, Hops: intent.NewUnderlayHops(
			intent.UnderlayHop{Via: netip.MustParseAddr("fe80::1"), Device: device}, intent.UnderlayHop{Via: netip.MustParseAddr("fe80::2"), Device: device})}
	}
	rows := map[netip.Prefix]intent.UnderlayRoute{}
	for _, r := range []intent.UnderlayRoute{row("192.0.2.2/32", "eth1"), row("fd00::2/128", "eth1"), row("fd00::3/128", "eth1"), row("192.0.2.4/32", "down0")} {
		rows[r.Prefix] = r
	}
	p.last = underlay.Result{Rows: rows, Refused: []underlay.Refusal{{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Reason: reason.UnderlayFiltered}}}
	p.learned = map[netip.Prefix]underlay.Learned{netip.MustParsePrefix("fd00::2/128"): {Stale: true}}
	p.tables.Pipeline.Update(func() { tables.Of(p.tables, intent.UnderlayRoutes).Set(rows) })
	p.tables.Pipeline.Pass(t.Context())

	got := map[string]string{}
	for _, r := range p.Routes() {
		got[r.Prefix.String()] = r.State
		if r.Stale != (r.Prefix == netip.MustParsePrefix("fd00::2/128")) || (r.State == status.UnderlayError || r.State == status.UnderlayWaiting) != (r.Error != "") {
			t.Errorf("%+v", r)
		}
	}
	want := map[string]string{"10.0.0.0/8": "refused", "192.0.2.2/32": "installed", "192.0.2.4/32": "waiting", "192.0.2.9/32": "stale", "fd00::2/128": "installed", "fd00::3/128": "error"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if problems := reg.Problems(); !slices.ContainsFunc(problems, func(o status.Object) bool {
		return o.Kind == "underlay-route" && o.Key == "fd00::3/128" && o.State == status.Error && o.Reason == "foreign"
	}) {
		t.Errorf("the route of others is no problem: %+v", problems)
	}
}

// unseen takes no announcement.
var unseen = reconcile.ReadOnly(reconcile.Unseen[netip.Prefix, intent.UnderlayAnnouncement]{})

// The underlay is shown on a node that has a part in it, or of whose part something is left.
func TestShown(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	m, known := mainTable{rows: map[netip.Prefix]intent.UnderlayRoute{}}, false
	u := &Node{tables: tables.NewUnderlay(drivers(m, unseen), tables.UnderlaySources{BGP: func() bool { return known }, Fabric: func() error { return nil }},
		tables.Options{Status: status.NewRegistry(log), Log: log})}
	shown := func() bool {
		u.tables.Pipeline.RelistAll()
		u.tables.Pipeline.Pass(t.Context())
		return u.Shown()
	}
	if shown() {
		t.Error("shown, and nothing is left")
	}
	left := netip.MustParsePrefix("192.0.2.9/32")
	m.rows[left] = intent.UnderlayRoute{Prefix: left}
	if !shown() {
		t.Error("not shown while a route is left")
	}
	known = true
	u.tables.Pipeline.Update(func() { tables.Of(u.tables, intent.UnderlayRoutes).Set(nil) })
	if shown() || len(m.rows) > 0 {
		t.Errorf("shown after it is gone: %v", m.rows)
	}
	u.cfg.Install.Enabled = true
	if !shown() {
		t.Error("not shown on a node that installs")
	}
}

func TestAnnouncedPrefixes(t *testing.T) {
	vtep := netip.MustParseAddr("fd00::1")
	got := settings.UnderlayAnnouncements(config.UnderlayAnnounce{VTEP: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, vtep)
	if len(got) != 2 || !got[netip.MustParsePrefix("fd00::1/128")].VTEP || got[netip.MustParsePrefix("192.0.2.0/24")].VTEP {
		t.Errorf("got %v", got)
	}
	if got := settings.UnderlayAnnouncements(config.UnderlayAnnounce{VTEP: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("fd00::1/128")}}, vtep); got[netip.MustParsePrefix("fd00::1/128")].VTEP {
		t.Error("a prefix that is announced always waits for the fabric device")
	}
}

func TestMTUTowardsTheFabric(t *testing.T) {
	near := func(a string) config.Neighbor { return config.Neighbor{Address: netip.MustParseAddr(a)} }
	on := func(link string) config.Neighbor { return config.Neighbor{Interface: link} }
	known := map[string]int{"192.0.2.1": 1500, "192.0.2.2": 9000, "eth1": 9000, "eth2": 4000}
	for _, tc := range []struct {
		name      string
		neighbors []config.Neighbor
		want      int
	}{
		{"the first with a path", []config.Neighbor{near("192.0.2.9"), near("192.0.2.2"), near("192.0.2.1")}, 9000},
		{"the least of the links", []config.Neighbor{near("192.0.2.1"), on("eth1"), on("eth2"), on("eth9")}, 4000},
		{"no path", []config.Neighbor{near("192.0.2.9"), on("eth9")}, 0},
	} {
		got, err := mtuTowards(tc.neighbors, func(n config.Neighbor) (int, error) {
			if m, ok := known[cmp.Or(n.Interface, n.Address.String())]; ok {
				return m, nil
			}
			return 0, errors.New("no path")
		})
		if got != tc.want || (err == nil) != (got != 0) {
			t.Errorf("%s: %d, %v", tc.name, got, err)
		}
	}
}
