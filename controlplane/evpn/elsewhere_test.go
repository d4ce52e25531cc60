package evpn

import (
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// A gateway port that is elsewhere is named with its chassis.
func TestElsewhere(t *testing.T) {
	red := []string{"02:00:00:00:00:01 10.10.0.1/24 2001:db8:10::1/64"}
	other := []string{"02:00:00:00:00:02 10.99.0.1/24"}
	for name, row := range map[string]struct {
		gateways     []ovn.Gateway
		detail, hint string
		never        string
	}{
		"elsewhere": {[]ovn.Gateway{{Port: "cr-lrp-red", Chassis: "a2", MACs: [][]string{red}}, {Port: "cr-lrp-x", Chassis: "a3", MACs: [][]string{other}}},
			"cr-lrp-red is bound to chassis a2", "ask on chassis a2", "a3"},
		"two of them": {[]ovn.Gateway{{Port: "cr-1", Chassis: "a3", MACs: [][]string{red}}, {Port: "cr-2", Chassis: "a2", MACs: [][]string{red}}},
			"cr-2 is bound to chassis a2, cr-1 is bound to chassis a3", "ask on chassis a2 or a3", "none"},
		"bound nowhere":   {[]ovn.Gateway{{Port: "cr-lrp-red", MACs: [][]string{red}}}, "cr-lrp-red is bound to no chassis", "lrp-set-gateway-chassis", "ask on"},
		"another network": {[]ovn.Gateway{{Port: "cr-lrp-x", Chassis: "a3", MACs: [][]string{other}}}, "no router of VNI 1001 has a network with either address", "check", "ask on"},
		"no such VNI":     {nil, "no router in OVN has a port that names VNI 1001", keyVNI, "ask on"},
	} {
		for _, a := range [][2]string{{"10.10.0.5", "192.0.2.1"}, {"2001:db8::1", "2001:db8:10::5"}} {
			s := Elsewhere(status.Query{VRF: 1001, Src: addr(a[0]), Dst: addr(a[1])}, row.gateways)
			if s.Found || !strings.Contains(s.Detail, row.detail) || !strings.Contains(s.Hint, row.hint) || strings.Contains(s.Detail+s.Hint, row.never) {
				t.Errorf("%s, %s: %+v", name, a[0], s)
			}
		}
	}
}

// A subnet is told of that another router has in the same VNI on another chassis, and no other
// one; of routers with a gateway port elsewhere nothing is: that one announces their subnets, too.
func TestOverlapsElsewhere(t *testing.T) {
	away := func(edit func(*ovn.PortBinding)) cloud {
		c := node(false).tenant(1, 1001).tenant(2, 2001)
		second := pb("cr-lrp-gw2-r1", ovn.TypeChassisRedirect, "lr-r1", "02:00:00:00:01:01 172.24.9.1/16")
		second.Chassis, second.Options = there, map[string]string{"distributed-port": "lrp-gw2-r1"}
		lrp := pb("lrp-gw2-r1", ovn.TypePatch, "lr-r1", second.MAC...)
		lrp.Options = map[string]string{"peer": "gw2-r1"}
		lsp := pb("gw2-r1", ovn.TypePatch, "ls-public", "router")
		lsp.Options, lsp.ExternalIDs = map[string]string{"peer": "lrp-gw2-r1"}, map[string]string{keyVNI: "1001"}
		c.put(second, lrp, lsp)
		return c.edit("gw2-r1", edit)
	}
	for name, row := range map[string]struct {
		c    cloud
		vnis []intent.VNI
	}{
		"all are here":                          {node(false).tenant(1, 1001).tenant(2, 2001), []intent.VNI{1001, 2001}},
		"one of two is elsewhere":               {away(func(*ovn.PortBinding) {}), []intent.VNI{2001}},
		"one that names no VNI is elsewhere":    {away(func(p *ovn.PortBinding) { clear(p.ExternalIDs) }), []intent.VNI{1001, 2001}},
		"the only one of a router is elsewhere": {node(false).tenant(1, 1001).tenant(2, 2001).edit("cr-lrp-gw-r1", func(p *ovn.PortBinding) { p.Chassis = there }), []intent.VNI{2001}},
		"the only one of a router is not bound": {node(false).tenant(1, 1001).tenant(2, 2001).edit("cr-lrp-gw-r1", func(p *ovn.PortBinding) { p.Chassis = "" }), []intent.VNI{2001}},
	} {
		var got []intent.VNI
		for _, e := range compute(row.c, testConfig()).Exposed() {
			got = append(got, e.VNI)
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(slices.Repeat(row.vnis, 2))); !slices.Equal(got, want) { // IPv4 and IPv6
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	exposed := compute(node(false).tenant(1, 1001).tenant(2, 2001), testConfig()).Exposed()
	at := func(router, chassis, networks string) []ovn.Gateway {
		return []ovn.Gateway{{Port: "cr-x", Router: ovn.UUID(router), Chassis: chassis, MACs: [][]string{{"02:00:00:00:00:01 172.24.0.9/16"}, {"02:00:00:00:00:02 " + networks}}}}
	}
	for name, row := range map[string]struct {
		gateways []ovn.Gateway
		want     string // in the error
	}{
		"equal":             {at("x", "a2", "10.10.0.1/24"), "10.10.0.0/24 overlaps a network of cr-x on chassis a2, whose router has VNI 1001"},
		"around":            {at("x", "a2", "10.10.0.1/16"), "10.10.0.0/24 overlaps"},
		"inside":            {at("x", "a2", "10.10.0.129/25"), "10.10.0.0/24 overlaps"},
		"IPv6":              {at("x", "a2", "2001:db8:10::1/64"), "2001:db8:10::/64 overlaps a network of cr-x on chassis a2"},
		"both":              {at("x", "a2", "10.10.0.1/24 2001:db8:10::1/64"), "10.10.0.0/24 overlaps"},
		"another network":   {at("x", "a2", "10.20.0.1/24 2001:db8:20::1/64"), ""},
		"on this chassis":   {at("x", "a1", "10.10.0.1/24"), ""},
		"bound nowhere":     {at("x", "", "10.10.0.1/24"), ""},
		"the router itself": {at("lr-r1", "a2", "10.10.0.1/24"), ""},
		"none":              {nil, ""},
	} {
		got := OverlapsElsewhere(1001, exposed, row.gateways, "a1")
		switch {
		case row.want == "" && len(got) > 0, row.want != "" && len(got) != 1:
			t.Errorf("%s: %+v", name, got)
		case row.want != "" && (got[0].Key != "in-r1" || got[0].State != status.Warning || !strings.Contains(got[0].Error, row.want)):
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Two addresses behind one router are OVN's own affair, of one subnet or of two,
// but not those behind two routers of a VRF.
func TestInside(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1001)
	c.edit("lrp-in-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:01:00:02 10.20.0.1/24 2001:db8:20::1/64"} })
	store := c.load()
	tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(store, ovn.Dirty{All: true}, true)
	for _, row := range []struct {
		src, dst      string
		inside, found bool
	}{
		{"10.10.0.5", "10.10.0.5", true, true},
		{"2001:db8:10::5", "2001:db8:10::5", true, true},
		{"10.10.0.5", "172.24.4.1", true, true},
		{"10.10.0.5", "10.10.0.77", true, false},
		{"10.10.0.5", "10.20.0.5", false, false},
		{"10.10.0.5", "192.0.2.1", false, false},
	} {
		q := status.Query{VRF: 1001, Src: addr(row.src), Dst: addr(row.dst)}
		steps, inside := tr.Inside(store, q)
		if inside != row.inside || inside && status.NewExplanation(q, steps).Works != row.found {
			t.Errorf("%s to %s: inside %t, %+v", row.src, row.dst, inside, steps)
		}
		if inside && !strings.Contains(steps[len(steps)-1].Detail, "OVN forwards") {
			t.Errorf("%+v", steps)
		}
	}
}
