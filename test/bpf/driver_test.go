package bpf_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

func list[K, V comparable](t testing.TB, d reconcile.Driver[K, V]) map[K]V {
	t.Helper()
	got, err := d.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// wantList checks that List gives back what was applied.
func wantList[K, V comparable](t *testing.T, d reconcile.Driver[K, V], want map[K]V) {
	t.Helper()
	got := list(t, d)
	if !maps.Equal(got, want) {
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%v is listed as\n%+v, want\n%+v", k, got[k], v)
			}
		}
		t.Errorf("listed %d rows, want %d", len(got), len(want))
	}
}

// listing is what a Dataplane and an Inspection have in common.
type listing interface {
	VRFs() *ebpf.VRFs
	Gateways() *ebpf.Gateways
	Served() *ebpf.Served
	VTEPs() *ebpf.VTEPs
	Routes() *ebpf.Routes
}

func wantWorld(t *testing.T, d listing) {
	t.Helper()
	wantList(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}, blue: {VNI: blue, Index: 2}, tagged: {VNI: tagged, Index: 3}})
	wantList(t, d.Gateways(), gateways())
	wantList(t, d.Served(), served())
	wantList(t, d.VTEPs(), map[netip.Addr]intent.VTEP{peer4: {Addr: peer4}, peer6: {Addr: peer6}})
	wantList(t, d.Routes(), worldRoutes())
}

func TestListGivesBackWhatWasApplied(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	wantWorld(t, d)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = load(t, ebpf.Config{Dir: dir, Node: node()})
		wantWorld(t, d)
	}
}

// Two maps hold the rows of the table served, each of the size for itself.
func TestFillsOfServedAndKnown(t *testing.T) {
	d := load(t, ebpf.Config{Dir: bpffs(t), Node: node(), Limits: ebpf.Limits{Served: 100}})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}, blue: {VNI: blue, Index: 2}, tagged: {VNI: tagged, Index: 3}})
	apply(t, d.Gateways(), gateways())
	apply(t, d.Served(), served())
	used := map[bool]int{}
	for k := range served() {
		used[k.Gateway.IsSegment()]++
	}
	got := map[string]ebpf.Fill{}
	for _, f := range d.Fills() {
		got[f.Map] = f
	}
	for name, n := range map[string]int{"served": used[false], "known": used[true]} {
		if want := (ebpf.Fill{Table: "served", Map: name, Used: n, Max: 100}); got[name] != want {
			t.Errorf("%+v, want %+v", got[name], want)
		}
	}
}

// After a restart the references are known again: deleting everything frees every row.
func TestRestartThenDelete(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node()).Close()
	d := load(t, ebpf.Config{Dir: dir, Node: node()})
	remove(t, d.Routes(), worldRoutes())
	remove(t, d.Served(), served())
	remove(t, d.Gateways(), gateways())
	for _, f := range d.Fills() {
		switch f.Map {
		case "entries", "gateways", "groups", "hosts", "nexthops", "prefixes4", "prefixes6", "served", "known":
			if f.Used != 0 {
				t.Errorf("%s still has %d rows", f.Map, f.Used)
			}
		}
	}
}

func remove[K, V comparable](t *testing.T, d reconcile.Driver[K, V], rows map[K]V) {
	t.Helper()
	for k := range rows {
		for _, err := range d.Delete(context.Background(), []K{k, k}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := list(t, d); len(got) != 0 {
		t.Errorf("%d rows are left: %v", len(got), got)
	}
}

// A gateway that is removed and comes back, or moves to another VRF, keeps what
// refers to it.
func TestGatewayComesAndGoes(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	ctx := context.Background()
	d.Gateways().Delete(ctx, []intent.GatewayKey{gw})
	route := intent.NewHostKey(red, addr("10.10.0.5"))
	if got := list(t, d.Routes())[route]; got != (intent.Route{}) {
		t.Errorf("a route without its gateway is listed as %+v", got)
	}
	errs := d.Routes().Apply(ctx, []reconcile.Row[intent.RouteKey, intent.Route]{{Key: route, Value: local(red, "10.10.0.5/32", gw)}})
	if errs == nil || !errors.Is(errs[0], reconcile.ErrNotReady) {
		t.Errorf("a route without its gateway: %v", errs)
	}
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	wantWorld(t, d)

	moved := gateways()[gw]
	moved.VNI = blue
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: moved})
	wantList(t, d.Served(), served())
	if got := list(t, d.Gateways())[gw]; got != moved {
		t.Errorf("listed as %+v", got)
	}
	if got := list(t, d.Routes())[route]; got != (intent.Route{}) {
		t.Errorf("the route of the old VRF is listed as %+v", got)
	}
}

func TestFullMapIsAnErrorOfThatRow(t *testing.T) {
	d := load(t, ebpf.Config{Dir: bpffs(t), Node: node(), Limits: ebpf.Limits{VRFs: 4, Hosts: 3, Prefixes: 2, NextHops: 2, Groups: 1, VTEPs: 2}})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	errs := d.VRFs().Apply(context.Background(), []reconcile.Row[intent.VNI, intent.VRF]{
		{Key: 1, Value: intent.VRF{VNI: 1, Index: 5}}, {Key: 2, Value: intent.VRF{VNI: 2, Index: 2}}})
	if errs == nil || !errors.Is(errs[0], ebpf.ErrFull) || errs[1] != nil {
		t.Errorf("VRFs: %v", errs)
	}
	for _, c := range []struct {
		name  string
		limit int
		route func(i int) intent.Route
	}{
		{"hosts", 3, func(i int) intent.Route { return block(red, fmt.Sprintf("10.0.0.%d/32", i)) }},
		{"prefixes4", 2, func(i int) intent.Route { return block(red, fmt.Sprintf("10.%d.0.0/16", i)) }},
		{"prefixes6", 2, func(i int) intent.Route { return block(red, fmt.Sprintf("fd00:%d::/64", i)) }},
	} {
		var rows []reconcile.Row[intent.RouteKey, intent.Route]
		for i := range 5 {
			r := c.route(i)
			rows = append(rows, reconcile.Row[intent.RouteKey, intent.Route]{Key: r.Key, Value: r})
		}
		failed := 0
		for _, err := range d.Routes().Apply(context.Background(), rows) {
			if errors.Is(err, ebpf.ErrFull) {
				failed++
			} else if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if failed != 5-c.limit {
			t.Errorf("%s: %d rows failed, want %d", c.name, failed, 5-c.limit)
		}
		for _, f := range d.Fills() {
			if f.Map == c.name && (f.Used != c.limit || f.Max != c.limit) {
				t.Errorf("fill %+v", f)
			}
		}
	}
}

func TestResizeKeepsRows(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node()).Close()
	d := load(t, ebpf.Config{Dir: dir, Node: node(), Limits: ebpf.Limits{VRFs: 100, Hosts: 500, Prefixes: 600, Gateways: 50, NextHops: 70}})
	wantWorld(t, d)
	runRows(t, dir, d, []row{{name: "forwards", in: fromFabric(in4("10.20.0.9", "10.10.0.5")), out: lo}})
	d.Close()
	wantWorld(t, load(t, ebpf.Config{Dir: dir, Node: node()}))
}

func TestOneWriter(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node())
	if _, err := ebpf.Load(ebpf.Config{Dir: dir, Node: node(), Bridges: bridges{}}); !errors.Is(err, ebpf.ErrInUse) {
		t.Errorf("a second Load: %v", err)
	}
}

// Losing one of several next hops moves only its own flows.
func TestNextHopGroup(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	tr := tracer(t, dir)
	hops := []intent.NextHop{hop(addr("192.0.2.21"), 1), hop(addr("192.0.2.22"), 1), hop(addr("192.0.2.23"), 1), hop(addr("2001:db8::24"), 1)}
	pick := func() map[string]netip.Addr {
		out := map[string]netip.Addr{}
		for i := range 250 {
			src := fmt.Sprintf("10.10.0.%d", i+1)
			if src == "10.10.0.66" {
				continue
			}
			res, err := tr.Trace(context.Background(), fromOVN(out4(src, "10.40.0.1")))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range res.Steps {
				if s.What == ebpf.StepNextHop {
					out[src] = s.Addr
				}
			}
		}
		return out
	}
	apply(t, d.Routes(), routes(remote(red, "10.40.0.0/24", hops...)))
	before := pick()
	share := map[netip.Addr]int{}
	for _, h := range before {
		share[h]++
	}
	for _, h := range hops {
		if share[h.VTEP] < 30 {
			t.Errorf("next hop %s has %d of %d flows", h, share[h.VTEP], len(before))
		}
	}
	apply(t, d.Routes(), routes(remote(red, "10.40.0.0/24", hops[:3]...)))
	for src, now := range pick() {
		if before[src] != hops[3].VTEP && before[src] != now {
			t.Errorf("%s moved from %s to %s", src, before[src], now)
		}
	}
}
