package ovn

import (
	"maps"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

func TestHeldWeightKeys(t *testing.T) {
	const a, b = "11111111-2222-3333-4444-555555555555", "21111111-2222-3333-4444-555555555555"
	got := HeldWeights(map[string]string{
		HeldWeightKey(a, "10.0.0.1:80"): "0", HeldWeightKey(a, "10.0.0.2:80"): "3", HeldWeightKey(b, "[fd00::1]:80"): "0",
		"sluice-m": "1021", "sluice-weight-": "0", "sluice-weight-" + a: "0", "sluice-weight-" + a + "-": "0", "sluice-weight-x-10.0.0.1:80": "0",
	})
	want := map[UUID]string{a: "10.0.0.1:80=0,10.0.0.2:80=3", b: "[fd00::1]:80=0"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A node without a Northbound session knows by Southbound's rows what is held for which of Northbound's.
func TestHeldWeightsBySouthbound(t *testing.T) {
	const id = "11111111-2222-3333-4444-555555555555"
	row := convertSouthLB(&sb.LoadBalancer{UUID: "south", Vips: map[string]string{"10.1.0.1:80": "10.0.0.1:80,10.0.0.2:80"}, ExternalIDs: map[string]string{"lb_id": id}})
	rows := NewRows()
	rows.BalanceBySouthbound(true)
	rows.Apply([]Change{Set(row), Set(convertSouthLB(&sb.SBGlobal{UUID: "global", Options: map[string]string{HeldWeightKey(id, "10.0.0.1:80"): "0"}}))})
	if got := rows.Held(row.(LoadBalancer)); got != "10.0.0.1:80=0" {
		t.Errorf("held: %q", got)
	}
	rows.Apply([]Change{Set(convertSouthLB(&sb.SBGlobal{UUID: "global"}))})
	if got := rows.Held(row.(LoadBalancer)); got != "" {
		t.Errorf("held: %q when nothing is held any more", got)
	}
}
