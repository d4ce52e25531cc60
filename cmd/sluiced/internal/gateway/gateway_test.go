package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadGateway is one whose tables list nothing and take nothing.
func deadGateway(t *testing.T) *Gateway {
	t.Helper()
	return NewStill(Still{})
}

// sync has the databases of s in sync, by an event that says nothing else.
func (g *Gateway) sync(s ovn.InSync) {
	g.steps.Take(ovn.Event{Rows: ovn.NewRows(), InSync: s})
}

func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

var (
	addr   = netip.MustParseAddr
	prefix = netip.MustParsePrefix
)

// What a node reported ends with it.
func TestNodeTakesItsReportsAlong(t *testing.T) {
	g := deadGateway(t)
	g.tables.Pipeline.Update(func() {
		tables.Of(g.tables, intent.Bridges).Set(map[intent.BridgeKey]intent.Bridge{"br-ex": {Name: "br-ex"}})
	})
	g.tables.Pipeline.Pass(t.Context())
	if len(g.reg.Problems()) != 1 {
		t.Fatalf("problems %+v", g.reg.Problems())
	}
	g.reg.SetCondition("bgp", true, reason.InSync, "")
	g.reg.SetCondition("standby", true, reason.Standby, "2 gateway ports are bound to other nodes and may move to this one")
	next := Facts{Gateway: true, SystemID: "b1new"}
	g.leave(t.Context(), next)
	if p := g.reg.Problems(); len(p) != 0 {
		t.Errorf("problems of a node that is gone: %+v", p)
	}
	want := []status.Condition{
		{Name: "announcements", Ready: true, Reason: reason.Stopped, Detail: next.awaits()}, {Name: "bgp", Reason: reason.Stopped, Detail: next.awaits()}, {Name: "standby", Ready: true, Reason: reason.NoStandby},
	}
	got := g.reg.Conditions()
	for i := range got {
		got[i].Since = time.Time{}
	}
	if !slices.Equal(got, want) {
		t.Errorf("conditions %+v, want %+v", got, want)
	}
}

// What a component waits for whose gateway has ended is said, whatever ended it.
func TestStoppedSaysWhatItAwaits(t *testing.T) {
	for name, row := range map[string]struct {
		next  Facts
		words []string
	}{
		"another name":        {Facts{Gateway: true, SystemID: "b1new"}, []string{`chassis "b1new"`, "router MAC and VTEP are loaded"}},
		"no gateway any more": {Facts{SystemID: "b1"}, []string{"no longer a gateway", "in sync"}},
	} {
		for _, word := range row.words {
			if got := row.next.awaits(); !strings.Contains(got, word) {
				t.Errorf("%s: %q does not say %q", name, got, word)
			}
		}
	}
}

// End-of-RIB goes out when all databases are read, all tables too, and nothing
// that is to be announced waits.
func TestEverythingIsToldOnlyWhenAllIsKnown(t *testing.T) {
	g := deadGateway(t)
	g.sync(ovn.InSync{SB: true, VSwitch: true})
	g.tables.Pipeline.Pass(t.Context())
	g.underlay.Tables().Pipeline.Pass(t.Context())
	if g.Told().All {
		t.Error("without the Northbound database")
	}
	g.sync(ovn.InSync{SB: true, VSwitch: true, NB: true})
	if !g.Told().All {
		t.Error("there is nothing more to tell")
	}
	k := intent.NewRouteKey(1001, prefix("10.0.0.0/24"))
	g.tables.Pipeline.Update(func() {
		tables.Of(g.tables, intent.Announcements).Set(map[intent.RouteKey]intent.Announcement{k: {Key: k}})
	})
	g.tables.Pipeline.Pass(t.Context())
	if g.Told().All {
		t.Error("an announcement waits for its gate")
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
		{"all up", bgp.Status{InSync: true, Neighbors: []bgp.NeighborStatus{up}}, nil, true, "in-sync", "1 of 1 neighbours, 0 EVPN routes in, 0 to announce"},
		{"one down", bgp.Status{InSync: true, Neighbors: []bgp.NeighborStatus{up, down}}, nil, true, "in-sync", "2001:db8::1"},
		{"all down", bgp.Status{InSync: true, Neighbors: []bgp.NeighborStatus{down}}, nil, false, "no-session", "2001:db8::1"},
		{"receiving", bgp.Status{Neighbors: []bgp.NeighborStatus{up}}, nil, false, "receiving", "1 of 1"},
		{"the server dials", bgp.Status{InSync: true, Dials: true, Neighbors: []bgp.NeighborStatus{up}}, nil, true, "in-sync", "the BGP server takes no connections and dials"},
		{"nobody to talk to", bgp.Status{InSync: true}, nil, true, "no-neighbors", ""},
		{"port taken", bgp.Status{Problem: "address in use", Neighbors: []bgp.NeighborStatus{down}}, nil, false, "not-started", "address in use"},
		{"no answer", bgp.Status{}, errors.New("no answer"), false, "unknown", "no answer"},
	} {
		ready, reason, detail := speakerCondition(tc.s, tc.err)
		if ready != tc.ready || reason != tc.reason || !strings.Contains(detail, tc.detail) || (tc.detail == "") != (detail == "") {
			t.Errorf("%s: %v, %s, %q", tc.name, ready, reason, detail)
		}
		if strings.Contains(detail, "dials") != tc.s.Dials {
			t.Errorf("%s: %q", tc.name, detail)
		}
	}
}

// A session that its prefix limit ended is a problem until it is back.
func TestPrefixLimitIsAProblem(t *testing.T) {
	reg := status.NewRegistry(slog.New(slog.DiscardHandler))
	rep := reg.Reporter(bgpReports)
	n := bgp.NeighborStatus{Address: addr("2001:db8::1"), State: bgp.StatePrefixLimit, Retry: time.Date(2026, 1, 1, 12, 30, 0, 0, time.UTC)}
	rep.Replace(overLimit(bgp.Status{Neighbors: []bgp.NeighborStatus{n, {Address: addr("192.0.2.1"), State: "established"}}}))
	if o, ok := reg.Get(bgpReports, "neighbor", "2001:db8::1"); !ok || o.Reason != "prefix-limit" || !strings.Contains(o.Error, "12:30:00") || len(reg.Problems()) != 1 {
		t.Errorf("problems %+v", reg.Problems())
	}
	n.State = "established"
	rep.Replace(overLimit(bgp.Status{Neighbors: []bgp.NeighborStatus{n}}))
	if p := reg.Problems(); len(p) != 0 {
		t.Errorf("problems %+v", p)
	}
}

// So is one that says what cannot be read, one that does not take a family, and one whose announcements
// are refused; own routes that come back are none.
func TestSuspectNeighborsAreProblems(t *testing.T) {
	reg := status.NewRegistry(slog.New(slog.DiscardHandler))
	reg.Reporter(bgpReports).Replace(suspects(bgp.Status{Neighbors: []bgp.NeighborStatus{
		{Address: addr("192.0.2.1"), State: "established"},
		{Address: addr("192.0.2.2"), State: "established", Missing: bgp.FamilyEVPN, LastError: "not offered"},
		{Address: addr("2001:db8::3"), State: "established", Ignored: 7, LastError: "not read"},
		{Address: addr("2001:db8::4"), State: "established", Rejected: map[bgp.Reason]int{bgp.Reason(reason.RouteOwnAS): 2}, UnicastRejected: map[bgp.Reason]int{bgp.Reason(reason.RouteOwnAS): 5}},
		{Address: addr("2001:db8::5"), State: "established", Rejected: map[bgp.Reason]int{bgp.ReasonOwn: 2, bgp.Reason(reason.RouteOwnOriginator): 3, bgp.Reason(reason.RouteOwnAS): 0}},
	}}))
	if o, _ := reg.Get(bgpReports, "neighbor", "2001:db8::4"); !strings.HasPrefix(o.Error, "7 routes are refused") || !strings.Contains(o.Error, "as-override") {
		t.Errorf("own AS: %q", o.Error)
	}
	for key, want := range map[string]string{"192.0.2.2": "family-not-offered", "2001:db8::3": "unreadable-updates", "2001:db8::4": "own-as"} {
		if o, ok := reg.Get(bgpReports, "neighbor", key); !ok || o.Reason != want || o.Error == "" {
			t.Errorf("%s: %+v", key, o)
		}
	}
	if n := len(reg.Problems()); n != 3 {
		t.Errorf("%d problems", n)
	}
}

func TestNodesWithOurRouterIDAreProblems(t *testing.T) {
	reg := status.NewRegistry(slog.New(slog.DiscardHandler))
	rep := reg.Reporter(bgpReports)
	rep.Replace(doubles(bgp.Status{RouterID: addr("10.1.2.3"), SameRouterID: []bgp.Identity{{RouterID: addr("10.1.2.3"), VTEP: addr("2001:db8::7")}},
		SameVTEP: []bgp.Identity{{RouterID: addr("10.1.2.4"), VTEP: addr("192.0.2.1")}, {RouterID: addr("10.1.2.5"), VTEP: addr("192.0.2.1")}}}))
	if o, ok := reg.Get(bgpReports, "vtep", "192.0.2.1"); !ok || o.Reason != "same-vtep" || !strings.Contains(o.Error, "10.1.2.3") || !strings.Contains(o.Error, "10.1.2.4") || !strings.Contains(o.Error, "10.1.2.5") {
		t.Errorf("problem %+v", o)
	}
	if o, ok := reg.Get(bgpReports, "vtep", "2001:db8::7"); !ok || o.Reason != "same-router-id" || !strings.Contains(o.Error, "10.1.2.3") {
		t.Errorf("problem %+v", o)
	}
	rep.Replace(doubles(bgp.Status{}))
	if p := reg.Problems(); len(p) != 0 {
		t.Errorf("problems %+v", p)
	}
}

// Facts that leave the node who it is do not end it; another VTEP does, and so
// does the end of its role.
func TestOnlyAnotherIdentityEndsANode(t *testing.T) {
	g := deadGateway(t)
	g.cfg.Fabric.VTEP = addr("2001:db8::9")
	facts := make(chan Facts, 1)
	g.facts = Facts{Gateway: true, SystemID: "a1", EncapIP: addr("192.0.2.1")}
	var err error
	if g.id, err = identify(g.cfg, g.facts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	type answer struct {
		next    Facts
		changed bool
	}
	await := func(ctx context.Context) chan answer {
		out := make(chan answer, 1)
		go func() {
			next, changed := g.awaitFacts(ctx, facts)
			out <- answer{next, changed}
		}()
		return out
	}
	same := g.facts
	done := await(ctx)
	same.EncapIP, same.Integration = addr("192.0.2.2"), "br-new"
	facts <- same
	eventually(t, "the facts are taken", func() error {
		if len(facts) > 0 {
			return errors.New("not yet")
		}
		return nil
	})
	cancel()
	if a := <-done; a.changed {
		t.Fatalf("the same node: %+v", a)
	}
	for name, next := range map[string]Facts{
		"another router MAC and router ID": {Gateway: true, SystemID: "b1"},
		"no gateway node any more":         {SystemID: "a1"},
		"no system-id":                     {Gateway: true},
	} {
		done = await(t.Context())
		facts <- next
		if a := <-done; !a.changed || a.next != next {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// The error that ends BGP is the gateway's, and not the end of what ends with it: with a BGP server
// left behind the process has to end.
func TestErrorOfBGPEndsTheGateway(t *testing.T) {
	broken := errors.New("withdraw everything")
	for _, want := range []error{nil, broken} {
		synctest.Test(t, func(t *testing.T) {
			running, cancel := context.WithCancel(t.Context())
			defer cancel()
			group, running := errgroup.WithContext(running)
			group.Go(func() error {
				<-running.Done()
				return running.Err()
			})
			othersEnd := func() {
				cancel()
				synctest.Wait()
			}
			group.Go(func() error { return endsOthers(othersEnd, func() error { return want }) })
			if err := loop.IgnoreEnd(group.Wait()); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
		})
	}
}

// A step counts the VIPs whose Maglev tables it changes.
func TestMaglevTablesOfAStep(t *testing.T) {
	g := deadGateway(t)
	for i, slots := range []uint32{1021, 4093, 4093, 1021} {
		v := intent.VIP{Key: intent.VIPKey{VNI: 1001, Protocol: intent.UDP, Addr: addr("fd99::1"), Port: 53}, Slots: slots}
		before := g.sizes.Count()
		g.patch(0, wanted.With(wanted.Difference{}, intent.VIPs, wanted.Delta[intent.VIPKey, intent.VIP]{Set: map[intent.VIPKey]intent.VIP{v.Key: v}}), nil)
		if got := g.sizes.Count() - before; got != uint64(i%2) {
			t.Errorf("change %d: %d", i, got)
		}
	}
}

func TestConditionOfBGPCountsWhatIsExposed(t *testing.T) {
	s := bgp.Status{InSync: true, Exposed: 4, Neighbors: []bgp.NeighborStatus{{Address: addr("192.0.2.1"), State: "established"}}}
	if _, _, detail := speakerCondition(s, nil); !strings.Contains(detail, "0 EVPN routes in, 0 to announce, 4 exposed addresses to announce") {
		t.Errorf("detail %q", detail)
	}
}
