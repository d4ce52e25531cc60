package nexthop

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each step has the VTEPs with a route and those without; "+rr" is a neighbour with a route.
func TestDecide(t *testing.T) {
	all := []string{"192.0.2.1", "192.0.2.2", "2001:db8::3"}
	type step struct {
		at         time.Duration
		reachable  string
		lost       string
		cutOff     bool
		decideMore bool
	}
	const second = time.Second
	for name, steps := range map[string][]step{
		"one goes and comes": {
			{0, "192.0.2.1 192.0.2.2 2001:db8::3 +rr", "", false, false},
			{second, "192.0.2.1 2001:db8::3 +rr", "192.0.2.2", false, false},
			{2 * second, "192.0.2.1 192.0.2.2 2001:db8::3 +rr", "", false, false},
		},
		"all go, and the neighbour has a route": {
			{0, "+rr", "192.0.2.1 192.0.2.2 2001:db8::3", false, false},
			{second, "192.0.2.1 +rr", "192.0.2.2 2001:db8::3", false, false},
		},
		"cut off: what was lost stays, the others too": {
			{0, "192.0.2.1 192.0.2.2 +rr", "2001:db8::3", false, false},
			{second, "", "2001:db8::3", true, false},
			{9 * second, "", "2001:db8::3", true, false},
			{20 * second, "+rr", "2001:db8::3", false, true},
			{25 * second, "192.0.2.1 2001:db8::3 +rr", "", false, true},
			{26 * second, "192.0.2.1 +rr", "", false, true},
			{30 * second, "192.0.2.1 2001:db8::3 +rr", "192.0.2.2", false, false},
		},
		"cut off, and all come back": {
			{0, "", "", true, false},
			{second, "192.0.2.1", "", false, true},
			{2 * second, "192.0.2.1 192.0.2.2 2001:db8::3", "", false, false},
			{3 * second, "192.0.2.1 192.0.2.2", "2001:db8::3", false, false},
		},
		"cut off twice": {
			{0, "", "", true, false},
			{second, "+rr", "", false, true},
			{2 * second, "", "", true, false},
			{20 * second, "+rr", "", false, true},
			{30 * second, "+rr", "192.0.2.1 192.0.2.2 2001:db8::3", false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var tracker Tracker
			begin := time.Unix(1_700_000_000, 0)
			for i, s := range steps {
				refused := map[netip.Addr]string{}
				for _, a := range all {
					why := "no route"
					if slices.Contains(strings.Fields(s.reachable), a) {
						why = ""
					}
					refused[netip.MustParseAddr(a)] = why
				}
				got := tracker.Decide(Seen{Refused: refused, Neighbors: func() (int, bool) { return 1, strings.Contains(s.reachable, "+rr") }}, begin.Add(s.at))
				var lost []string
				for _, a := range slices.SortedFunc(maps.Keys(got.Lost), netip.Addr.Compare) {
					lost = append(lost, a.String())
				}
				if strings.Join(lost, " ") != s.lost || got.CutOff != s.cutOff || !got.Again.IsZero() != s.decideMore {
					t.Fatalf("step %d: %+v, want %+v", i, got, s)
				}
			}
		})
	}
}

// BGP forgets the VTEPs of a node that is cut off, and a link that is down its neighbour: it is
// cut off until a neighbour or a VTEP has a route. So is a node that starts without one.
func TestCutOffWithoutVTEPs(t *testing.T) {
	one := map[netip.Addr]string{netip.MustParseAddr("2001:db8::3"): "no route"}
	for name, steps := range map[string][]struct {
		refused   map[netip.Addr]string
		neighbors int
		reachable bool
		want      bool
	}{
		"nothing is known":         {{nil, 0, false, false}},
		"no VTEP, and a neighbour": {{nil, 1, true, false}},
		"a start without a route":  {{nil, 1, false, true}, {nil, 1, true, false}},
		"VTEPs are forgotten":      {{one, 1, false, true}, {nil, 1, false, true}, {nil, 0, false, true}, {nil, 1, false, true}, {nil, 1, true, false}, {nil, 0, false, false}},
		"a VTEP has a route again": {{one, 1, false, true}, {nil, 1, false, true}, {map[netip.Addr]string{netip.MustParseAddr("192.0.2.1"): ""}, 1, false, false}},
	} {
		var tracker Tracker
		for i, s := range steps {
			got := tracker.Decide(Seen{Refused: s.refused, Neighbors: func() (int, bool) { return s.neighbors, s.reachable }}, time.Unix(int64(i), 0))
			if got.CutOff != s.want || len(got.Lost) != 0 {
				t.Errorf("%s: step %d: %+v, want cut off %t", name, i, got, s.want)
			}
		}
	}
}
