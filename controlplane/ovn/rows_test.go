package ovn

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// small is two routers on one provider switch, with a network each.
func small(bridgePorts ...UUID) *Rows {
	rows := NewRows()
	batch := []Change{
		Set(Chassis{UUID: "ch", Name: "a1"}),
		Set(OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1",
			"ovn-bridge-mappings": "wrong, physnet0:br-none, physnet1:br-ex", "ovn-bridge-mappings-a2": "x:y"}}),
		Set(Bridge{UUID: "br", Name: "br-ex", Ports: append([]UUID{"p0"}, bridgePorts...)}),
		Set(Port{UUID: "p0", Name: "br-ex"}), Set(Port{UUID: "p1", Name: "eth0"}),
		Set(PortBinding{UUID: "ln", LogicalPort: "ln", Type: TypeLocalnet, Datapath: "pub", Options: map[string]string{"network_name": "physnet1"}}),
	}
	for n := 1; n <= 2; n++ {
		i := fmt.Sprint(n)
		batch = append(batch,
			Set(DatapathBinding{UUID: UUID("lr" + i), ExternalIDs: map[string]string{"logical-router": "nb" + i}}),
			Set(patchPort("gw"+i, UUID("lr"+i), "sgw"+i, "02:00:00:00:00:0"+i)), Set(patchPort("sgw"+i, "pub", "gw"+i, "router")),
			Set(patchPort("in"+i, UUID("lr"+i), "sin"+i, "02:00:00:00:01:0"+i)), Set(patchPort("sin"+i, UUID("ls"+i), "in"+i, "router")),
			Set(PortBinding{UUID: UUID("vm" + i), LogicalPort: "vm" + i, Datapath: UUID("ls" + i)}))
	}
	rows.Apply(batch)
	return rows
}

func patchPort(name string, dp UUID, peer, mac string) PortBinding {
	return PortBinding{UUID: UUID(name), LogicalPort: name, Type: TypePatch, Datapath: dp, MAC: []string{mac}, Options: map[string]string{"peer": peer}}
}

// TestDirty: a change touches the routers that read the row, and no others.
func TestDirty(t *testing.T) {
	moved := patchPort("gw1", "lr1", "sgw1", "02:00:00:00:00:77")
	annotated := patchPort("sgw1", "pub", "gw1", "router")
	annotated.ExternalIDs = map[string]string{"a": "b"}
	known := patchPort("sgw1", "pub", "gw1", "router")
	known.NATAddresses = []string{"02:00:00:00:00:01 172.24.4.9"}
	rows := map[string]struct {
		ports  []UUID
		change Change
		want   []UUID
		all    bool
	}{
		"host":                        {change: Set(PortBinding{UUID: "vm1", LogicalPort: "vm1", Datapath: "ls1", Chassis: "x"}), want: []UUID{"lr1"}},
		"host deleted":                {change: Delete(TablePortBinding, "vm2"), want: []UUID{"lr2"}},
		"new host":                    {change: Set(PortBinding{UUID: "n", LogicalPort: "n", Datapath: "ls2"}), want: []UUID{"lr2"}},
		"annotation":                  {change: Set(annotated), want: []UUID{"lr1"}},
		"localnet":                    {change: Delete(TablePortBinding, "ln"), want: []UUID{"lr1", "lr2"}},
		"a neighbour's address":       {change: Set(moved), want: []UUID{"lr1", "lr2"}},
		"a neighbour's floating IP":   {change: Set(known), want: []UUID{"lr1", "lr2"}},
		"with a physical port":        {ports: []UUID{"p1"}, change: Set(moved), want: []UUID{"lr1"}},
		"a new neighbour":             {change: Set(patchPort("sgw3", "pub", "gw3", "router")), want: []UUID{"lr1", "lr2"}},
		"a name taken over":           {change: Set(PortBinding{UUID: "A", LogicalPort: "sgw1", Datapath: "ls2"}), want: []UUID{"lr1", "lr2"}},
		"unrelated datapath":          {change: Set(PortBinding{UUID: "n", LogicalPort: "n", Datapath: "ls9"})},
		"a learned neighbour":         {change: Set(MACBinding{UUID: "mb", LogicalPort: "gw2", IP: "172.24.4.254"}), want: []UUID{"lr2"}},
		"router row":                  {change: Set(LogicalRouter{UUID: "nb2", NAT: []UUID{"nat"}}), want: []UUID{"lr2"}},
		"a port on another bridge":    {change: Set(Port{UUID: "p9", Name: "tap9"})},
		"a port joins the bridge":     {change: Set(Bridge{UUID: "br", Name: "br-ex", Ports: []UUID{"p0", "p1"}}), all: true},
		"own chassis":                 {change: Delete(TableChassis, "ch"), all: true},
		"mappings":                    {change: Set(OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1", "ovn-bridge-mappings-a1": "physnet1:br-x"}}), all: true},
		"an unread key of the node's": {change: Set(OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1", "ovn-bridge-mappings": "physnet0:br-none,physnet1:br-ex", "x": "y"}})},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			d := small(row.ports...).Apply([]Change{row.change})
			if got := slices.Sorted(maps.Keys(d.Routers)); !slices.Equal(got, row.want) || d.All != row.all {
				t.Errorf("routers %v all %t, want %v %t", got, d.All, row.want, row.all)
			}
		})
	}
}

// TestRelations: what rows are needed is asked anew only after a change of what
// says so.
func TestRelations(t *testing.T) {
	renamed := DatapathBinding{UUID: "lr1", ExternalIDs: map[string]string{"logical-router": "nb1", "name": "x"}}
	for name, row := range map[string]struct {
		change Change
		want   bool
	}{
		"a host":                {Set(PortBinding{UUID: "n", LogicalPort: "n", Datapath: "ls1"}), false},
		"a host deleted":        {Delete(TablePortBinding, "vm1"), false},
		"a host's port retyped": {Set(PortBinding{UUID: "vm1", LogicalPort: "vm1", Datapath: "ls1", Type: TypeL3Gateway}), true},
		"a learned neighbour":   {Set(MACBinding{UUID: "mb", LogicalPort: "gw2", IP: "172.24.4.254"}), false},
		"a router port":         {Delete(TablePortBinding, "gw1"), true},
		"a datapath":            {Set(DatapathBinding{UUID: "ls1"}), true},
		"a datapath renamed":    {Set(renamed), false},
		"a datapath gone":       {Delete(TableDatapathBinding, "lr1"), true},
		"own chassis":           {Delete(TableChassis, "ch"), true},
		"a candidate":           {Set(HAChassis{UUID: "ha"}), true},
		"a group":               {Set(HAChassisGroup{UUID: "g"}), true},
		"the node's settings":   {Delete(TableOpenvSwitch, "ovs"), true},
		"a tap":                 {Set(Port{UUID: "tap", Name: "tap0"}), false},
		"a tap on br-int":       {Set(Bridge{UUID: "int", Name: "br-int", Ports: []UUID{"tap"}}), false},
		"SSL":                   {Set(SSL{UUID: "ssl"}), false},
		"a router's row":        {Set(LogicalRouter{UUID: "nb1"}), true},
		"a router's NAT":        {Set(LogicalRouter{UUID: "nb0", NAT: []UUID{"n1"}}), true},
		"a router's options":    {Set(LogicalRouter{UUID: "nb0", Options: map[string]string{"a": "b"}}), false},
		"a NAT row":             {Set(NAT{UUID: "nat"}), false},
		"a static route":        {Set(StaticRoute{UUID: "route"}), false},
		"a router port's row":   {Set(LogicalRouterPort{UUID: "lrp"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			rows := small()
			rows.Apply([]Change{Set(LogicalRouter{UUID: "nb0"})})
			if d := rows.Apply([]Change{row.change}); d.relations != row.want || d.All && !row.want {
				t.Errorf("relations %t, all %t; want %t", d.relations, d.All, row.want)
			}
		})
	}
}

// TestDiscoverSkipsNoUUID: a router whose Northbound row has no possible name is
// not asked for; with it the server would refuse to send any router.
func TestDiscoverSkipsNoUUID(t *testing.T) {
	const good = "0a1b2c3d-0000-4000-8000-00000000000f"
	rows := NewRows()
	batch := []Change{Set(Chassis{UUID: "ch", Name: "a1"}), Set(OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1"}})}
	for dp, nb := range map[UUID]string{"lr1": good, "lr2": "by hand"} {
		batch = append(batch, Set(DatapathBinding{UUID: dp, ExternalIDs: map[string]string{"logical-router": nb}}),
			Set(PortBinding{UUID: "cr-" + dp, LogicalPort: "cr-" + string(dp), Type: TypeChassisRedirect, Datapath: dp, Chassis: "ch"}))
	}
	rows.Apply(batch)
	if got := Discover(rows, Needs{}).NB["Logical_Router"]; !slices.Equal(got, []ovsdb.Clause{ovsdb.Equal("_uuid", ovsdb.UUID(good))}) {
		t.Errorf("routers asked for: %v", got)
	}
}

// TestRole: the reason names the first port, whatever the order of arrival.
func TestRole(t *testing.T) {
	rows := small()
	if r := rows.Role(); r.Gateway {
		t.Errorf("role %+v", r)
	}
	redirect := func(name string, chassis, group UUID) Change {
		return Set(PortBinding{UUID: UUID(name), LogicalPort: name, Type: TypeChassisRedirect, Chassis: chassis, HAChassisGroup: group})
	}
	rows.Apply([]Change{redirect("cr-b", "other", "g"), redirect("cr-a", "other", "g"), Set(PortBinding{UUID: "vm", LogicalPort: "a", Chassis: "ch"})})
	if r := rows.Role(); r.Gateway {
		t.Errorf("without a group that is ours: %+v", r)
	}
	rows.Apply([]Change{Set(HAChassisGroup{UUID: "g", Name: "group"})})
	if r := rows.Role(); !r.Gateway || r.Reason != "gateway port cr-a may move to this chassis (HA_Chassis_Group group)" {
		t.Errorf("a candidate: %+v", r)
	}
	rows.Apply([]Change{redirect("cr-b", "ch", "g")})
	if r := rows.Role(); !r.Gateway || r.Reason != "gateway port cr-b is bound to this chassis" {
		t.Errorf("bound: %+v", r)
	}
}

// TestNATUnknownUntilComplete: a router's NAT rows are unknown while one is missing.
func TestNATUnknownUntilComplete(t *testing.T) {
	rows := small()
	known := func() bool { _, ok := rows.NATOf("lr1"); return ok }
	if known() {
		t.Error("known without a router row")
	}
	rows.Apply([]Change{Set(LogicalRouter{UUID: "nb1", NAT: []UUID{"n1"}})})
	if known() {
		t.Error("known without the NAT row")
	}
	if d := rows.Apply([]Change{Set(NAT{UUID: "n1"})}); !known() || len(d.Routers) != 1 {
		t.Errorf("not known with the row, or not dirty: %v", d.Routers)
	}
}

func FuzzParseMappings(f *testing.F) {
	f.Add("physnet1:br-ex,physnet2:br-vlan")
	f.Add(":,a:,:b, c : d")
	f.Fuzz(func(t *testing.T, s string) {
		for network, bridge := range ParseMappings(s) {
			if network == "" || bridge == "" {
				t.Errorf("%q: %q → %q", s, network, bridge)
			}
		}
	})
}

// BenchmarkDiscover is one discovery with 1,000 routers on the node.
func BenchmarkDiscover(b *testing.B) {
	rows := small()
	var batch []Change
	for n := range 1000 {
		i := fmt.Sprint("x", n)
		cr := PortBinding{UUID: UUID("cr" + i), LogicalPort: "cr" + i, Type: TypeChassisRedirect, Datapath: UUID("lr" + i),
			Chassis: "ch", Options: map[string]string{"distributed-port": "gw" + i}}
		batch = append(batch, Set(cr),
			Set(DatapathBinding{UUID: UUID("lr" + i), ExternalIDs: map[string]string{"logical-router": "nb" + i}}),
			Set(patchPort("gw"+i, UUID("lr"+i), "sgw"+i, "02:00:00:00:00:01")), Set(patchPort("sgw"+i, "pub", "gw"+i, "router")),
			Set(patchPort("in"+i, UUID("lr"+i), "sin"+i, "02:00:00:00:01:01")), Set(patchPort("sin"+i, UUID("ls"+i), "in"+i, "router")))
	}
	rows.Apply(batch)
	needs := Needs{Hosts: func(*Rows, RouterInterface) bool { return true }}
	b.ReportAllocs()
	for b.Loop() {
		clauseSets(Discover(rows, needs).SB)
	}
}
