package northbound_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
)

// The rows that differ between two snapshots are those that somebody wrote in between, however many
// transactions that were.
func TestChanges(t *testing.T) {
	both(t, func(t *testing.T, server *ovsdbtest.Server) {
		s := open(t, server.Endpoint())
		empty := barrier(t, s)
		insert := func(tx *northbound.Tx, n int) {
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(n), Name: fmt.Sprintf("n%d", n)})
		}
		commit(t, s, func(tx *northbound.Tx) error {
			for n := range 100 {
				insert(tx, n)
			}
			tx.Insert(&nb.LoadBalancer{UUID: uuidOf(5), Name: "lb"})
			return nil
		})
		before := barrier(t, s)
		if n := len(northbound.Changes(empty, before)); n != 101 {
			t.Errorf("%d rows differ from none, want 101", n)
		}
		for _, n := range []int{0, 50, 99} {
			commit(t, s, func(tx *northbound.Tx) error { tx.Delete(&nb.LogicalSwitch{UUID: uuidOf(n)}); return nil })
			commit(t, s, func(tx *northbound.Tx) error { insert(tx, 200+n); return nil })
			commit(t, s, func(tx *northbound.Tx) error {
				tx.Update(&nb.LogicalSwitch{UUID: uuidOf((n + 7) % 100), Name: "other"}, "name")
				return nil
			})
		}
		after := barrier(t, s)
		names := func(changes []ovsdb.Change) map[string]string {
			out := map[string]string{}
			for _, c := range changes {
				name := func(row ovsdb.Row) string {
					if row == nil {
						return "none"
					}
					return row.(*nb.LogicalSwitch).Name
				}
				out[c.UUID] = name(c.Old) + " " + name(c.New)
			}
			return out
		}
		want, back := map[string]string{}, map[string]string{}
		for _, n := range []int{0, 50, 99} {
			for i, text := range map[int][2]string{n: {fmt.Sprintf("n%d", n), "none"}, 200 + n: {"none", fmt.Sprintf("n%d", 200+n)}, (n + 7) % 100: {fmt.Sprintf("n%d", (n+7)%100), "other"}} {
				want[uuidOf(i)], back[uuidOf(i)] = text[0]+" "+text[1], text[1]+" "+text[0]
			}
		}
		got := northbound.Changes(before, after)
		if !maps.Equal(names(got), want) || len(got) != len(want) {
			t.Errorf("%v\nwant %v", names(got), want)
		}
		if !slices.IsSortedFunc(got, func(a, b ovsdb.Change) int {
			if a.UUID < b.UUID {
				return -1
			}
			return 1
		}) {
			t.Error("not sorted")
		}
		if got := names(northbound.Changes(after, before)); !maps.Equal(got, back) {
			t.Errorf("%v\nwant %v", got, back)
		}
		if got := northbound.Changes(after, after); len(got) != 0 {
			t.Errorf("a snapshot differs from itself: %v", got)
		}
	})
}
