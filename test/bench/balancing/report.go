package balancing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/test/bench/measure"
)

// leastOfDirect is what balancing may leave of the connections/s of direct ones.
const leastOfDirect = 0.95

// compare makes results of the targets' rounds. Of connections/s the ratio is the median of
// those of rounds, which stood side by side.
func (b *bench) compare(from asking, v6 bool, list []*target) {
	direct, beside, sluice, ovn := list[0], list[1], list[2], list[3]
	name := func(what string) string { return fmt.Sprintf("%s %s %s", from.name, familyName(v6), what) }
	rate := func(t *target) float64 { return measure.Median(t.busy.PerSecond) }
	ratio := func(a, b *target) float64 { return measure.Median(measure.Ratios(a.busy.PerSecond, b.busy.PerSecond)) }
	b.add(name("connections/s"), ratio(sluice, direct), "x direct", measure.AtLeast(leastOfDirect),
		"%.0f/s against %.0f/s, medians of %d rounds of %d; %s; spread %s", rate(sluice), rate(direct), len(sluice.busy.PerSecond), b.Connections, sluice.used, spread(sluice.answers))
	b.add(name("connections/s"), ratio(sluice, ovn), "x ct_lb", measure.AtLeast(1),
		"%.0f/s of OVN; %s; spread %s", rate(ovn), ovn.used, spread(ovn.answers))
	for _, q := range []struct {
		name string
		at   float64
		goal *measure.Goal
		ovn  *measure.Goal
	}{{"p50", 0.5, measure.AtMost(1 / leastOfDirect), measure.AtMost(1)}, {"p99", 0.99, nil, nil}} {
		at := func(t *target) float64 { return measure.Quantile(t.alone.Took, q.at) }
		b.add(name("request "+q.name), at(sluice)/at(direct), "x direct", q.goal, "%.2f ms against %.2f ms, %d of a client alone", at(sluice), at(direct), len(sluice.alone.Took))
		b.add(name("request "+q.name), at(sluice)/at(ovn), "x ct_lb", q.ovn, "%.2f ms of OVN", at(ovn))
		b.add(name("request "+q.name+", all at once"), measure.Quantile(sluice.busy.Took, q.at), "ms", nil, "%.2f ms direct, %.2f ms of OVN, %d clients", measure.Quantile(direct.busy.Took, q.at), measure.Quantile(ovn.busy.Took, q.at), b.Clients)
	}
	b.add(name("direct beside load balancers, connections/s"), ratio(beside, direct), "x direct", nil,
		"%.0f/s; conntrack has %.0f %% of them, and %.0f %% of Sluice's", rate(beside), 100*beside.tracked, 100*sluice.tracked)
}

// spread is how many of the answers each backend has given, in parts of a hundred, the most
// first.
func spread(answers map[string]int) string {
	all := 0
	for _, n := range answers {
		all += n
	}
	names := slices.SortedFunc(maps.Keys(answers), func(a, b string) int {
		return cmp.Or(cmp.Compare(answers[b], answers[a]), strings.Compare(a, b))
	})
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%.0f", 100*float64(answers[name])/float64(all)))
	}
	return strings.Join(out, "/") + " %"
}
