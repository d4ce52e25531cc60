package gateway

import (
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A node that is to announce routes and announces none for long is not ready; neither a
// drain nor a restart, in which routes come soon, is such.
func TestSilence(t *testing.T) {
	const patience = 10 * time.Second
	s, now := silence{none: spell{patience: patience}}, time.Unix(0, 0)
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
		again, word := s.look(now, reconcile.Stats{Wanted: step.wanted, Actual: step.actual}, step.drained, false)
		if again != step.again || word != step.word {
			t.Errorf("%s: look again after %s, %q; want %s, %q", step.what, again, word, step.again, step.word)
		}
	}
}

// A node that is to announce and has no session with any neighbour is not ready when they may
// have dropped its routes. The restart of a route reflector is shorter.
func TestAnnouncingToNobody(t *testing.T) {
	const patience, restart = 10 * time.Second, 2 * time.Minute
	s, now := silence{none: spell{patience: patience}, alone: spell{patience: restart}}, time.Unix(0, 0)
	for _, step := range []struct {
		what           string
		after          time.Duration
		wanted, actual int
		drained, alone bool
		again          time.Duration
		word           string
	}{
		{"all is well", 0, 14, 14, false, false, 0, reason.Announcing},
		{"the reflector restarts", time.Hour, 14, 14, false, true, restart, reason.Announcing},
		{"it still does", restart / 2, 14, 14, false, true, restart / 2, reason.Announcing},
		{"it is back", restart / 4, 14, 14, false, false, 0, reason.Announcing},
		{"it is away", time.Hour, 14, 14, false, true, restart, reason.Announcing},
		{"for long", restart, 14, 14, false, true, 0, reason.NoSession},
		{"for longer, and routes come", time.Second, 15, 15, false, true, 0, reason.NoSession},
		{"a bridge is missing too", time.Second, 15, 0, false, true, patience, reason.NoSession},
		{"for long", patience, 15, 0, false, true, 0, reason.Silent},
		{"a session is back", time.Second, 15, 15, false, false, 0, reason.Announcing},
		{"both at once", time.Hour, 15, 0, false, true, patience, ""},
		{"drained without a session", time.Hour, 15, 0, true, true, 0, reason.Idle},
		{"standby without a session", time.Hour, 0, 0, false, true, 0, reason.Idle},
	} {
		now = now.Add(step.after)
		again, word := s.look(now, reconcile.Stats{Wanted: step.wanted, Actual: step.actual}, step.drained, step.alone)
		if again != step.again || word != step.word {
			t.Errorf("%s: look again after %s, %q; want %s, %q", step.what, again, word, step.again, step.word)
		}
	}
	for c, want := range map[config.GracefulRestart]time.Duration{
		{Enabled: true, Time: configfile.Seconds(120)}:  restart,
		{Enabled: true, Time: configfile.Seconds(5)}:    time.Minute,
		{Enabled: false, Time: configfile.Seconds(120)}: time.Minute,
	} {
		if got := alonePatience(c); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// Who has no neighbour is not alone; who has some is, until one session carries EVPN.
func TestAlone(t *testing.T) {
	up, other, down := bgp.NeighborStatus{State: "established"}, bgp.NeighborStatus{State: "established", Missing: bgp.FamilyEVPN}, bgp.NeighborStatus{State: "active"}
	for _, tt := range []struct {
		neighbors []bgp.NeighborStatus
		want      bool
	}{{nil, false}, {[]bgp.NeighborStatus{down}, true}, {[]bgp.NeighborStatus{down, other}, true}, {[]bgp.NeighborStatus{down, up}, false}} {
		if got := alone(bgp.Status{Neighbors: tt.neighbors}); got != tt.want {
			t.Errorf("%+v: %t", tt.neighbors, got)
		}
	}
}
