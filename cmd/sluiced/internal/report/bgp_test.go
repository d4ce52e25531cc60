package report

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What keeps a neighbour's routes away is in JSON, not in words alone. A session without EVPN is
// established, and serves nothing.
func TestSuspectNeighborsForPrograms(t *testing.T) {
	n := bgp.NeighborStatus{Address: netip.MustParseAddr("2001:db8::1"), Families: bgp.FamilyIPv6, UnicastReceived: 3, UnicastSent: 2, Ignored: 7}
	b, err := json.Marshal(neighborStatus(n, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ignoredUpdates":7`, `"unicastReceived":3`, `"unicastSent":2`, `"families":["ipv6"]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	n.State = "established"
	for missing, up := range map[bgp.Families]bool{0: true, bgp.FamilyEVPN: false} {
		if n.Missing = missing; neighborStatus(n, nil).Up != up {
			t.Errorf("up %t where %s is missing", !up, missing)
		}
	}
}

// A VRF's routes are those that it announces or whose targets it imports, whatever it rejected, and those
// without a VRF that have its VNI as label.
func TestRoutesOfAVRF(t *testing.T) {
	mine, other := []intent.VNI{1001}, []intent.VNI{2001}
	for _, tt := range []struct {
		route bgp.RouteInfo
		want  bool
	}{
		{bgp.RouteInfo{Label: 1001, VRFs: mine, Importers: mine}, true},
		{bgp.RouteInfo{Label: 2001, VRFs: mine, Importers: mine}, true},
		{bgp.RouteInfo{Label: 2001, Importers: mine, Rejected: bgp.ReasonUnreachable}, true},
		{bgp.RouteInfo{Label: 1001, Rejected: bgp.ReasonNotImported}, true},
		{bgp.RouteInfo{Label: 1001, VRFs: other, Importers: other}, false},
		{bgp.RouteInfo{Label: 2001, VRFs: other, Importers: other}, false},
		{bgp.RouteInfo{Label: 2001, Rejected: bgp.ReasonNotImported}, false},
	} {
		if got := concerns(tt.route, 1001); got != tt.want {
			t.Errorf("%+v: %t", tt.route, got)
		}
	}
}
