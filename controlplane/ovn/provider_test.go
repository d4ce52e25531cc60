package ovn

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// provider is a node with a provider network, and a VM on a tenant's network.
func provider() *Rows {
	rows := NewRows()
	rows.Expose(true)
	rows.Apply([]Change{
		Set(Chassis{UUID: "own", Name: "a1"}),
		Set(OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1", "ovn-bridge-mappings": "physnet1:br-ex"}}),
		Set(PortBinding{UUID: "l", LogicalPort: "provnet", Type: TypeLocalnet, Datapath: "public", Options: map[string]string{"network_name": "physnet1"}}),
		Set(PortBinding{UUID: "l2", LogicalPort: "elsewhere", Type: TypeLocalnet, Datapath: "other", Options: map[string]string{"network_name": "physnet2"}}),
		Set(PortBinding{UUID: "vm", LogicalPort: "vm", Datapath: "net", Chassis: "own"}),
	})
	return rows
}

func words(clauses []ovsdb.Clause) []string {
	var out []string
	for _, c := range clauses {
		out = append(out, c.String())
	}
	return out
}

// Whole provider switches, and Northbound rows by VM, are asked for where
// floating IPs are exposed; the routers of these rows when they have come.
func TestExposureAsksForFloatingIPs(t *testing.T) {
	public := ovsdb.Equal("datapath", ovsdb.UUID("public")).String()
	other := ovsdb.Equal("datapath", ovsdb.UUID("other")).String()
	vm := ovsdb.Equal("logical_port", "vm").String()
	rows := provider()
	w := Discover(rows, Needs{Exposure: true})
	if got := words(w.SB["Port_Binding"]); slices.Contains(got, public) || len(w.NB["NAT"]) != 0 {
		t.Errorf("without floating IPs asked for %q and %q", got, words(w.NB["NAT"]))
	}
	needs := Needs{Exposure: true, Floating: func(network string) bool { return network == "physnet1" || network == "physnet2" }}
	w = Discover(rows, needs)
	if got := words(w.SB["Port_Binding"]); !slices.Contains(got, public) || slices.Contains(got, other) {
		t.Errorf("asked for %q; physnet2 is not mapped here", got)
	}
	if got := words(w.NB["NAT"]); !slices.Contains(got, vm) || len(w.NB["Logical_Router"]) != 0 {
		t.Errorf("asked for %q and %q", got, words(w.NB["Logical_Router"]))
	}
	rows.Apply([]Change{Set(NAT{UUID: "n", LogicalPort: "vm"})})
	if w = Discover(rows, needs); len(w.NB["Logical_Router"]) != 1 {
		t.Error("the router of a NAT row was not asked for")
	}
	rows.Apply([]Change{Set(LogicalRouter{UUID: "r", NAT: []UUID{"n"}, Ports: []UUID{"p"}, StaticRoutes: []UUID{"s"}})})
	if w = Discover(rows, needs); len(w.NB["Logical_Router_Port"]) != 1 || len(w.NB["Logical_Router_Static_Route"]) != 1 {
		t.Error("the ports and routes of the router were not asked for")
	}
	rows.Apply([]Change{Set(LogicalRouterPort{UUID: "p", Name: "lrp"}), Set(StaticRoute{UUID: "s", Nexthop: "192.0.2.1"})})
	if f := rows.FloatingIPs("vm"); len(f) != 1 || f[0].Router != "r" || len(f[0].RouterPorts) != 1 || f[0].RouterPorts[0].Name != "lrp" || len(f[0].StaticRoutes) != 1 {
		t.Errorf("floating IPs %+v", f)
	}
	rows.Apply([]Change{Delete(TableNAT, "n")})
	if f := rows.FloatingIPs("vm"); len(f) != 0 {
		t.Errorf("floating IPs %+v after the row went", f)
	}
}

// What may be exposed here makes an event of its own; other nodes' VMs make none.
func TestExposureIsDirty(t *testing.T) {
	for name, row := range map[string]struct {
		change          Change
		exposed, relate bool
	}{
		"a VM comes":                 {Set(PortBinding{UUID: "x", LogicalPort: "x", Datapath: "public", Chassis: "own"}), true, true},
		"a VM changes":               {Set(PortBinding{UUID: "vm", LogicalPort: "vm", Datapath: "net", Chassis: "own", Up: true}), true, false},
		"a VM goes":                  {Set(PortBinding{UUID: "vm", LogicalPort: "vm", Datapath: "net", Chassis: "other"}), true, true},
		"another node's VM":          {Set(PortBinding{UUID: "x", LogicalPort: "x", Datapath: "public", Chassis: "other"}), false, false},
		"a router's port":            {Set(PortBinding{UUID: "x", LogicalPort: "x", Type: TypePatch, Datapath: "public"}), true, true},
		"a NAT row":                  {Set(NAT{UUID: "n", LogicalPort: "vm"}), true, true},
		"a neighbour of some router": {Set(MACBinding{UUID: "m", LogicalPort: "lrp"}), false, false},
	} {
		if d := provider().Apply([]Change{row.change}); d.Exposure != row.exposed || d.relations != row.relate {
			t.Errorf("%s: exposure %v, relations %v", name, d.Exposure, d.relations)
		}
		rows := provider()
		rows.Expose(false)
		if d := rows.Apply([]Change{row.change}); d.Exposure {
			t.Errorf("%s: exposure although nothing is exposed", name)
		}
	}
}

func TestProviderSwitches(t *testing.T) {
	rows := provider()
	if s := rows.ProviderSwitches(); len(s) != 1 || s[0].Datapath != "public" || s[0].Bridge != "br-ex" || s[0].Network != "physnet1" {
		t.Errorf("provider switches %+v", s)
	}
	if m := rows.VMs("own"); len(m) != 1 || m[0].LogicalPort != "vm" {
		t.Errorf("VMs %+v", m)
	}
	a := netip.MustParseAddr("192.0.2.1")
	if rows.IsHostAddress(a) || !rows.SetHostAddresses(HostAddresses{"eth0": {a}}) || !rows.IsHostAddress(a) {
		t.Error("the node's own address")
	}
	if rows.SetHostAddresses(HostAddresses{"eth0": {a}}) {
		t.Error("the same addresses are a change")
	}
}
