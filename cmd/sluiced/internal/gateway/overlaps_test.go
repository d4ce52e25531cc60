package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/evpn"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Southbound is asked about a route that stays, one VNI after the other, and again after a while;
// what it said is reported until the route is gone.
func TestOverlapsAreAskedForOnce(t *testing.T) {
	var asked []intent.VNI
	var fails error
	all := overlaps{vnis: map[intent.VNI]*overlap{}, ask: func(_ context.Context, vni intent.VNI) ([]ovn.Gateway, error) {
		asked = append(asked, vni)
		return []ovn.Gateway{{Port: fmt.Sprintf("cr-%d", vni), Router: "other", Chassis: "a2", MACs: [][]string{{"02:00:00:00:00:01 10.10.0.1/24 2001:db8:10::1/64"}}}}, fails
	}}
	exposed := []evpn.Exposed{
		{VNI: 1001, Router: "own", Object: "in-1", Prefix: netip.MustParsePrefix("10.10.0.0/24")},
		{VNI: 1002, Router: "own", Object: "in-2", Prefix: netip.MustParsePrefix("2001:db8:10::/64")},
	}
	start := time.Now()
	for _, step := range []struct {
		what    string
		at      time.Duration
		vnis    []intent.VNI
		fails   error
		asked   []intent.VNI
		reports []string
	}{
		{"a route comes", 0, []intent.VNI{1001}, nil, nil, nil},
		{"it goes soon, another comes", 4 * time.Second, []intent.VNI{1002}, nil, nil, nil},
		{"the first is back", 8 * time.Second, []intent.VNI{1001, 1002}, nil, nil, nil},
		{"the second has stayed, no answer", 15 * time.Second, []intent.VNI{1001, 1002}, errors.New("no session"), []intent.VNI{1002}, nil},
		{"the first has, too soon", 20 * time.Second, []intent.VNI{1001, 1002}, nil, nil, nil},
		{"now", 25 * time.Second, []intent.VNI{1001, 1002}, nil, []intent.VNI{1001}, []string{"in-1"}},
		{"the second one's next turn", 35 * time.Second, []intent.VNI{1001, 1002}, nil, []intent.VNI{1002}, []string{"in-1", "in-2"}},
		{"nothing is due", 10 * time.Minute, []intent.VNI{1001, 1002}, nil, nil, []string{"in-1", "in-2"}},
		{"again, no answer: what is known stays", 10*time.Minute + 25*time.Second, []intent.VNI{1001, 1002}, errors.New("no session"), []intent.VNI{1001}, []string{"in-1", "in-2"}},
		{"no answer in time", 10*time.Minute + 35*time.Second, []intent.VNI{1001, 1002}, context.DeadlineExceeded, []intent.VNI{1001}, []string{"in-1", "in-2"}},
		{"the other one is due", 10*time.Minute + 45*time.Second, []intent.VNI{1001, 1002}, nil, []intent.VNI{1002}, []string{"in-1", "in-2"}},
		{"the server is left alone", 20 * time.Minute, []intent.VNI{1001, 1002}, nil, nil, []string{"in-1", "in-2"}},
		{"and asked again", 20*time.Minute + 35*time.Second, []intent.VNI{1001, 1002}, nil, []intent.VNI{1001}, []string{"in-1", "in-2"}},
		{"one route is gone", 20*time.Minute + 36*time.Second, []intent.VNI{1002}, nil, nil, []string{"in-2"}},
		{"the other, too", 20*time.Minute + 37*time.Second, nil, nil, nil, nil},
	} {
		asked, fails = nil, step.fails
		answered, err := all.look(t.Context(), start.Add(step.at), step.vnis)
		if !slices.Equal(asked, step.asked) || !errors.Is(err, step.fails) && len(asked) > 0 || answered != (len(asked) > 0 && step.fails == nil) {
			t.Errorf("%s: asked for %v, %t, %v", step.what, asked, answered, err)
		}
		var reports []string
		for _, o := range all.report(exposed, "a1") {
			reports = append(reports, o.Key)
		}
		if slices.Sort(reports); !slices.Equal(reports, step.reports) {
			t.Errorf("%s: reports %v, want %v", step.what, reports, step.reports)
		}
	}
}
