package balancing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/test/bench/measure"
)

// The goals: what balancing may leave of the connections/s of direct ones, and make of the time
// that a request takes.
const (
	leastOfDirect = 0.95
	mostOfDirect  = 1.05
)

// compare makes results of the targets' rounds. Of connections/s the ratio is the median of
// those of rounds, which stood side by side.
func (b *bench) compare(from asking, v6 bool, list []*target) {
	direct, beside, sluice, ovn := list[0], list[1], list[2], list[3]
	add := func(what string, value float64, unit string, goal *measure.Goal, format string, args ...any) {
		b.add(fmt.Sprintf("%s %s %s", from.name, familyName(v6), what), value, unit, goal, format, args...)
	}
	rate := func(t *target) float64 { return measure.Median(t.busy.PerSecond) }
	compare := func(what string, t, against *target, unit string, goal *measure.Goal, remark string) {
		ratios := measure.Ratios(t.busy.PerSecond, against.busy.PerSecond)
		low, high := measure.Quartiles(ratios)
		add(what, measure.Median(ratios), unit, goal, "%.0f/s against %.0f/s; half of the %d rounds of %d between %.2f and %.2f; %s",
			rate(t), rate(against), len(ratios), b.Connections, low, high, remark)
	}
	compare("connections/s", sluice, direct, "x direct", measure.AtLeast(leastOfDirect), sluice.used.String()+"; spread "+spread(sluice.answers))
	compare("connections/s", sluice, beside, "x direct beside load balancers", measure.AtLeast(leastOfDirect),
		fmt.Sprintf("conntrack has %.0f %% of Sluice's, and %.0f %% of the others", 100*sluice.tracked, 100*beside.tracked))
	compare("connections/s", sluice, ovn, "x ct_lb", measure.AtLeast(1), ovn.used.String()+"; spread "+spread(ovn.answers))
	compare("direct beside load balancers, connections/s", beside, direct, "x direct", nil, "what OVN's load balancers cost others")
	cost := func(t *target) float64 { return float64(t.used.lab().Microseconds()) / float64(len(t.busy.Took)) }
	add("processor time of a connection", cost(sluice)/cost(direct), "x direct", nil,
		"%.0f us against %.0f us, %.0f us beside load balancers, %.0f us of OVN", cost(sluice), cost(direct), cost(beside), cost(ovn))
	p50 := func(t *target) float64 { return measure.Quantile(t.alone.Took, 0.5) }
	p99 := func(t *target) float64 { return measure.Quantile(t.alone.Took, 0.99) }
	add("request p50", p50(sluice)/p50(direct), "x direct", measure.AtMost(mostOfDirect),
		"%.2f ms against %.2f ms, %d of a client alone", p50(sluice), p50(direct), len(sluice.alone.Took))
	add("request p50", p50(sluice)/p50(ovn), "x ct_lb", measure.AtMost(1), "%.2f ms of OVN", p50(ovn))
	add("request p99", p99(sluice)/p99(direct), "x direct", nil,
		"%.2f ms against %.2f ms, %.2f ms of OVN; with %d clients at once %.2f, %.2f, %.2f ms", p99(sluice), p99(direct), p99(ovn),
		b.Clients, measure.Quantile(sluice.busy.Took, 0.99), measure.Quantile(direct.busy.Took, 0.99), measure.Quantile(ovn.busy.Took, 0.99))
}

// spread is how many of the answers each backend has given, in parts of a hundred, in the order
// of their names.
func spread(answers map[string]int) string {
	all := 0
	for _, n := range answers {
		all += n
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		out = append(out, fmt.Sprintf("%.0f", 100*float64(answers[name])/float64(all)))
	}
	return strings.Join(out, "/") + " %"
}
