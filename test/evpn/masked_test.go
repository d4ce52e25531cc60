package evpn_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// masked counts what a test does not hold against Sluice, and what it mends of others: for each
// kind how often, and how many packets. Whatever is masked may hide a fault of Sluice's, so each
// kind is bounded, and so are all of them together.
type masked map[string]*mask

type mask struct {
	times, packets int
	// last is what it was the last time.
	last string
}

// The kinds.
const (
	lostTunnels  = "excused: BFD of OVN's tunnels was lost"
	claimedAnew  = "excused: ovn-controller claimed a gateway"
	recomputed   = "mended: ovn-controller computed everything anew"
	purged       = "mended: ovs-vswitchd made all datapath flows anew"
	databaseDied = "mended: a crashed ovsdb-server was started"
)

func (m masked) add(kind, what string, packets int) {
	if m[kind] == nil {
		m[kind] = &mask{}
	}
	m[kind].times++
	m[kind].packets += packets
	m[kind].last = what
}

func (m masked) times(kind string) int {
	if m[kind] == nil {
		return 0
	}
	return m[kind].times
}

// bounds are how often each kind may be, all kinds together, and what part of the packets that were
// sent may be excused, in parts of a thousand.
type bounds struct{ each, sum, perMille int }

// chaosBounds are those of a run: of ten rounds one of each kind, and three of all. A short run
// may have two and three: others' faults do not come evenly.
func chaosBounds(rounds int) bounds {
	return bounds{each: max(2, rounds/10), sum: max(3, rounds*3/10), perMille: 10}
}

// exceeded says which bounds are; sent are all packets.
func (m masked) exceeded(b bounds, sent int) (out []string) {
	times, packets := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		one := m[kind]
		times, packets = times+one.times, packets+one.packets
		if one.times > b.each {
			out = append(out, fmt.Sprintf("%s: %d times, at most %d may be; the last: %s", kind, one.times, b.each, one.last))
		}
	}
	if times > b.sum {
		out = append(out, fmt.Sprintf("%d things of others were excused or mended, at most %d may be", times, b.sum))
	}
	if packets*1000 > sent*b.perMille {
		out = append(out, fmt.Sprintf("%d of %d packets were excused, at most %d of 1000 may be", packets, sent, b.perMille))
	}
	return out
}

func (m masked) String() string {
	if len(m) == 0 {
		return "nothing is masked"
	}
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s: %d times, %d packets; the last: %s", kind, m[kind].times, m[kind].packets, m[kind].last))
	}
	return "masked:\n  " + strings.Join(out, "\n  ")
}

func TestMaskedIsBounded(t *testing.T) {
	b := chaosBounds(10)
	if b != (bounds{2, 3, 10}) || chaosBounds(200) != (bounds{20, 60, 10}) {
		t.Errorf("bounds %+v, and %+v of 200 rounds", b, chaosBounds(200))
	}
	for name, row := range map[string]struct {
		kinds   []string
		packets int
		want    string
	}{
		"nothing":             {nil, 0, ""},
		"within":              {[]string{lostTunnels, lostTunnels, recomputed}, 1, ""},
		"one kind too often":  {[]string{lostTunnels, lostTunnels, lostTunnels}, 1, lostTunnels + ": 3 times, at most 2"},
		"all together":        {[]string{lostTunnels, claimedAnew, recomputed, purged}, 1, "4 things of others"},
		"few times, and much": {[]string{claimedAnew}, 101, "101 of 10000 packets"},
	} {
		m := masked{}
		for _, kind := range row.kinds {
			m.add(kind, "x", row.packets)
		}
		got := strings.Join(m.exceeded(b, 10_000), "; ")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
