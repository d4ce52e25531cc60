package evpn

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// TestExplain: a working pair is found whole; a cut names the row that cuts it.
func TestExplain(t *testing.T) {
	rows := map[string]struct {
		src, dst string
		edit     func(cloud)
		missing  string // "layer object", empty when all is found
	}{
		"from OVN":  {src: "10.10.0.5", dst: "10.20.0.5"},
		"to OVN":    {src: "2001:db8:20::5", dst: "2001:db8:10::5"},
		"gateway's": {src: "10.20.0.5", dst: "172.24.4.1"},
		"VNI withdrawn from the gateway port": {src: "10.10.0.5", dst: "10.20.0.5",
			edit:    func(c cloud) { c.edit("gw-r1", func(p *ovn.PortBinding) { delete(p.ExternalIDs, keyVNI) }) },
			missing: "ovn Port_Binding gw-r1"},
		"VNI withdrawn from the interface": {src: "10.20.0.5", dst: "10.10.0.5",
			edit:    func(c cloud) { c.edit("in-r1", func(p *ovn.PortBinding) { delete(p.ExternalIDs, keyVNI) }) },
			missing: "ovn Port_Binding in-r1"},
		"VM down": {src: "10.20.0.5", dst: "10.10.0.5",
			edit:    func(c cloud) { c.edit("vm-r1", func(p *ovn.PortBinding) { p.Chassis = "" }) },
			missing: "ovn Port_Binding vm-r1"},
		"no mapping": {src: "10.20.0.5", dst: "10.10.0.5",
			edit:    func(c cloud) { c.edit("provnet", func(p *ovn.PortBinding) { p.Options["network_name"] = "x" }) },
			missing: "ovn gateway cr-lrp-gw-r1"},
		"opted out": {src: "10.20.0.5", dst: "10.10.0.5",
			edit:    func(c cloud) { c.edit("vm-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyExpose] = "false" }) },
			missing: "intent route 1001 10.10.0.5/32"},
		"nobody": {src: "192.0.2.1", dst: "192.0.2.2", missing: "ovn router interface with 192.0.2.1 or 192.0.2.2"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := node(false).tenant(1, 1001).tenant(2, 1002)
			if row.edit != nil {
				row.edit(c)
			}
			store := c.load()
			tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
			tr.Step(store, ovn.Dirty{All: true}, true)
			q := status.Query{VRF: 1001, Src: addr(row.src), Dst: addr(row.dst)}
			steps, where := tr.Explain(store, q)
			if (where == Nowhere) != (name == "nobody") {
				t.Errorf("where: %d", where)
			}
			e := status.NewExplanation(q, steps)
			got := ""
			if s, cut := e.Missing(); cut {
				got = string(s.Layer) + " " + s.Object
				if s.Hint == "" {
					t.Errorf("no hint: %+v", s)
				}
			}
			if got != row.missing || e.Works != (row.missing == "") {
				t.Errorf("missing %q, want %q; steps %+v", got, row.missing, e.Steps)
			}
			for _, s := range e.Steps {
				if strings.Contains(s.Object, "r2") {
					t.Errorf("another tenant's row: %+v", s)
				}
			}
		})
	}
}

// TestExplainSaysOnlyWhatItLookedAt: another VNI is named with the gateway ports
// that have the network, and no port is missed in a network that is not loaded.
func TestExplainSaysOnlyWhatItLookedAt(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1002)
	store := c.load()
	tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(store, ovn.Dirty{All: true}, true)
	for _, a := range [][2]string{{"10.10.0.5", "10.20.0.5"}, {"2001:db8:10::5", "2001:db8:20::5"}} {
		steps, where := tr.Explain(store, status.Query{VRF: 9999, Src: addr(a[0]), Dst: addr(a[1])})
		if len(steps) != 1 || where != OtherVNI || !strings.Contains(steps[0].Detail, "gw-r1 (VNI 1001)") || !strings.Contains(steps[0].Detail, "names VNI 9999") {
			t.Errorf("%s: %+v", a[0], steps)
		}
	}
	store = node(false).tenant(1, 1001).edit("in-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyVNI] = "abc" }).load()
	tr = NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(store, ovn.Dirty{All: true}, true)
	steps, _ := tr.Explain(store, status.Query{VRF: 1001, Src: addr("10.10.0.5"), Dst: addr("10.20.0.5")})
	for _, s := range steps {
		if strings.HasPrefix(s.Object, "Port_Binding with") || s.Object == "Port_Binding vm-r1" {
			t.Errorf("a port of a network that is not loaded: %+v", s)
		}
	}
}
