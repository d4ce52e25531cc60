package tables

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A new process finds what the last one programmed, and OVN in sync, before it
// was told what is wanted.
func TestPassBeforeAnythingIsWantedRemovesNothing(t *testing.T) {
	b := newBench()
	b.want(true)
	b.passes(t)
	next := newBench()
	next.routesThere.rows, next.gateways.rows, next.flows.rows = b.routesThere.rows, b.gateways.rows, b.flows.rows
	next.passes(t)
	if len(next.journal) != 0 {
		t.Fatalf("removed %v", next.journal)
	}
	next.want(false)
	next.passes(t)
	if len(next.routesThere.rows)+len(next.gateways.rows)+len(next.flows.rows) != 0 {
		t.Error("still there after it was told that nothing is wanted")
	}
}

// With the Southbound database away an announcement goes whose way is cut.
func TestAnnouncementGoesWithItsWayAlsoWhileOVNIsAway(t *testing.T) {
	b := newBench()
	b.want(true)
	b.passes(t)
	b.ovn = false
	clear(b.gateways.rows)
	b.gateways.fail = errors.New("broken")
	b.Pipeline.RelistAll()
	b.passes(t)
	if len(b.announced.rows) != 0 {
		t.Error("announced into a black hole")
	}
	b.gateways.fail = nil
	b.Pipeline.Update(func() { Of(b, intent.Gateways).Touch(gw) })
	b.passes(t)
	if len(b.announced.rows) != 1 {
		t.Error("not announced again")
	}
}

// Nothing is announced whose answers would not come back to this node, or without
// its VRF's route targets.
func TestNothingIsAnnouncedWithoutTheWayBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		broken func(*bench, error)
		touch  func(*bench)
	}{
		{"source flow", func(b *bench, err error) { b.flows.fail, b.flows.failKey = err, back }, func(b *bench) { Of(b, intent.SteeringFlows).Touch(back) }},
		{"policy", func(b *bench, err error) { b.policies.fail = err }, func(b *bench) { Of(b, intent.Policies).Touch(1001) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench()
			tt.broken(b, errors.New("refused"))
			b.want(true)
			b.passes(t)
			if len(b.announced.rows) != 0 {
				t.Error("announced")
			}
			tt.broken(b, nil)
			b.Pipeline.Update(func() { tt.touch(b) })
			b.passes(t)
			if len(b.announced.rows) != 1 {
				_, err := Of(b, intent.Announcements).State(host)
				t.Errorf("not announced after it was mended: %v", err)
			}
		})
	}
}

// Without the device that all packets of the fabric come through nothing is
// announced.
func TestNothingIsAnnouncedWithoutTheFabric(t *testing.T) {
	b := newBench()
	var broken error
	b.src.Fabric = func(intent.VNI) error { return broken }
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler)})
	b.want(true)
	b.passes(t)
	for _, tt := range []struct {
		err  error
		rows int
	}{{reconcile.ErrNotReady, 0}, {nil, 1}} {
		broken = tt.err
		b.Pipeline.Update(b.FabricChanged)
		b.passes(t)
		if len(b.announced.rows) != tt.rows {
			t.Errorf("%v: %d announcements, want %d", tt.err, len(b.announced.rows), tt.rows)
		}
	}
}

// The fabric breaks while 20,000 routes are being announced, and is mended while they are being
// withdrawn, or the other way round: what is in flight counts like all others.
func TestFabricBreaksWhileRoutesAreAnnounced(t *testing.T) {
	b := newBench()
	var broken error
	b.src.Fabric = func(intent.VNI) error { return broken }
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler)})
	b.want(true)
	b.passes(t)
	const hosts = 10000 // of each family
	back6 := intent.SteeringKey{Gateway: gw, Kind: intent.SteerSource, Prefix: netip.MustParsePrefix("fd00::/64")}
	back4 := intent.SteeringKey{Gateway: gw, Kind: intent.SteerSource, Prefix: netip.MustParsePrefix("10.0.0.0/16")}
	routes, announcements := map[intent.RouteKey]intent.Route{}, map[intent.RouteKey]intent.Announcement{}
	for i := range hosts {
		for _, a := range []netip.Addr{
			netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), netip.AddrFrom16([16]byte{0: 0xfd, 14: byte(i >> 8), 15: byte(i)}),
		} {
			k := intent.NewHostKey(1001, a)
			routes[k] = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: gw}
			announcements[k] = intent.Announcement{Key: k, Gateway: gw}
		}
	}
	b.Pipeline.Update(func() {
		b.SetRoutes(routes)
		Of(b, intent.SteeringFlows).Set(map[intent.SteeringKey]intent.Steering{into: {Key: into}, back: {Key: back}, back4: {Key: back4}, back6: {Key: back6}})
		Of(b, intent.Announcements).Set(announcements)
	})
	changes := 0
	change := func(to error) func() {
		return func() {
			if broken != to {
				broken = to
				changes++
				b.Pipeline.Update(b.FabricChanged)
			}
		}
	}
	b.announced.before = change(reconcile.ErrNotReady)
	b.passes(t)
	if changes != 1 || len(b.announced.rows) != 0 {
		t.Errorf("%d routes are announced over a fabric that is broken (%d changes)", len(b.announced.rows), changes)
	}
	b.announced.before = nil
	change(nil)()
	b.passes(t)
	if len(b.announced.rows) != 2*hosts {
		t.Errorf("%d routes are announced", len(b.announced.rows))
	}
	change(reconcile.ErrNotReady)()
	b.announced.after = change(nil) // with the first that is withdrawn
	b.passes(t)
	if changes != 4 || len(b.announced.rows) != 2*hosts {
		t.Errorf("%d routes are announced after the fabric was mended (%d changes)", len(b.announced.rows), changes)
	}
}

func TestSourceFlow(t *testing.T) {
	b := newBench()
	b.want(true)
	if k, ok := b.SourceFlow(1001, gw, host.Prefix); !ok || k != back {
		t.Errorf("%s, %v", k, ok)
	}
	if k, ok := b.SourceFlow(1001, gw, other.Prefix); ok || k.Prefix != other.Prefix {
		t.Errorf("%s, %v", k, ok)
	}
}

func TestProblemGoesWithItsRow(t *testing.T) {
	b := newBench()
	b.gateways.fail = syscall.E2BIG
	b.want(true)
	b.passes(t)
	if o, ok := b.reg.Get("gateways", "gateway", gw.String()); !ok || o.Reason != "full" {
		t.Fatalf("problem %+v", o)
	}
	b.want(false)
	b.passes(t)
	if p := b.reg.Problems(); len(p) != 0 {
		t.Errorf("problems of rows that nobody wants: %+v", p)
	}
}

// While Northbound rows are to come, what a VRF exposes is not known: what was
// programmed of it stays, and that of other VRFs does not.
func TestVRFWhoseNorthboundRowsAreToComeKeepsWhatItExposes(t *testing.T) {
	b := newBench()
	b.want(true)
	b.passes(t)
	b.journal, b.pending = nil, 1001
	b.Pipeline.Update(func() {
		Of(b, intent.Routes).Set(nil)
		Of(b, intent.SteeringFlows).Set(map[intent.SteeringKey]intent.Steering{into: {Key: into}})
		Of(b, intent.Announcements).Set(nil)
	})
	b.passes(t)
	if len(b.journal) != 0 {
		t.Fatalf("removed %v", b.journal)
	}
	b.pending = 1002
	b.passes(t)
	if len(b.routesThere.rows) != 0 || len(b.flows.rows) != 1 || len(b.announced.rows) != 0 {
		t.Error("still there after all rows have come")
	}
}

func TestComplete(t *testing.T) {
	b := newBench()
	b.bridges.unread = errors.New("not read yet")
	b.flows.fail, b.flows.failKey = errors.New("refused"), into
	b.want(true)
	b.passes(t)
	if b.Complete() {
		t.Error("complete although bridges were never read")
	}
	b.bridges.unread = nil
	b.passes(t)
	if b.Complete() {
		t.Error("complete although an announcement waits")
	}
	b.flows.fail = nil
	b.Pipeline.Update(func() { Of(b, intent.SteeringFlows).Touch(into) })
	b.passes(t)
	if !b.Complete() || len(b.announced.rows) != 1 {
		t.Error("not complete although all is announced")
	}
	b.bridges.unread = errors.New("away again")
	b.Pipeline.RelistAll()
	b.passes(t)
	if !b.Complete() {
		t.Error("a table that cannot be read again is forgotten")
	}
}

func TestHeldNamesTheSource(t *testing.T) {
	b := newBench()
	held := func() map[string]string {
		out := map[string]string{}
		for _, s := range b.Pipeline.Stages() {
			if why := b.Held(s); why != "" {
				out[s.Name()] = why
			}
		}
		return out
	}
	if h := held(); len(h) != 0 {
		t.Errorf("in sync: %v", h)
	}
	b.bgp = false
	if h := held(); len(h) != 4 || h["kernel-routes"] == "" || h["learned-routes"] == "" || !strings.Contains(h["vteps"], "BGP") || !strings.Contains(h["routes"], "BGP") {
		t.Errorf("without BGP: %v", h)
	}
	b.ovn, b.bgp = false, true
	if h := held(); len(h) != len(b.Pipeline.Stages())-1 || h["vteps"] != "" || !strings.Contains(h["steering"], "Southbound") {
		t.Errorf("without OVN: %v", h)
	}
	b.ovn = true
	b.bridges.unread = errors.New("no answer")
	b.passes(t)
	if h := held(); len(h) != 1 || !strings.Contains(h["bridges"], "no answer") {
		t.Errorf("unread: %v", h)
	}
}

func TestAnnouncementsAreTold(t *testing.T) {
	b := newBench()
	told := map[intent.RouteKey]bool{}
	b.Tables = New(b.drivers, b.src, Options{Status: b.reg, Log: slog.New(slog.DiscardHandler), Announced: func(events []reconcile.Event[intent.RouteKey]) {
		for _, e := range events {
			told[e.Key] = e.Programmed
		}
	}})
	b.want(true)
	b.passes(t)
	if !maps.Equal(told, map[intent.RouteKey]bool{host: true}) {
		t.Errorf("told %v", told)
	}
}

// A change that comes in the middle of a pass moves a route to another gateway: the
// announcement stays while the new way is made.
func TestMoveInTheMiddleOfAPassWithdrawsNothing(t *testing.T) {
	b := newBench()
	b.want(true)
	b.passes(t)
	b.journal = nil
	next := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	nextInto, nextBack := intent.SteeringKey{Gateway: next, Kind: intent.SteerToOVN}, back
	nextBack.Gateway = next
	b.policies.before = func() {
		b.policies.before = nil
		b.Pipeline.Update(func() {
			Of(b, intent.Gateways).Set(map[intent.GatewayKey]intent.Gateway{next: {Key: next, VNI: 1001}})
			Of(b, intent.Routes).Set(map[intent.RouteKey]intent.Route{host: {Key: host, Kind: intent.RouteLocal, Gateway: next}})
			Of(b, intent.SteeringFlows).Set(map[intent.SteeringKey]intent.Steering{nextInto: {Key: nextInto}, nextBack: {Key: nextBack}})
			Of(b, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{host: {Key: host, Gateway: next}})
		})
	}
	b.Pipeline.Update(func() { Of(b, intent.Policies).Update(map[intent.VNI]intent.VRFPolicy{1002: {VNI: 1002}}, nil) })
	b.passes(t)
	made := slices.Index(b.journal, "+announcement")
	for _, gone := range []string{"-announcement", "-flow", "-gateway"} {
		if at := slices.Index(b.journal, gone); at >= 0 && at < made {
			t.Errorf("%s before the new way was made: %v", gone, b.journal)
		}
	}
	if b.announced.rows[host].Gateway != next || len(b.gateways.rows) != 1 {
		t.Errorf("the move did not end: %v", b.journal)
	}
}
