package evpn

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// candidate makes the gateway port of router n one that may come, and is on the
// other chassis, whose address is known.
func (c cloud) candidate(port string, at ovn.UUID) cloud {
	away := intent.FabricAddress{VTEP: netip.MustParseAddr("192.0.2.2"), RouterMAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	c.put(ovn.HAChassisGroup{UUID: "group", Name: "group"}, ovn.ChassisPrivate{UUID: "private", Chassis: there, Name: "a2", ExternalIDs: ovn.Pairs(away)})
	return c.edit(port, func(p *ovn.PortBinding) { p.Chassis, p.HAChassisGroup = at, "group" })
}

func standbyConfig() Config {
	cfg := testConfig()
	cfg.Standby, cfg.Announce = true, AnnounceBoth
	return cfg
}

// A candidate has all that an active gateway has, but routes and announcements:
// in their place is the way to where the port is.
func TestStandby(t *testing.T) {
	active := compute(node(false).tenant(1, 1001), standbyConfig()).Tables()
	waiting := compute(node(false).tenant(1, 1001).candidate("cr-lrp-gw-r1", there), standbyConfig())
	tables := waiting.Tables()
	check(t, "VRFs", wanted.Rows(active, intent.VRFs), wanted.Rows(tables, intent.VRFs))
	check(t, "policies", wanted.Rows(active, intent.Policies), wanted.Rows(tables, intent.Policies))
	check(t, "bridges", wanted.Rows(active, intent.Bridges), wanted.Rows(tables, intent.Bridges))
	if !maps.Equal(wanted.Rows(active, intent.Gateways), wanted.Rows(tables, intent.Gateways)) || !maps.Equal(wanted.Rows(active, intent.ServedNextHops), wanted.Rows(tables, intent.ServedNextHops)) || !maps.Equal(wanted.Rows(active, intent.SteeringFlows), wanted.Rows(tables, intent.SteeringFlows)) {
		t.Errorf("gateways, served or steering differ:\n%+v\n%+v", active, tables)
	}
	if len(wanted.Rows(tables, intent.Routes))+len(wanted.Rows(tables, intent.Announcements)) != 0 {
		t.Errorf("a candidate has routes %v, announcements %v", wanted.Rows(tables, intent.Routes), wanted.Rows(tables, intent.Announcements))
	}
	hop := intent.NewNextHopSet(intent.NextHop{VTEP: netip.MustParseAddr("192.0.2.2"), VNI: 1001, RouterMAC: intent.MAC{2, 0, 0, 0, 0, 2}})
	for k := range wanted.Rows(active, intent.Routes) {
		if r := wanted.Rows(tables, intent.Relays)[k]; r.Kind != intent.RouteRemote || r.NextHops != hop {
			t.Errorf("relay of %s: %+v", k, r)
		}
	}
	if len(wanted.Rows(tables, intent.Relays)) != len(wanted.Rows(active, intent.Routes)) {
		t.Errorf("%d relays for %d routes", len(wanted.Rows(tables, intent.Relays)), len(wanted.Rows(active, intent.Routes)))
	}
	_, notes := complaints(waiting)
	check(t, "notes", []string{"gateway cr-lrp-gw-r1 standby"}, notes)
	for _, place := range wanted.Rows(tables, intent.Standby) {
		check(t, "chassis", "a2", place.Chassis)
	}
}

// A port that is nowhere, or where Sluice has not said who it is, has relays that
// lead nowhere yet.
func TestStandbyOfNobody(t *testing.T) {
	for _, at := range []ovn.UUID{"", "chassis-third"} {
		tables := compute(node(false).tenant(1, 1001).candidate("cr-lrp-gw-r1", at), standbyConfig()).Tables()
		for k, r := range wanted.Rows(tables, intent.Relays) {
			if r.NextHops.Len() != 0 {
				t.Errorf("on %q: relay of %s: %s", at, k, r.NextHops)
			}
		}
		if len(wanted.Rows(tables, intent.Relays)) == 0 || len(wanted.Rows(tables, intent.VRFs)) != 1 {
			t.Errorf("on %q: %+v", at, tables)
		}
	}
}

// What is here comes before what may come, and is not refused for its sake.
func TestStandbyGivesWay(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1001).candidate("cr-lrp-gw-r1", there)
	tr := compute(c, standbyConfig())
	if errs, _ := complaints(tr); len(errs) != 0 {
		t.Errorf("errors: %v", errs)
	}
	tables := tr.Tables()
	key := intent.NewRouteKey(1001, netip.MustParsePrefix("10.10.0.0/24"))
	if r := wanted.Rows(tables, intent.Routes)[key]; r.Gateway.MAC[5] != 2 {
		t.Errorf("%s leads to %+v", key, r)
	}
	if _, ok := wanted.Rows(tables, intent.Relays)[key]; ok {
		t.Errorf("%s is relayed beside", key)
	}
}

// A VRF whose gateway port comes takes the place of one that is only standby.
func TestStandbyMakesRoom(t *testing.T) {
	cfg := standbyConfig()
	cfg.MaxVRFs = 2
	c := node(false).tenant(1, 1001).tenant(2, 1002).tenant(3, 1003)
	for _, p := range []string{"cr-lrp-gw-r1", "cr-lrp-gw-r2", "cr-lrp-gw-r3"} {
		c.candidate(p, there)
	}
	rows := c.load()
	tr := NewTranslator(cfg, identity{}, &loadbalancer.Book{})
	sum := wanted.NewSet()
	sum.Apply(tr.Step(rows, ovn.Dirty{All: true}, true))
	check(t, "first", []intent.VNI{1001, 1002}, slices.Sorted(maps.Keys(wanted.Rows(sum, intent.VRFs))))
	c.edit("cr-lrp-gw-r3", func(p *ovn.PortBinding) { p.Chassis = here })
	sum.Apply(tr.Step(rows, rows.Apply([]ovn.Change{ovn.Set(c["pb-cr-lrp-gw-r3"])}), true))
	check(t, "then", []intent.VNI{1001, 1003}, slices.Sorted(maps.Keys(wanted.Rows(sum, intent.VRFs))))
	if d := diffTables(tr.Tables(), sum); d != "" {
		t.Error(d)
	}
	c.edit("cr-lrp-gw-r3", func(p *ovn.PortBinding) { p.Chassis, p.HAChassisGroup = there, "" })
	sum.Apply(tr.Step(rows, rows.Apply([]ovn.Change{ovn.Set(c["pb-cr-lrp-gw-r3"])}), true))
	check(t, "gone", []intent.VNI{1001, 1002}, slices.Sorted(maps.Keys(wanted.Rows(sum, intent.VRFs))))
}
