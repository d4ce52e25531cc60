package report

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/drain"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// still is a gateway on which nothing happens, as answers see it.
func still(s gateway.Still) node {
	return node{Gateway: gateway.NewStill(s), cfg: config.Default()}
}

// A route that waits is pending, one that failed is an error.
func TestRoutesTellWhyTheyAreNotThere(t *testing.T) {
	n := still(gateway.Still{})
	k := intent.NewRouteKey(1001, netip.MustParsePrefix("fd00::/64"))
	n.Tables().Pipeline.Update(func() {
		tables.Of(n.Tables(), intent.Routes).Set(map[intent.RouteKey]intent.Route{k: {Key: k, Kind: intent.RouteBlock}})
	})
	if r := n.routes(0); len(r) != 1 || r[0].State != status.Pending {
		t.Errorf("before a pass: %+v", r)
	}
	n.Tables().Pipeline.Pass(t.Context())
	if r := n.routes(0); len(r) != 1 || r[0].State != status.Error || r[0].Error == "" {
		t.Errorf("after one that failed: %+v", r)
	}
}

// A route that is handed to BGP and taken by no neighbour is not announced, and says so.
func TestUnannounced(t *testing.T) {
	route := func(vni intent.VNI, announced bool) status.Route {
		return status.Route{VNI: vni, Announced: status.Known(announced), State: status.OK}
	}
	routes := []status.Route{route(1, true), route(2, true), {VNI: 2, State: status.OK}, {VNI: 2, Announced: status.Known(true), State: status.Error, Error: "full"}}
	unannounced(routes, func(r status.Route) bool { return r.VNI == 1 })
	if !*routes[0].Announced || routes[0].State != status.OK || *routes[1].Announced || routes[1].State != status.Pending || routes[1].Error == "" ||
		routes[2].State != status.OK || *routes[3].Announced || routes[3].Error != "full" {
		t.Errorf("%+v", routes)
	}
}

// A VRF that only the maps have is listed, with the reason; a wanted one stays as it is.
func TestAHeldVRFIsListed(t *testing.T) {
	rows := map[intent.VNI]*status.VRF{1001: {VNI: 1001, State: status.OK}}
	actual := map[intent.VNI]intent.VRF{1001: {VNI: 1001, Index: 1}, 1002: {VNI: 1002, Index: 2}}
	addHeldVRFs(rows, actual, map[intent.VNI]ebpf.VRFCounters{}, "why")
	if v := rows[1002]; len(rows) != 2 || v == nil || v.Index != 2 || v.State != status.Pending || v.StateReason != "held" || v.Error != "why" {
		t.Errorf("rows %+v", rows)
	}
	if rows[1001].State != status.OK {
		t.Errorf("a wanted row: %+v", rows[1001])
	}
}

// What the node as a whole keeps back is the state of its VRFs that have local routes, and of no
// others.
func TestWithheldVRFs(t *testing.T) {
	for name, tt := range map[string]struct {
		still  gateway.Still
		state  status.State
		reason string
	}{
		"drained":  {gateway.Still{Withdrawn: true, Stage: drain.Drained}, status.Pending, reason.Drained},
		"no VTEP":  {gateway.Still{NoVTEP: true}, status.Error, reason.NoVTEP},
		"broken":   {gateway.Still{Broken: "sluice-vxlan is foreign"}, status.Error, reason.Broken},
		"its turn": {gateway.Still{}, status.OK, ""},
	} {
		rows := map[intent.VNI]*status.VRF{1001: {State: status.OK, Local: 1}, 1002: {State: status.OK}, 1003: {State: status.Error, StateReason: "full", Local: 1}}
		still(tt.still).addWithheld(rows)
		if v := rows[1001]; v.State != tt.state || v.StateReason != tt.reason || rows[1002].State != status.OK || rows[1003].StateReason != "full" {
			t.Errorf("%s: VRFs %+v, %+v, %+v", name, v, rows[1002], rows[1003])
		}
	}
}
