package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
)

// What keeps a neighbour's routes away is in JSON and in metrics, not in words alone.
func TestSuspectNeighborsForPrograms(t *testing.T) {
	n := bgp.NeighborStatus{Address: addr("2001:db8::1"), Families: bgp.FamilyIPv6, UnicastReceived: 3, UnicastSent: 2, Ignored: 7}
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

func TestConditionOfBGPCountsWhatIsExposed(t *testing.T) {
	s := bgp.Status{InSync: true, Exposed: 4, Neighbors: []bgp.NeighborStatus{{Address: addr("192.0.2.1"), State: "established"}}}
	if _, _, detail := speakerCondition(s, nil); !strings.Contains(detail, "0 EVPN routes in, 0 out, 4 exposed addresses out") {
		t.Errorf("detail %q", detail)
	}
}
