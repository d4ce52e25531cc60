package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// deadDrivers list nothing and take nothing.
func deadDrivers() tables.Drivers {
	return driversOf(func(d tables.Drivers) {
		tables.Drive(d, intent.Bridges, reconcile.ReadOnly(reconcile.Unseen[intent.BridgeKey, intent.Bridge]{}))
		tables.Drive(d, intent.VRFs, reconcile.ReadOnly(reconcile.Unseen[intent.VNI, intent.VRF]{}))
		tables.Drive(d, intent.Gateways, reconcile.ReadOnly(reconcile.Unseen[intent.GatewayKey, intent.Gateway]{}))
		tables.Drive(d, intent.ServedNextHops, reconcile.ReadOnly(reconcile.Unseen[intent.ServedKey, intent.Served]{}))
		tables.Drive(d, intent.VTEPs, reconcile.ReadOnly(reconcile.Unseen[netip.Addr, intent.VTEP]{}))
		tables.Drive(d, intent.Routes, reconcile.ReadOnly(reconcile.Unseen[intent.RouteKey, intent.Route]{}))
		tables.Drive(d, intent.SteeringFlows, reconcile.ReadOnly(reconcile.Unseen[intent.SteeringKey, intent.Steering]{}))
		tables.Drive(d, intent.Policies, reconcile.ReadOnly(reconcile.Unseen[intent.VNI, intent.VRFPolicy]{}))
		tables.Drive(d, intent.Announcements, reconcile.ReadOnly(reconcile.Unseen[intent.RouteKey, intent.Announcement]{}))
	})
}

// deadNode is a node whose tables list nothing and take nothing.
func deadNode(d *daemon) *node { return nodeWith(d, deadDrivers()) }

func nodeWith(d *daemon, drivers tables.Drivers) *node {
	n := &node{d: d, ended: make(chan struct{})}
	n.tables = tables.New(drivers, tables.Sources{
		OVN: d.steps.OVNInSync, BGP: func() bool { return true }, Pending: n.pending.has,
		Lingers: func(intent.NextHopSet, func(netip.Addr) bool) bool { return false },
	}, tables.Options{Status: d.reg, Log: d.log})
	n.underlay = &fabricPart{tables: tables.NewUnderlay(driversOf(func(d tables.Drivers) {
		tables.Drive(d, intent.UnderlayRoutes, reconcile.ReadOnly(reconcile.Unseen[netip.Prefix, intent.UnderlayRoute]{}))
		tables.Drive(d, intent.UnderlayAnnouncements, reconcile.ReadOnly(reconcile.Unseen[netip.Prefix, intent.UnderlayAnnouncement]{}))
	}), tables.UnderlaySources{BGP: func() bool { return true }, Fabric: func() error { return nil }}, tables.Options{Status: d.reg, Log: d.log})}
	return n
}

var (
	addr   = netip.MustParseAddr
	prefix = netip.MustParsePrefix
)

// What a node reported ends with it.
func TestNodeTakesItsReportsAlong(t *testing.T) {
	d := idleDaemon()
	n := deadNode(d)
	n.tables.Pipeline.Update(func() {
		tables.Of(n.tables, intent.Bridges).Set(map[intent.BridgeKey]intent.Bridge{"br-ex": {Name: "br-ex"}})
	})
	n.tables.Pipeline.Pass(t.Context())
	if len(d.reg.Problems()) != 1 {
		t.Fatalf("problems %+v", d.reg.Problems())
	}
	d.reg.SetCondition("bgp", true, "in-sync", "")
	n.leave(t.Context())
	if p := d.reg.Problems(); len(p) != 0 {
		t.Errorf("problems of a node that is gone: %+v", p)
	}
	c := d.reg.Conditions()
	if len(c) != 2 || c[0].Name != "announcements" || !c[0].Ready || c[1].Name != "bgp" || c[1].Ready || c[0].Reason != "stopped" || c[1].Reason != "stopped" {
		t.Errorf("conditions %+v", c)
	}
}

// End-of-RIB goes out when all databases are read, all tables too, and nothing
// that is to be announced waits.
func TestEverythingIsToldOnlyWhenAllIsKnown(t *testing.T) {
	d := idleDaemon()
	n := deadNode(d)
	d.sync(ovn.InSync{SB: true, VSwitch: true})
	n.tables.Pipeline.Pass(t.Context())
	n.underlay.tables.Pipeline.Pass(t.Context())
	if n.toldAll() {
		t.Error("without the Northbound database")
	}
	d.sync(ovn.InSync{SB: true, VSwitch: true, NB: true})
	if !n.toldAll() {
		t.Error("there is nothing more to tell")
	}
	k := intent.NewRouteKey(1001, prefix("10.0.0.0/24"))
	n.tables.Pipeline.Update(func() {
		tables.Of(n.tables, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{k: {Key: k}})
	})
	n.tables.Pipeline.Pass(t.Context())
	if n.toldAll() {
		t.Error("an announcement waits for its gate")
	}
}

func TestStateOfARow(t *testing.T) {
	for _, tc := range []struct {
		name       string
		programmed bool
		err        error
		want       status.State
		reason     string
	}{
		{"there", true, nil, status.OK, ""},
		{"waits", false, fmt.Errorf("%w for its turn", reconcile.ErrNotReady), status.Pending, "waiting"},
		{"map full", false, fmt.Errorf("map hosts: %w", syscall.E2BIG), status.Error, "full"},
		{"foreign", false, reconcile.ErrForeign, status.Error, "foreign"},
		{"not wanted any more", false, nil, status.Pending, ""},
	} {
		state, reason, text := tables.StateOf(tc.programmed, tc.err)
		if state != tc.want || reason != tc.reason || (text == "") != (tc.err == nil) {
			t.Errorf("%s: %s, %q, %q", tc.name, state, reason, text)
		}
	}
}

// A route that waits is pending, one that failed is an error.
func TestRoutesTellWhyTheyAreNotThere(t *testing.T) {
	d := idleDaemon()
	n := deadNode(d)
	k := intent.NewRouteKey(1001, prefix("fd00::/64"))
	n.tables.Pipeline.Update(func() {
		tables.Of(n.tables, intent.Routes).Set(map[intent.RouteKey]intent.Route{k: {Key: k, Kind: intent.RouteBlock}})
	})
	if r := n.routes(0); len(r) != 1 || r[0].State != status.Pending {
		t.Errorf("before a pass: %+v", r)
	}
	n.tables.Pipeline.Pass(t.Context())
	if r := n.routes(0); len(r) != 1 || r[0].State != status.Error || r[0].Error == "" {
		t.Errorf("after one that failed: %+v", r)
	}
}

func TestConditionOfBGP(t *testing.T) {
	up := bgp.NeighborStatus{Address: addr("192.0.2.1"), State: "established"}
	down := bgp.NeighborStatus{Address: addr("2001:db8::1"), State: "active"}
	for _, tc := range []struct {
		name   string
		s      bgp.Status
		err    error
		ready  bool
		reason string
		detail string
	}{
		{"all up", bgp.Status{InSync: true, Neighbors: []bgp.NeighborStatus{up}}, nil, true, "in-sync", "1 of 1 neighbours, 0 EVPN routes in, 0 out"},
		{"one down", bgp.Status{InSync: true, Neighbors: []bgp.NeighborStatus{up, down}}, nil, true, "in-sync", "2001:db8::1"},
		{"all down", bgp.Status{InSync: true, Neighbors: []bgp.NeighborStatus{down}}, nil, false, "no-session", "2001:db8::1"},
		{"receiving", bgp.Status{Neighbors: []bgp.NeighborStatus{up}}, nil, false, "receiving", "1 of 1"},
		{"nobody to talk to", bgp.Status{InSync: true}, nil, true, "no-neighbors", ""},
		{"port taken", bgp.Status{Problem: "address in use", Neighbors: []bgp.NeighborStatus{down}}, nil, false, "not-started", "address in use"},
		{"no answer", bgp.Status{}, errors.New("no answer"), false, "unknown", "no answer"},
	} {
		ready, reason, detail := speakerCondition(tc.s, tc.err)
		if ready != tc.ready || reason != tc.reason || !strings.Contains(detail, tc.detail) || (tc.detail == "") != (detail == "") {
			t.Errorf("%s: %v, %s, %q", tc.name, ready, reason, detail)
		}
	}
}

// A session that its prefix limit ended is a problem until it is back.
func TestPrefixLimitIsAProblem(t *testing.T) {
	d := idleDaemon()
	rep := d.reg.Reporter(bgpReports)
	n := bgp.NeighborStatus{Address: addr("2001:db8::1"), State: bgp.StatePrefixLimit, Retry: time.Date(2026, 1, 1, 12, 30, 0, 0, time.UTC)}
	rep.Replace(overLimit(bgp.Status{Neighbors: []bgp.NeighborStatus{n, {Address: addr("192.0.2.1"), State: "established"}}}))
	if o, ok := d.reg.Get(bgpReports, "neighbor", "2001:db8::1"); !ok || o.Reason != "prefix-limit" || !strings.Contains(o.Error, "12:30:00") || len(d.reg.Problems()) != 1 {
		t.Errorf("problems %+v", d.reg.Problems())
	}
	n.State = "established"
	rep.Replace(overLimit(bgp.Status{Neighbors: []bgp.NeighborStatus{n}}))
	if p := d.reg.Problems(); len(p) != 0 {
		t.Errorf("problems %+v", p)
	}
}

// So is one that says what cannot be read, and one that does not take a family.
func TestSuspectNeighborsAreProblems(t *testing.T) {
	d := idleDaemon()
	d.reg.Reporter(bgpReports).Replace(suspects(bgp.Status{Neighbors: []bgp.NeighborStatus{
		{Address: addr("192.0.2.1"), State: "established"},
		{Address: addr("192.0.2.2"), State: "established", Missing: bgp.FamilyEVPN, LastError: "not offered"},
		{Address: addr("2001:db8::3"), State: "established", Ignored: 7, LastError: "not read"},
	}}))
	for key, want := range map[string]string{"192.0.2.2": "family-not-offered", "2001:db8::3": "unreadable-updates"} {
		if o, ok := d.reg.Get(bgpReports, "neighbor", key); !ok || o.Reason != want || o.Error == "" {
			t.Errorf("%s: %+v", key, o)
		}
	}
	if n := len(d.reg.Problems()); n != 2 {
		t.Errorf("%d problems", n)
	}
}

func TestNodesWithOurRouterIDAreProblems(t *testing.T) {
	d := idleDaemon()
	rep := d.reg.Reporter(bgpReports)
	rep.Replace(doubles(bgp.Status{RouterID: addr("10.1.2.3"), SameRouterID: []bgp.Identity{{RouterID: addr("10.1.2.3"), VTEP: addr("2001:db8::7")}},
		SameVTEP: []bgp.Identity{{RouterID: addr("10.1.2.4"), VTEP: addr("192.0.2.1")}, {RouterID: addr("10.1.2.5"), VTEP: addr("192.0.2.1")}}}))
	if o, ok := d.reg.Get(bgpReports, "vtep", "192.0.2.1"); !ok || o.Reason != "same-vtep" || !strings.Contains(o.Error, "10.1.2.3") || !strings.Contains(o.Error, "10.1.2.4") || !strings.Contains(o.Error, "10.1.2.5") {
		t.Errorf("problem %+v", o)
	}
	if o, ok := d.reg.Get(bgpReports, "vtep", "2001:db8::7"); !ok || o.Reason != "same-router-id" || !strings.Contains(o.Error, "10.1.2.3") {
		t.Errorf("problem %+v", o)
	}
	rep.Replace(doubles(bgp.Status{}))
	if p := d.reg.Problems(); len(p) != 0 {
		t.Errorf("problems %+v", p)
	}
}

// Facts that leave the node who it is do not end it; another VTEP does, and so
// does the end of its role.
func TestOnlyAnotherIdentityEndsANode(t *testing.T) {
	d := idleDaemon()
	d.cfg = config.Default()
	d.cfg.Fabric.VTEP = addr("2001:db8::9")
	d.ovs = ovs.New(ovs.Config{})
	n := deadNode(d)
	n.facts = nodeFacts{gateway: true, systemID: "a1", encapIP: addr("192.0.2.1")}
	var err error
	if n.id, err = d.identify(n.facts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	type answer struct {
		next    nodeFacts
		changed bool
	}
	await := func(ctx context.Context) chan answer {
		out := make(chan answer, 1)
		go func() {
			next, changed := n.awaitFacts(ctx)
			out <- answer{next, changed}
		}()
		return out
	}
	same := n.facts
	done := await(ctx)
	same.encapIP, same.integration = addr("192.0.2.2"), "br-new"
	d.facts <- same
	eventually(t, "the facts are taken", func() error {
		if len(d.facts) > 0 {
			return errors.New("not yet")
		}
		return nil
	})
	cancel()
	if a := <-done; a.changed {
		t.Fatalf("the same node: %+v", a)
	}
	for name, next := range map[string]nodeFacts{
		"another router MAC and router ID": {gateway: true, systemID: "b1"},
		"no gateway node any more":         {systemID: "a1"},
		"no system-id":                     {gateway: true},
	} {
		done = await(t.Context())
		d.facts <- next
		if a := <-done; !a.changed || a.next != next {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestLongestMatch(t *testing.T) {
	n := deadNode(idleDaemon())
	gw := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	route := func(s string, kind intent.RouteKind, g intent.GatewayKey) intent.Route {
		return intent.Route{Key: intent.NewRouteKey(1001, prefix(s)), Kind: kind, Gateway: g}
	}
	rows := map[intent.RouteKey]intent.Route{}
	for _, r := range []intent.Route{route("10.0.0.0/8", intent.RouteRemote, intent.GatewayKey{}), route("10.1.0.0/24", intent.RouteLocal, gw), route("10.1.0.5/32", intent.RouteBlock, intent.GatewayKey{})} {
		rows[r.Key] = r
	}
	n.tables.Pipeline.Update(func() { tables.Of(n.tables, intent.Routes).Set(rows) })
	for a, want := range map[string]string{"10.1.0.5": "10.1.0.5/32", "10.1.0.6": "10.1.0.0/24", "10.2.0.1": "10.0.0.0/8", "11.0.0.1": "invalid Prefix", "fd00::1": "invalid Prefix"} {
		r, ok := n.longest(1001, addr(a))
		if got := r.Key.Prefix.String(); got != want || ok != r.Key.Prefix.IsValid() {
			t.Errorf("%s: %s, want %s", a, got, want)
		}
	}
	if g, err := n.gatewayFor(1001, addr("10.1.0.6")); err != nil || g != gw {
		t.Errorf("gateway %s, %v", g, err)
	}
	if _, err := n.gatewayFor(1001, addr("10.2.0.1")); err == nil {
		t.Error("a VRF without a gateway has one")
	}
}

func driversOf(add func(tables.Drivers)) tables.Drivers {
	d := tables.Drivers{}
	add(d)
	return d
}
