package paths

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listed are routes that are in place.
type listed map[intent.RouteKey]intent.Route

func (l listed) List(context.Context) (map[intent.RouteKey]intent.Route, error) {
	return maps.Clone(l), nil
}

// longest is the longest match for a sample of a destination.
func longest(rows listed, k intent.RouteKey) (match intent.Route, found bool) {
	for _, r := range rows {
		if r.Key.VNI == k.VNI && r.Key.Prefix.Contains(kernel.SampleOf(k.Prefix)) && (!found || r.Key.Prefix.Bits() > match.Key.Prefix.Bits()) {
			match, found = r, true
		}
	}
	return match, found
}

// onKernel is a node with routes on the kernel path, and the kernel that goes by them.
func onKernel(t *testing.T, prefixes ...string) (*Paths, listed) {
	t.Helper()
	rows := listed{}
	for _, text := range prefixes {
		k := intent.NewRouteKey(1001, netip.MustParsePrefix(text))
		rows[k] = intent.Route{Key: k, Kind: intent.RouteBlock}
		if text != "10.9.9.9/32" {
			rows[k] = intent.Route{Key: k, Kind: intent.RouteLocal, Gateway: intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2}}}
		}
	}
	drivers := tables.Drivers{}
	tables.Drive(drivers, intent.KernelRoutes, reconcile.ReadOnly[intent.RouteKey, intent.Route](rows))
	log := slog.New(slog.DiscardHandler)
	reg := status.NewRegistry(log)
	always := func() bool { return true }
	p := New(tables.New(drivers, tables.Sources{
		OVN: always, BGP: always, Pending: func(intent.VNI) bool { return false },
		Lingers: func(intent.NextHopSet, func(netip.Addr) bool) bool { return false },
	}, tables.Options{Status: reg, Log: log}), NewFacts(), nil, nil, nil, reg, log)
	p.decide = func(keys []intent.RouteKey) ([]kernel.Decision, error) {
		out := make([]kernel.Decision, len(keys))
		for i, k := range keys {
			r, _ := longest(rows, k)
			out[i] = kernel.Decision{Route: r, Text: "go by " + r.Key.String()}
		}
		return out, nil
	}
	p.tables.Pipeline.Update(func() { tables.Of(p.tables, intent.KernelRoutes).Set(maps.Clone(rows)) })
	p.tables.Pipeline.Pass(t.Context())
	return p, rows
}

// What the kernel would do otherwise is found, reported once it is looked at, in diff
// too, and gone when it has gone; what is not in place says nothing.
func TestParity(t *testing.T) {
	p, rows := onKernel(t, "0.0.0.0/0", "::/0", "10.0.0.0/8", "10.0.0.0/24", "10.9.9.9/32", "fd00::/64")
	found := map[intent.RouteKey]status.Change{}
	look := func() {
		t.Helper()
		p.lookForDifferences(p.onKernelPath(), found)
		p.reg.Reporter(Reports).Replace(differences(found))
	}
	look()
	if len(found) != 0 {
		t.Fatalf("nothing differs, but for %+v", found)
	}

	right, odd := p.decide, intent.NewRouteKey(1001, netip.MustParsePrefix("fd00::/64"))
	p.decide = func(keys []intent.RouteKey) ([]kernel.Decision, error) {
		out, err := right(keys)
		if i := slices.Index(keys, odd); i >= 0 {
			out[i] = kernel.Decision{Text: "answer that it is unreachable"}
		}
		return out, err
	}
	look()
	want := "the kernel would answer that it is unreachable; wanted: route fd00::/64 through "
	o, ok := p.reg.Get(Reports, "kernel-route", odd.String())
	if !ok || o.State != status.Error || o.Reason != "path-differs" || len(o.Error) < len(want) || o.Error[:len(want)] != want || len(found) != 1 {
		t.Errorf("reported: %+v, %+v", o, found)
	}
	diff, err := p.Diff()
	if err != nil || !slices.ContainsFunc(diff, func(c status.Change) bool {
		return c.Key == odd.String() && c.Actual == "answer that it is unreachable"
	}) {
		t.Errorf("diff: %+v, %v", diff, err)
	}

	// A route that is not in place is the table's to report.
	delete(rows, odd)
	p.tables.RelistKernelPath()
	p.tables.Pipeline.Pass(t.Context())
	look()
	if _, there := p.reg.Get(Reports, "kernel-route", odd.String()); there || len(found) != 0 {
		t.Errorf("still there: %+v", found)
	}
	p.decide = func([]intent.RouteKey) ([]kernel.Decision, error) { return nil, errors.New("no netlink") }
	look()
}

// Each route has its turn, also when that which had the last one has gone.
func TestParityTurns(t *testing.T) {
	var all []intent.RouteKey
	for i := range 2*parityBatch + 10 {
		all = append(all, intent.NewRouteKey(1001, netip.MustParsePrefix(fmt.Sprintf("10.0.%d.%d/32", i/256, i%256))))
	}
	var after intent.RouteKey
	for turn, want := range []struct{ first, count int }{{0, parityBatch}, {parityBatch, parityBatch}, {2 * parityBatch, 10}, {0, parityBatch}} {
		var part []intent.RouteKey
		part, after = nextPart(all, after)
		if len(part) != want.count || part[0] != all[want.first] {
			t.Errorf("turn %d: %d keys from %v, want %d from %v", turn, len(part), part[0], want.count, all[want.first])
		}
	}
	all = slices.Delete(all, parityBatch-1, parityBatch)
	if part, _ := nextPart(all, after); part[0] != all[parityBatch-1] {
		t.Errorf("after a key that has gone: %v, want %v", part[0], all[parityBatch-1])
	}
	found := map[intent.RouteKey]status.Change{}
	for _, k := range all {
		found[k] = status.Change{}
	}
	if some := someOf(found); len(some) != parityBatch || len(someOf(nil)) != 0 {
		t.Errorf("%d keys that were found before", len(some))
	}
}
