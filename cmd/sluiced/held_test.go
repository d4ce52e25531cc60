package main

import (
	"testing"

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
