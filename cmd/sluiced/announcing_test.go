package main

import (
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A node that is to announce routes and announces none for long is not ready; neither a
// drain nor a restart, in which routes come soon, is such.
func TestSilence(t *testing.T) {
	const patience = 10 * time.Second
	s, now := silence{patience: patience}, time.Unix(0, 0)
	for _, step := range []struct {
		what           string
		after          time.Duration
		wanted, actual int
		drained        bool
		again          time.Duration
		word           string
	}{
		{"no tenant", 0, 0, 0, false, 0, reason.Idle},
		{"tenants came", 0, 14, 0, false, patience, ""},
		{"their routes came", time.Second, 14, 14, false, 0, reason.Announcing},
		{"all withdrawn", time.Hour, 14, 0, false, patience, ""},
		{"a retry", patience / 4, 14, 0, false, patience * 3 / 4, ""},
		{"still", patience, 14, 0, false, 0, reason.Silent},
		{"and still", patience, 14, 0, false, 0, reason.Silent},
		{"one is back", 0, 14, 1, false, 0, reason.Announcing},
		{"drained", 0, 14, 0, true, 0, reason.Idle},
		{"for long", time.Hour, 14, 0, true, 0, reason.Idle},
		{"put back", 0, 14, 0, false, patience, ""},
		{"standby: nothing is to be announced", time.Hour, 0, 0, false, 0, reason.Idle},
	} {
		now = now.Add(step.after)
		again, word := s.look(now, reconcile.Stats{Wanted: step.wanted, Actual: step.actual}, step.drained)
		if again != step.again || word != step.word {
			t.Errorf("%s: look again after %s, %q; want %s, %q", step.what, again, word, step.again, step.word)
		}
	}
}
