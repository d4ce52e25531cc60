package evpn_test

import (
	"regexp"
	"slices"
	"strings"
)

// counters are the parts of a flow's text that change by themselves.
var counters = regexp.MustCompile(`(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ?`)

// flows are the steering flows on a node's provider bridge, without counters.
// Ports have names: their numbers may change with a restart of ovs-vswitchd.
func (w *world) flows(node string) string {
	w.Helper()
	out, err := w.Exec(w.Context(), node, "ovs-ofctl", "dump-flows", "--names", "br-ex")
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "cookie=0x0,") || !strings.Contains(line, "cookie=") {
			continue
		}
		lines = append(lines, strings.TrimSpace(counters.ReplaceAllString(line, "")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
