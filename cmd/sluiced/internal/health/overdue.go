package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

const (
	// overdueReports is the source of tables whose rows wait for long.
	overdueReports = "overdue"
	// overdueLook is how often the tables are asked: nothing tells that a wait goes on.
	overdueLook = 10 * time.Second
	// overduePatience is how long a row may wait for another one. A row that fails is tried
	// again within 30 s, and whoever waits for it follows: a shorter wait may be on its way out.
	overduePatience = 30 * time.Second
)

// WatchOverdue reports the tables of which rows wait for longer than that, until ctx ends. waited
// asks for the rows that wait since before a time.
func WatchOverdue(ctx context.Context, reg *status.Registry, waited func(before time.Time) []reconcile.Wait) error {
	var last []reconcile.Wait
	for loop.Sleep(ctx, beat.Until(overdueLook)) {
		now := waited(time.Now().Add(-overduePatience))
		reg.Reporter(overdueReports).Replace(overdue(again(now, last), overduePatience))
		last = now
	}
	return nil
}

// again are the waits of tables that waited at the last look, too. Rows that waited by order, as
// while the node was drained, have waited for long when that ends, and are in place soon.
func again(now, last []reconcile.Wait) (out []reconcile.Wait) {
	for _, w := range now {
		if slices.ContainsFunc(last, func(l reconcile.Wait) bool { return l.Table == w.Table }) {
			out = append(out, w)
		}
	}
	return out
}

// overdue has one object for each table.
func overdue(waited []reconcile.Wait, patience time.Duration) (out []status.Object) {
	for _, w := range waited {
		rows := "rows wait"
		if w.Rows == 1 {
			rows = "row waits"
		}
		out = append(out, status.Object{Kind: "table", Key: w.Table, State: status.Warning, Reason: reason.Overdue,
			Error: fmt.Sprintf("%d %s for more than %s, such as %s: %v", w.Rows, rows, patience, w.Key, w.Err)})
	}
	return out
}
