package report

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
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

// A VRF's routes are those that it imports or announces, and those that carry its VNI and that no VRF imports.
func TestRoutesOfAVRF(t *testing.T) {
	for _, tt := range []struct {
		route status.BGPRoute
		want  bool
	}{
		{status.BGPRoute{Label: 1001, VRFs: []intent.VNI{1001}}, true},
		{status.BGPRoute{Label: 2001, VRFs: []intent.VNI{1001, 2001}}, true},
		{status.BGPRoute{Label: 1001, Rejected: "no-import"}, true},
		{status.BGPRoute{Label: 2001, VRFs: []intent.VNI{2001}}, false},
		{status.BGPRoute{Label: 2001, Rejected: "no-import"}, false},
	} {
		if got := concerns(tt.route, 1001); got != tt.want {
			t.Errorf("%+v: %t", tt.route, got)
		}
	}
}
