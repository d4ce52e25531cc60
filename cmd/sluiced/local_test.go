package main

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

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
		d := followingDaemon(t, func(c *config.Config) {
			c.OVN.SystemID = "a1"
			if tc.change != nil {
				tc.change(c)
			}
		})
		d.takeLocal(ovn.NewRows())
		select {
		case f := <-d.facts:
			if !tc.told || f.gateway != tc.gateway || f.systemID != "a1" {
				t.Errorf("%s: %+v", name, f)
			}
		default:
			if tc.told {
				t.Errorf("%s: nothing is told", name)
			}
		}
		if d.steps.OVNInSync() || d.steps.AllInSync() {
			t.Errorf("%s: OVN counts as read", name)
		}
	}
}

// The facts of such a node are followed while the Southbound database is away, too: the
// way to it may hang on them. Without a system-id they say nothing.
func TestFactsOfTheUnderlayAreFollowedWithoutOVN(t *testing.T) {
	d := followingDaemon(t, func(c *config.Config) { c.OVN.SystemID, c.Underlay.Announce.VTEP = "a1", true })
	d.steps.Take(event(allInSync))
	<-d.facts
	d.cfg.OVN.SystemID = "a2"
	d.steps.Take(event(ovn.InSync{VSwitch: true, NB: true}))
	select {
	case f := <-d.facts:
		if f.systemID != "a2" {
			t.Errorf("facts %+v", f)
		}
	default:
		t.Error("other facts are not followed")
	}
	d.cfg.OVN.SystemID = ""
	d.steps.Take(event(ovn.InSync{VSwitch: true, NB: true}))
	if len(d.facts) > 0 || d.latest.systemID != "a2" {
		t.Errorf("without a system-id: %+v", d.latest)
	}
}

// Before OVN is in sync plain unicast is told, and nothing of OVN's; what is exposed is
// plain unicast of OVN's.
func TestWhatIsToldBeforeOVNIsInSync(t *testing.T) {
	d := idleDaemon()
	d.cfg = config.Default()
	n := deadNode(d)
	n.tables.Pipeline.Pass(t.Context())
	n.underlay.tables.Pipeline.Pass(t.Context())
	if !n.toldUnicast() || n.toldPolicies() || n.toldAll() {
		t.Errorf("unicast %t, policies %t, all %t", n.toldUnicast(), n.toldPolicies(), n.toldAll())
	}
	d.cfg.Exposure.Ports = config.SwitchOn
	if n.toldUnicast() {
		t.Error("exposed addresses are still to come")
	}
	d.sync(ovn.InSync{SB: true, VSwitch: true})
	if !n.toldPolicies() || n.toldAll() {
		t.Errorf("without the Northbound database: policies %t, all %t", n.toldPolicies(), n.toldAll())
	}
	n.tables.Pipeline.Update(func() { tables.Of(n.tables, intent.Policies).Set(map[intent.VNI]intent.VRFPolicy{1001: {VNI: 1001}}) })
	if n.toldPolicies() {
		t.Error("a policy has still to be handed over")
	}
}

// What an earlier start left of the underlay is shown until it is gone.
func TestLeftoversOfTheUnderlayAreShown(t *testing.T) {
	d := idleDaemon()
	d.cfg = config.Default()
	n, m, known := deadNode(d), mainTable{rows: map[netip.Prefix]intent.UnderlayRoute{}}, false
	n.underlay = &fabricPart{tables: tables.NewUnderlay(driversOf(func(d tables.Drivers) {
		tables.Drive(d, intent.UnderlayRoutes, m)
		tables.Drive(d, intent.UnderlayAnnouncements, reconcile.ReadOnly(reconcile.Unseen[netip.Prefix, intent.UnderlayAnnouncement]{}))
	}), tables.UnderlaySources{BGP: func() bool { return known }, Fabric: func() error { return nil }}, tables.Options{Status: d.reg, Log: d.log})}
	shown := func() bool {
		n.underlay.tables.Pipeline.RelistAll()
		n.underlay.tables.Pipeline.Pass(t.Context())
		return slices.ContainsFunc(n.stages(), func(s reconcile.Stage) bool { return s.Name() == "underlay-routes" })
	}
	if shown() {
		t.Error("shown, and nothing is left")
	}
	m.rows[prefix("192.0.2.9/32")] = intent.UnderlayRoute{Prefix: prefix("192.0.2.9/32")}
	if !shown() {
		t.Error("not shown while a route is left")
	}
	known = true
	n.underlay.tables.Pipeline.Update(func() { tables.Of(n.underlay.tables, intent.UnderlayRoutes).Set(nil) })
	if shown() || len(m.rows) > 0 {
		t.Errorf("shown after it is gone: %v", m.rows)
	}
}
