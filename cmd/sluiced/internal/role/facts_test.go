package role

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
)

var allInSync = ovn.InSync{SB: true, VSwitch: true, NB: true}

func event(s ovn.InSync) ovn.Event {
	return ovn.Event{Rows: ovn.NewRows(), Dirty: ovn.Dirty{All: true}, InSync: s}
}

// A system-id that is away for a moment makes the node nobody else.
func TestFactsOfRowsThatAreNotAllThereAreNoFacts(t *testing.T) {
	r := newRole(func(c *config.Config) { c.OVN.SystemID, c.Roles = "a1", config.RoleGateway })
	r.Take(event(allInSync))
	if f := <-r.facts; !f.Gateway || f.SystemID != "a1" {
		t.Fatalf("facts %+v", f)
	}
	r.cfg.OVN.SystemID = ""
	r.Take(event(ovn.InSync{VSwitch: true, NB: true}))
	select {
	case f := <-r.facts:
		t.Errorf("facts %+v", f)
	default:
	}
	if r.latest.SystemID != "a1" {
		t.Errorf("latest %+v", r.latest)
	}
}

// A node with a part in the underlay is one by what the local database and the
// configuration say; any other only by what OVN says, and one without a role never.
func TestUnderlayNeedsNoSouthboundDatabase(t *testing.T) {
	installs := func(c *config.Config) { c.Underlay.Install.Enabled = true }
	for name, tc := range map[string]struct {
		change  func(*config.Config)
		told    bool
		gateway bool
	}{
		"underlay":                  {installs, true, true},
		"underlay, and a role":      {func(c *config.Config) { installs(c); c.Roles = config.RoleGateway }, true, true},
		"underlay, and no role":     {func(c *config.Config) { installs(c); c.Roles = config.RoleNone }, true, false},
		"a role alone":              {func(c *config.Config) { c.Roles = config.RoleGateway }, false, false},
		"neither underlay nor role": {nil, false, false},
	} {
		r := newRole(func(c *config.Config) {
			c.OVN.SystemID = "a1"
			if tc.change != nil {
				tc.change(c)
			}
		})
		r.TakeLocal(ovn.NewRows())
		select {
		case f := <-r.facts:
			if !tc.told || f.Gateway != tc.gateway || f.SystemID != "a1" {
				t.Errorf("%s: %+v", name, f)
			}
		default:
			if tc.told {
				t.Errorf("%s: nothing is told", name)
			}
		}
		if r.steps.OVNInSync() || r.steps.AllInSync() {
			t.Errorf("%s: OVN counts as read", name)
		}
	}
}

// The facts of such a node are followed while the Southbound database is away, too: the
// path to it may hang on them. Without a system-id they say nothing.
func TestFactsOfTheUnderlayAreFollowedWithoutOVN(t *testing.T) {
	r := newRole(func(c *config.Config) { c.OVN.SystemID, c.Underlay.Announce.VTEP = "a1", true })
	r.Take(event(allInSync))
	<-r.facts
	r.cfg.OVN.SystemID = "a2"
	r.Take(event(ovn.InSync{VSwitch: true, NB: true}))
	select {
	case f := <-r.facts:
		if f.SystemID != "a2" {
			t.Errorf("facts %+v", f)
		}
	default:
		t.Error("other facts are not followed")
	}
	r.cfg.OVN.SystemID = ""
	r.Take(event(ovn.InSync{VSwitch: true, NB: true}))
	if len(r.facts) > 0 || r.latest.SystemID != "a2" {
		t.Errorf("without a system-id: %+v", r.latest)
	}
}
