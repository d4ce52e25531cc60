package ovn

import (
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// The switch ports of VMs here on provider networks are asked for in Northbound,
// then their DHCP options; who else is on such a network in Southbound where next hops
// may be answered.
func TestExposureAsksForVMs(t *testing.T) {
	const dhcp = UUID("0ad5a8ca-0000-4000-8000-000000000001")
	rows := provider()
	rows.Apply([]Change{
		Set(PortBinding{UUID: "pub", LogicalPort: "pub", Datapath: "public", Chassis: "own"}),
		Set(PortBinding{UUID: "vip", LogicalPort: "vip", Type: TypeVirtual, Datapath: "public", Chassis: "own", VirtualParent: "pub"}),
		Set(PortBinding{UUID: "far", LogicalPort: "far", Datapath: "public", Chassis: "other"}),
		Set(PortBinding{UUID: "side", LogicalPort: "side", Type: TypePatch, Datapath: "public", Options: map[string]string{"peer": "lrp"}}),
	})
	if w := Discover(rows, Needs{}); len(w.NB["Logical_Switch_Port"]) != 0 {
		t.Errorf("asked for %q although nothing is exposed", words(w.NB["Logical_Switch_Port"]))
	}
	w := Discover(rows, Needs{Exposure: true})
	want := []string{ovsdb.Equal("name", "pub").String(), ovsdb.Equal("name", "vip").String()}
	if got := words(w.NB["Logical_Switch_Port"]); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	public, lrp := ovsdb.Equal("datapath", ovsdb.UUID("public")).String(), ovsdb.Equal("logical_port", "lrp").String()
	if got := words(w.SB["Port_Binding"]); slices.Contains(got, public) || slices.Contains(got, lrp) {
		t.Errorf("asked for %q without need", got)
	}
	w = Discover(rows, Needs{Exposure: true, Gateways: func(_ *Rows, s ProviderSwitch) bool { return s.Network == "physnet1" }})
	if got := words(w.SB["Port_Binding"]); !slices.Contains(got, public) || !slices.Contains(got, lrp) {
		t.Errorf("asked for %q", got)
	}
	d := rows.Apply([]Change{Set(LogicalSwitchPort{UUID: "lsp", Name: "pub", DHCPv4: dhcp})})
	if !d.Exposure || !d.relations {
		t.Errorf("a switch port: %+v", d)
	}
	w = Discover(rows, Needs{Exposure: true})
	if got := words(w.NB["DHCP_Options"]); !slices.Equal(got, []string{ovsdb.Equal("_uuid", ovsdb.UUID(dhcp)).String()}) {
		t.Errorf("asked for %q", got)
	}
	if d := rows.Apply([]Change{Set(DHCPOptions{UUID: dhcp, Router: "192.0.2.1"})}); !d.Exposure {
		t.Errorf("DHCP options: %+v", d)
	}
	if got := rows.DHCPRouters("pub"); len(got) != 1 || got[0].String() != "192.0.2.1" {
		t.Errorf("DHCP gives %v", got)
	}
	rows.Apply([]Change{Delete(TableLogicalSwitchPort, "lsp")})
	if _, known := rows.SwitchPort("pub"); known || rows.DHCPRouters("pub") != nil {
		t.Error("the switch port is known after it went")
	}
}

// TestFollowerVMs: of a VM here on a provider network the databases tell
// whether it is enabled, and its default gateway.
func TestFollowerVMs(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.nb("lsp-add", "public", "pub", "--", "lsp-set-addresses", "pub", "02:00:00:00:01:01 172.24.4.50 2001:db8:24::50")
	id := l.nb("create", "DHCP_Options", "cidr=172.24.4.0/24", "options:router=172.24.4.1", "options:lease_time=600")
	l.nb("lsp-set-dhcpv4-options", "pub", id)
	l.sb("lsp-bind", "pub", "a1")
	w := l.follow(Config{Needs: Needs{Exposure: true}, Northbound: l.remote("nb")})
	gateway := func() (out string, disabled bool) {
		w.View(func(r *Rows) {
			for _, a := range r.DHCPRouters("pub") {
				out = a.String()
			}
			p, _ := r.SwitchPort("pub")
			disabled = p.Disabled
		})
		return out, disabled
	}
	w.until("the default gateway", func() bool { a, off := gateway(); return a == "172.24.4.1" && !off })
	l.nb("lsp-set-enabled", "pub", "disabled")
	w.until("it is disabled", func() bool { _, off := gateway(); return off })
	l.nb("set", "DHCP_Options", id, "options:router=172.24.4.9", "--", "lsp-set-enabled", "pub", "enabled")
	w.until("another gateway", func() bool { a, off := gateway(); return a == "172.24.4.9" && !off })
}
