package report

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
)

// What keeps a neighbour's routes away is in JSON and in metrics, not in words alone.
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
	if m := neighborMetrics(n); m.Ignored != 7 {
		t.Errorf("metrics %+v", m)
	}
}
