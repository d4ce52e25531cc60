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
	brushed      = "excused: an edit in the pair's cloud"
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

// bounds are those of a whole run: how often each kind may be, all kinds together, and how many
// packets may be excused in all. Edits have no times of their own: those that cost nothing are not counted.
type bounds struct{ each, sum, packets int }

// chaosBounds are three times what a run usually has: 81 rounds beside a load of 20 on two processors
// had one claimed gateway with 48 packets, and one edit with 1, of 118,000 packets. A short run may
// have two of a kind, three of all, and 150 packets, since others' faults do not come evenly.
func chaosBounds(rounds int) bounds {
	return bounds{each: max(2, rounds/20), sum: max(3, rounds/10), packets: max(150, rounds*2)}
}

// exceeded says which bounds are.
func (m masked) exceeded(b bounds) (out []string) {
	times, packets := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		one := m[kind]
		if packets += one.packets; kind == brushed {
			continue
		}
		if times += one.times; one.times > b.each {
			out = append(out, fmt.Sprintf("%s: %d times, at most %d may be; the last: %s", kind, one.times, b.each, one.last))
		}
	}
	if times > b.sum {
		out = append(out, fmt.Sprintf("%d things of others were excused or mended, at most %d may be", times, b.sum))
	}
	if packets > b.packets {
		out = append(out, fmt.Sprintf("%d packets were excused in the whole run, at most %d may be", packets, b.packets))
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
	if b != (bounds{2, 3, 150}) || chaosBounds(200) != (bounds{10, 20, 400}) {
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
		"few times, and much": {[]string{claimedAnew}, 151, "151 packets"},
	} {
		m := masked{}
		for _, kind := range row.kinds {
			m.add(kind, "x", row.packets)
		}
		got := strings.Join(m.exceeded(b), "; ")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// A little in each round is much in a run: the bound is one of the run, not of the packets that it sends.
func TestMaskedIsBoundedInSum(t *testing.T) {
	const rounds = 200 // of some 1,400 packets
	for packets, want := range map[int]string{1: "", 3: "600 packets were excused in the whole run, at most 400 may be"} {
		m := masked{}
		for i := range rounds {
			m.add(brushed, fmt.Sprintf("round %d", i+1), packets)
		}
		if got := strings.Join(m.exceeded(chaosBounds(rounds)), "; "); got != want {
			t.Errorf("%d packets in each round: %q, want %q", packets, got, want)
		}
	}
}
