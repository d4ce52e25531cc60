package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// withheldNode is a node with one route of each family that it is to announce, and does not yet.
func withheldNode(t *testing.T) *node {
	t.Helper()
	d := idleDaemon()
	var err error
	if d.drain, err = drain.Open(filepath.Join(t.TempDir(), "drain.json"), time.Now()); err != nil {
		t.Fatal(err)
	}
	n := deadNode(d)
	n.tables.Pipeline.Update(func() {
		wanted := map[intent.RouteKey]intent.Announcement{}
		for _, p := range []string{"10.10.0.0/24", "fd00:10::/64"} {
			k := intent.NewRouteKey(1001, prefix(p))
			wanted[k] = intent.Announcement{Key: k}
		}
		tables.Of(n.tables, intent.Announcements).Set(wanted)
	})
	n.tables.Pipeline.Pass(t.Context())
	return n
}

// An explanation names what keeps the node's announcements back, and so do the lists.
func TestExplainNamesWhatIsWithheld(t *testing.T) {
	lost, broken := "the VTEP 192.0.2.1 is gone from device lo; add the address again", "sluice-vxlan is foreign"
	for name, tt := range map[string]struct {
		set    func(*node)
		state  status.State
		reason string
		want   string
	}{
		"drained": {func(n *node) {
			n.withdrawn.Store(true)
			if err := n.d.drain.Begin(t.Context(), time.Now().Add(-time.Hour), 0); err != nil {
				t.Fatal(err)
			}
			n.d.drain.Observe(time.Now().Add(-time.Minute), nil, true)
		}, status.Pending, reason.Drained, " is not announced: the node is drained; 'sluicectl undrain' puts it back"},
		"withdrawn": {func(n *node) { n.withdrawn.Store(true) }, status.Pending, reason.Withdrawn, " is not announced: the node is being drained, and its routes are withdrawn; 'sluicectl undrain' puts it back"},
		"no VTEP":   {func(n *node) { n.vtep.lost.Store(&lost) }, status.Error, reason.NoVTEP, " is not announced: no-vtep: " + lost},
		"broken":    {func(n *node) { n.fabricBroken.Store(&broken) }, status.Error, reason.Broken, " is not announced: broken: " + broken},
		"its turn":  {func(*node) {}, status.Pending, reason.Waiting, " is not announced: waiting"},
	} {
		for src, want := range map[string]string{"10.10.0.11": "10.10.0.0/24", "fd00:10::11": "fd00:10::/64"} {
			n := withheldNode(t)
			tt.set(n)
			steps := []status.Step{{Layer: status.LayerBGP, Object: "announcement of " + src + " in VRF 1001", Detail: "no announcement covers the source"},
				{Layer: status.LayerBGP, Object: "route to " + src + " in VRF 1001", Detail: "no neighbour sent a route that covers it"}}
			n.explainWithheld(status.Query{VRF: 1001, Src: addr(src), Dst: addr(src)}, steps)
			if s := steps[0]; s.Found || !strings.HasPrefix(s.Detail, want+tt.want) {
				t.Errorf("%s: source %+v", name, s)
			}
			if s := steps[1]; !s.Found || !strings.HasPrefix(s.Detail, "behind this node; "+want+tt.want) {
				t.Errorf("%s: destination %+v", name, s)
			}
			k := intent.NewRouteKey(1001, prefix(want))
			_, err := tables.Of(n.tables, intent.Announcements).State(k)
			if state, why, text := n.unannouncedState(k, err); state != tt.state || why != tt.reason || text == "" {
				t.Errorf("%s: the route's state %s, %s, %q", name, state, why, text)
			}
			rows := map[intent.VNI]*status.VRF{1001: {State: status.OK, Local: 1}, 1002: {State: status.OK}, 1003: {State: status.Error, StateReason: "full", Local: 1}}
			n.addWithheld(rows)
			state, why := tt.state, tt.reason
			if tt.reason == reason.Waiting { // of the row alone
				state, why = status.OK, ""
			}
			if v := rows[1001]; v.State != state || v.StateReason != why || rows[1002].State != status.OK || rows[1003].StateReason != "full" {
				t.Errorf("%s: VRFs %+v, %+v, %+v", name, v, rows[1002], rows[1003])
			}
		}
	}
}

// What has been announced of a node that withholds nothing stays as BGP tells it.
func TestExplainOfANodeThatServes(t *testing.T) {
	n := withheldNode(t)
	before := []status.Step{{Layer: status.LayerBGP, Object: "announcement of 10.10.0.11 in VRF 1001", Found: true, Detail: "10.10.0.0/16 is announced"},
		{Layer: status.LayerBGP, Object: "announcement of 10.99.0.11 in VRF 1001", Detail: "no announcement covers the source", Hint: "expose it"}}
	for i, src := range []string{"10.10.0.11", "10.99.0.11"} {
		steps := []status.Step{before[i]}
		n.explainWithheld(status.Query{VRF: 1001, Src: addr(src), Dst: addr("10.20.0.11")}, steps)
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
	n := withheldNode(t)
	n.d.reg.Reporter(bgpReports).Replace(doubles(bgp.Status{RouterID: addr("10.1.2.3"), SameRouterID: []bgp.Identity{{RouterID: addr("10.1.2.3"), VTEP: addr("2001:db8::7")}},
		SameVTEP: []bgp.Identity{{RouterID: addr("10.1.2.4"), VTEP: addr("192.0.2.1")}}}))
	for _, dst := range []string{"10.20.0.11", "fd00:20::11"} {
		steps := []status.Step{{Layer: status.LayerDataplane, Object: "route to destination " + dst, Detail: "no route covers it (no_route)", Hint: "see BGP"},
			{Layer: status.LayerDataplane, Object: "route to source " + dst, Detail: "no local route"},
			{Layer: status.LayerBGP, Object: "route to " + dst + " in VRF 1001", Detail: "no neighbour sent a route that covers it", Hint: "ask"}}
		if notes := n.fabricNotes(steps); len(notes) != 2 {
			t.Errorf("notes %q", notes)
		}
		n.explainWithheld(status.Query{VRF: 1001, Src: addr(dst), Dst: addr(dst)}, steps)
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
