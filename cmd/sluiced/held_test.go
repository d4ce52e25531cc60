package main

import (
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// A row that the maps hold and nobody asks for now is found like a wanted one.
func TestAHeldRouteIsFound(t *testing.T) {
	for _, s := range []string{"10.20.0.0/24", "fd20::/64"} {
		k := intent.NewRouteKey(1001, prefix(s))
		actual := map[intent.RouteKey]intent.Route{k: {Key: k, Kind: intent.RouteRemote}}
		if r, ok := longestOf(nil, actual, 1001, prefix(s).Addr().Next()); !ok || r.Key != k {
			t.Errorf("%s: %+v, %t", s, r, ok)
		}
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

func TestWhatIsKept(t *testing.T) {
	steps := func() []status.Step {
		return []status.Step{{Layer: status.LayerOVN, Object: "Port_Binding a"}, {Layer: status.LayerBGP, Object: "BGP session"},
			{Layer: status.LayerBGP, Object: "route to 10.0.0.1 in VRF 1"}, {Layer: status.LayerBGP, Object: "announcement of 10.0.0.2 in VRF 1"}}
	}
	for inSync, want := range map[bool][]bool{true: {false, true, true, false}, false: {true, true, true, true}} {
		got := steps()
		keep(got, inSync)
		for i, s := range got {
			if s.Kept != want[i] {
				t.Errorf("in sync %t: %+v", inSync, s)
			}
		}
	}
}
