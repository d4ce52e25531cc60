package tables

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// A row is in place, waits, or failed for a reason.
func TestStateOfARow(t *testing.T) {
	for _, tc := range []struct {
		name       string
		programmed bool
		err        error
		want       status.State
		reason     string
	}{
		{"there", true, nil, status.OK, ""},
		{"waits", false, fmt.Errorf("%w for its turn", reconcile.ErrNotReady), status.Pending, "waiting"},
		{"map full", false, fmt.Errorf("map hosts: %w", syscall.E2BIG), status.Error, "full"},
		{"foreign", false, reconcile.ErrForeign, status.Error, "foreign"},
		{"not wanted any more", false, nil, status.Pending, ""},
	} {
		state, reason, text := StateOf(tc.programmed, tc.err)
		if state != tc.want || reason != tc.reason || (text == "") != (tc.err == nil) {
			t.Errorf("%s: %s, %q, %q", tc.name, state, reason, text)
		}
	}
}
