package evpn

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
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

// Two addresses behind one router are OVN's own affair, of one subnet or of two,
// but not those behind two routers of a VRF.
func TestInside(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1001)
	c.edit("lrp-in-r2", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:01:00:02 10.20.0.1/24 2001:db8:20::1/64"} })
	store := c.load()
	tr := NewTranslator(testConfig(), indices{})
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
