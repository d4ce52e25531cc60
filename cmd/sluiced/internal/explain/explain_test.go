package explain

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// withheld is a gateway with one route of each family that it is to announce, and does not yet.
func withheld(still gateway.Still) node {
	log := slog.New(slog.DiscardHandler)
	still.Reg = status.NewRegistry(log)
	n := node{gateway.NewStill(still), &Explainer{reg: still.Reg, log: log}}
	n.Tables().Pipeline.Update(func() {
		wanted := map[intent.RouteKey]intent.Announcement{}
		for _, p := range []string{"10.10.0.0/24", "fd00:10::/64"} {
			k := intent.NewRouteKey(1001, netip.MustParsePrefix(p))
			wanted[k] = intent.Announcement{Key: k}
		}
		tables.Of(n.Tables(), intent.Announcements).Set(wanted)
	})
	n.Tables().Pipeline.Pass(context.Background())
	return n
}

// An explanation names what keeps the node's announcements back, and so does a route's state.
func TestExplainNamesWhatIsWithheld(t *testing.T) {
	const lost, broken = "no device of the node has the VTEP 192.0.2.77", "sluice-vxlan is foreign"
	for name, tt := range map[string]struct {
		still  gateway.Still
		state  status.State
		reason string
		want   string
	}{
		"drained":   {gateway.Still{Withdrawn: true, Stage: drain.Drained}, status.Pending, reason.Drained, " is not announced: the node is drained; 'sluicectl undrain' puts it back"},
		"withdrawn": {gateway.Still{Withdrawn: true, Stage: drain.Withdrawn}, status.Pending, reason.Withdrawn, " is not announced: the node is being drained, and its routes are withdrawn; 'sluicectl undrain' puts it back"},
		"no VTEP":   {gateway.Still{NoVTEP: true}, status.Error, reason.NoVTEP, " is not announced: no-vtep: " + lost},
		"broken":    {gateway.Still{Broken: broken}, status.Error, reason.Broken, " is not announced: broken: " + broken},
		"its turn":  {gateway.Still{}, status.Pending, reason.Waiting, " is not announced: waiting"},
	} {
		for src, want := range map[string]string{"10.10.0.11": "10.10.0.0/24", "fd00:10::11": "fd00:10::/64"} {
			n := withheld(tt.still)
			steps := []status.Step{{Layer: status.LayerBGP, Object: "announcement of " + src + " in VRF 1001", Detail: "no announcement covers the source"},
				{Layer: status.LayerBGP, Object: "route to " + src + " in VRF 1001", Detail: "no neighbour sent a route that covers it"}}
			n.explainWithheld(status.Query{VRF: 1001, Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(src)}, steps)
			if s := steps[0]; s.Found || !strings.HasPrefix(s.Detail, want+tt.want) {
				t.Errorf("%s: source %+v", name, s)
			}
			if s := steps[1]; !s.Found || !strings.HasPrefix(s.Detail, "behind this node; "+want+tt.want) {
				t.Errorf("%s: destination %+v", name, s)
			}
			k := intent.NewRouteKey(1001, netip.MustParsePrefix(want))
			_, err := tables.Of(n.Tables(), intent.Announcements).State(k)
			if state, why, text := n.UnannouncedState(k, err); state != tt.state || why != tt.reason || text == "" {
				t.Errorf("%s: the route's state %s, %s, %q", name, state, why, text)
			}
		}
	}
}

// What has been announced of a node that withholds nothing stays as BGP tells it.
func TestExplainOfANodeThatServes(t *testing.T) {
	n := withheld(gateway.Still{})
	before := []status.Step{{Layer: status.LayerBGP, Object: "announcement of 10.10.0.11 in VRF 1001", Found: true, Detail: "10.10.0.0/16 is announced"},
		{Layer: status.LayerBGP, Object: "announcement of 10.99.0.11 in VRF 1001", Detail: "no announcement covers the source", Hint: "expose it"}}
	for i, src := range []string{"10.10.0.11", "10.99.0.11"} {
		steps := []status.Step{before[i]}
		n.explainWithheld(status.Query{VRF: 1001, Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr("10.20.0.11")}, steps)
		if steps[0] != before[i] {
			t.Errorf("%+v", steps[0])
		}
	}
	if notes := n.fabricNotes(before); len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
}

// Another node with this one's router ID or VTEP is named where a route is missing, and in a note
// where none is.
func TestExplainNamesDoubles(t *testing.T) {
	n := withheld(gateway.Still{})
	n.reg.Reporter("bgp").Replace([]status.Object{
		{Kind: "vtep", Key: "2001:db8::7", State: status.Error, Reason: reason.SameRouterID, Error: "router ID 10.1.2.3 is also used by another"},
		{Kind: "vtep", Key: "192.0.2.1", State: status.Error, Reason: reason.SameVTEP, Error: "VTEP 192.0.2.1 is also used by another"},
	})
	for _, dst := range []string{"10.20.0.11", "fd00:20::11"} {
		steps := []status.Step{{Layer: status.LayerDataplane, Object: "route to destination " + dst, Detail: "no route covers it (no_route)", Hint: "see BGP"},
			{Layer: status.LayerDataplane, Object: "route to source " + dst, Detail: "no local route"},
			{Layer: status.LayerBGP, Object: "route to " + dst + " in VRF 1001", Detail: "no neighbour sent a route that covers it", Hint: "ask"}}
		if notes := n.fabricNotes(steps); len(notes) != 2 {
			t.Errorf("notes %q", notes)
		}
		n.explainWithheld(status.Query{VRF: 1001, Src: netip.MustParseAddr(dst), Dst: netip.MustParseAddr(dst)}, steps)
		for i, want := range []bool{true, false, true} {
			d := steps[i].Detail
			if named := strings.Contains(d, "; same-router-id: router ID 10.1.2.3 is also used by") && strings.Contains(d, "same-vtep: "); named != want || steps[i].Found {
				t.Errorf("%+v", steps[i])
			}
		}
		if notes := n.fabricNotes(steps); len(notes) != 0 {
			t.Errorf("notes of what the steps name: %q", notes)
		}
	}
}

// A row that the maps hold and nobody asks for now is found like a wanted one.
func TestAHeldRouteIsFound(t *testing.T) {
	for _, s := range []string{"10.20.0.0/24", "fd20::/64"} {
		k := intent.NewRouteKey(1001, netip.MustParsePrefix(s))
		actual := map[intent.RouteKey]intent.Route{k: {Key: k, Kind: intent.RouteRemote}}
		if r, ok := longestOf(nil, actual, 1001, netip.MustParsePrefix(s).Addr().Next()); !ok || r.Key != k {
			t.Errorf("%s: %+v, %t", s, r, ok)
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	steps := func(session bool) []status.Step {
		return []status.Step{{Layer: status.LayerOVN, Object: "Port_Binding a"}, {Layer: status.LayerBGP, Object: "BGP session", Found: session},
			{Layer: status.LayerBGP, Object: "route to 10.0.0.1 in VRF 1"}, {Layer: status.LayerBGP, Object: "announcement of 10.0.0.2 in VRF 1"}}
	}
	for _, row := range []struct {
		session, inSync bool
		want            []bool
	}{
		{true, true, []bool{false, false, true, false}},
		{false, true, []bool{false, true, true, true}}, // neighbours may still have the announcement
		{true, false, []bool{true, false, true, true}},
		{false, false, []bool{true, true, true, true}},
	} {
		got := steps(row.session)
		keep(got, row.inSync, noSession(got))
		for i, s := range got {
			if s.Stale != row.want[i] {
				t.Errorf("%+v: %+v", row, s)
			}
		}
	}
}

// Without a session the missing route to the destination leads to BGP's; nothing else does.
func TestBlameSession(t *testing.T) {
	for _, dst := range []string{"10.0.0.1", "fd00::1"} {
		steps := []status.Step{{Object: "route to destination " + dst, Hint: "see the route"}, {Object: "route to source " + dst, Hint: "see OVN"}}
		if blameSession(steps); !strings.Contains(steps[0].Hint, "BGP session") || steps[1].Hint != "see OVN" {
			t.Errorf("%+v", steps)
		}
	}
}

func TestLongestMatch(t *testing.T) {
	n := node{gateway.NewStill(gateway.Still{}), nil}
	gw := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	route := func(s string, kind intent.RouteKind, g intent.GatewayKey) intent.Route {
		return intent.Route{Key: intent.NewRouteKey(1001, netip.MustParsePrefix(s)), Kind: kind, Gateway: g}
	}
	rows := map[intent.RouteKey]intent.Route{}
	for _, r := range []intent.Route{route("10.0.0.0/8", intent.RouteRemote, intent.GatewayKey{}), route("10.1.0.0/24", intent.RouteLocal, gw), route("10.1.0.5/32", intent.RouteBlock, intent.GatewayKey{})} {
		rows[r.Key] = r
	}
	n.Tables().Pipeline.Update(func() { tables.Of(n.Tables(), intent.Routes).Set(rows) })
	for a, want := range map[string]string{"10.1.0.5": "10.1.0.5/32", "10.1.0.6": "10.1.0.0/24", "10.2.0.1": "10.0.0.0/8", "11.0.0.1": "invalid Prefix", "fd00::1": "invalid Prefix"} {
		r, ok := n.longest(1001, netip.MustParseAddr(a))
		if got := r.Key.Prefix.String(); got != want || ok != r.Key.Prefix.IsValid() {
			t.Errorf("%s: %s, want %s", a, got, want)
		}
	}
	if g, err := n.gatewayFor(1001, netip.MustParseAddr("10.1.0.6")); err != nil || g != gw {
		t.Errorf("gateway %s, %v", g, err)
	}
	if _, err := n.gatewayFor(1001, netip.MustParseAddr("10.2.0.1")); err == nil {
		t.Error("a VRF without a gateway has one")
	}
}
