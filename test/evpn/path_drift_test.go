//go:build guest

package evpn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// What somebody takes out of a VRF's table is seen, told and made again; what is in
// its way is told as long as it is there.
func TestPathDrift(t *testing.T) {
	w := onAnyPath(t)
	w.redOn("kernel")
	w.reach("a-red1", addrB4, addrB6)
	if got := w.diff("a1"); len(got) != 0 {
		t.Errorf("nothing differs, but for %+v", got)
	}
	w.exec("a1", "ip", "-6", "route", "del", "fd00:20::/64", "table", "1001")
	if got := w.diff("a1"); !slices.ContainsFunc(got, func(c status.Change) bool {
		return c.Table == "kernel-routes" && c.Key == "1001 fd00:20::/64" && c.Action == "add"
	}) {
		t.Errorf("the missing route is not in %+v", got)
	}
	w.exec("a1", "ip", "route", "del", "10.20.0.0/24", "table", "1001")
	w.eventually("the route is made again", func() error {
		out, err := w.Exec(t.Context(), "a1", "ip", "route", "show", "10.20.0.0/24", "table", "1001")
		if err == nil && !strings.Contains(out, "10.20.0.0/24") {
			err = fmt.Errorf("it is not there: %q", out)
		}
		return err
	})
	const foreign = "10.20.0.0/25 dev br-1001 table 1001 proto static"
	w.exec("a1", "sh", "-c", "ip route add "+foreign)
	w.problem("a1", "path-differs", "1001 10.20.0.0/24")
	if got := w.diff("a1"); !slices.ContainsFunc(got, func(c status.Change) bool {
		return c.Key == "1001 10.20.0.0/24" && strings.Contains(c.Actual, "10.20.0.0/25 of protocol 4")
	}) {
		t.Errorf("the route of others is not in %+v", got)
	}
	w.exec("a1", "sh", "-c", "ip route del "+foreign)
	w.clean()
	w.redOn("ebpf")
}

// diff is what sluicectl shows of a node.
func (w *world) diff(node string) []status.Change {
	w.Helper()
	var d status.Diff
	if err := json.Unmarshal([]byte(w.exec(node, "sh", "-c", sluicectl()+" diff -o json || test $? = 3")), &d); err != nil {
		w.Fatal(err)
	}
	return d.Changes
}
