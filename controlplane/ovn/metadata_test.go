package ovn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// metadataRows is a node with a VM and its tap.
func metadataRows() *Rows {
	rows := NewRows()
	rows.FollowVMs(true)
	rows.Apply([]Change{
		Set(Chassis{UUID: "own", Name: "a1"}), Set(OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1"}}),
		Set(DatapathBinding{UUID: "red", ExternalIDs: map[string]string{"logical-switch": "nb", "name": "neutron-net1"}}),
		Set(PortBinding{UUID: "vm", LogicalPort: "vm", Datapath: "red", Chassis: "own"}),
		Set(PortBinding{UUID: "md", LogicalPort: "md", Type: TypeLocalport, Datapath: "red", ExternalIDs: map[string]string{keyDeviceID: "ovnmeta-net1"}}),
		Set(Interface{UUID: "if", Name: "tap", IfaceID: "vm", IfIndex: 7}), Set(Port{UUID: "po", Name: "tap", Interfaces: []UUID{"if"}}),
		Set(Bridge{UUID: "br", Name: "br-int", Ports: []UUID{"po"}}),
	})
	return rows
}

// TestMetadataDirty: a change says that it is of metadata, or makes the conditions be
// looked at, only if it is of what is read; and never touches a router for it.
func TestMetadataDirty(t *testing.T) {
	for name, row := range map[string]struct {
		change           Change
		dirty, relations bool
	}{
		"a VM comes":               {Set(PortBinding{UUID: "n", LogicalPort: "n", Datapath: "red", Chassis: "own"}), true, true},
		"a VM is about to come":    {Set(PortBinding{UUID: "n", LogicalPort: "n", Datapath: "red", Chassis: "x", AdditionalChassis: []UUID{"own"}}), true, true},
		"an external port comes":   {Set(PortBinding{UUID: "n", LogicalPort: "n", Type: TypeExternal, Datapath: "red", Chassis: "own"}), true, true},
		"a VM goes":                {Delete(TablePortBinding, "vm"), true, true},
		"a VM changes":             {Set(PortBinding{UUID: "vm", LogicalPort: "vm", Datapath: "red", Chassis: "own", MAC: []string{"x"}}), true, false},
		"a VM's switch changes":    {Set(PortBinding{UUID: "vm", LogicalPort: "vm", Datapath: "blue", Chassis: "own"}), true, true},
		"a VM elsewhere":           {Set(PortBinding{UUID: "n", LogicalPort: "n", Datapath: "red", Chassis: "x"}), false, false},
		"the metadata port":        {Set(PortBinding{UUID: "md", LogicalPort: "md", Type: TypeLocalport, Datapath: "red"}), true, true},
		"the network's name":       {Set(DatapathBinding{UUID: "red", ExternalIDs: map[string]string{"logical-switch": "nb", "name": "other"}}), true, true},
		"a tap of a VM":            {Set(Interface{UUID: "i2", Name: "t2", IfaceID: "vm2"}), true, false},
		"a tap's index":            {Set(Interface{UUID: "if", Name: "tap", IfaceID: "vm", IfIndex: 8}), true, false},
		"a tap is a VM's no more":  {Set(Interface{UUID: "if", Name: "tap"}), true, false},
		"a tap goes":               {Delete(TableInterface, "if"), true, false},
		"an Interface of nobody's": {Set(Interface{UUID: "i2", Name: "eth0"}), false, false},
		"the bridge's ports":       {Set(Bridge{UUID: "br", Name: "br-int"}), true, false},
		"another chassis":          {Set(ChassisPrivate{UUID: "cp", Name: "x"}), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := metadataRows().Apply([]Change{row.change})
			if d.VMs != row.dirty || d.relations != row.relations || d.All || len(d.Routers) > 0 {
				t.Errorf("metadata %t relations %t all %t routers %v, want %t %t", d.VMs, d.relations, d.All, d.Routers, row.dirty, row.relations)
			}
			without := metadataRows()
			without.FollowVMs(false)
			if d := without.Apply([]Change{row.change}); d.VMs {
				t.Error("dirty without need")
			}
		})
	}
}

// TestMetadataViews: what is read of the rows, after each of them went and came again.
func TestMetadataViews(t *testing.T) {
	rows := metadataRows()
	view := func() string {
		out := ""
		for _, p := range rows.ServedPorts() {
			out += p.LogicalPort + " "
			if md, ok := rows.MetadataPort(p.Datapath); ok {
				out += md.LogicalPort + " "
			}
			for _, a := range rows.Attachments(p.LogicalPort) {
				out += fmt.Sprint(a.Interface.Name, "@", a.Bridge, " ")
			}
		}
		return out
	}
	const all = "vm md tap@br-int "
	for _, step := range []struct {
		gone Change
		want string
	}{
		{Delete(TablePortBinding, "vm"), ""},
		{Delete(TablePortBinding, "md"), "vm tap@br-int "},
		{Delete(TableDatapathBinding, "red"), "vm tap@br-int "},
		{Delete(TableInterface, "if"), "vm md "},
		{Delete(TablePort, "po"), "vm md "},
		{Delete(TableBridge, "br"), "vm md "},
		{Delete(TableChassis, "own"), ""},
		{Set(Bridge{UUID: "br", Name: "br-x", Ports: []UUID{"po"}}), "vm md tap@br-x "},
		{Set(Interface{UUID: "if", Name: "tap", IfaceID: "other"}), "vm md "},
		{Set(PortBinding{UUID: "vm", LogicalPort: "vm", Datapath: "red", Chassis: "x", AdditionalChassis: []UUID{"y"}}), ""},
		{Set(PortBinding{UUID: "md", LogicalPort: "md", Type: TypeLocalport, Datapath: "red", ExternalIDs: map[string]string{keyDeviceID: "ovn-lb-hm-net1"}}), "vm tap@br-int "},
	} {
		rows.Apply([]Change{step.gone})
		if got := view(); got != step.want {
			t.Errorf("after %+v: %q, want %q", step.gone, got, step.want)
		}
		var back []Change
		full := metadataRows()
		for _, list := range [][]Row{values(full.ports), values(full.datapaths), values(full.chassis), values(full.interfaces), values(full.vsPorts), values(full.bridges)} {
			for _, r := range list {
				back = append(back, Set(r))
			}
		}
		rows.Apply(back)
		if got := view(); got != all {
			t.Fatalf("after %+v and back: %q, want %q", step.gone, got, all)
		}
	}
	if other := rows.withoutSB(); len(other.Attachments("vm")) != 1 || len(other.ServedPorts()) != 0 {
		t.Error("another Southbound database has another node's taps")
	}
}

// network adds a switch as Neutron does, with a VM on each chassis and with a
// metadata port beside another localport.
func (l *lab) network(name string, vms ...string) {
	args := []string{"ls-add", "neutron-" + name,
		"--", "lsp-add", "neutron-" + name, "md-" + name, "--", "lsp-set-type", "md-" + name, "localport", "--", "lsp-set-addresses", "md-" + name, "fa:16:3e:00:00:01 10.0.0.2",
		"--", "set", "Logical_Switch_Port", "md-" + name, `external_ids:neutron\:device_id=ovnmeta-` + name, `external_ids:neutron\:cidrs=10.0.0.2/24`, `external_ids:neutron\:mtu=1442`,
		"--", "lsp-add", "neutron-" + name, "hm-" + name, "--", "lsp-set-type", "hm-" + name, "localport",
		"--", "set", "Logical_Switch_Port", "hm-" + name, `external_ids:neutron\:device_id=ovn-lb-hm-` + name}
	for i, vm := range vms {
		args = append(args, "--", "lsp-add", "neutron-"+name, vm, "--", "lsp-set-addresses", vm, fmt.Sprintf("fa:16:3e:00:01:%02x 10.0.0.%d", i, 10+i),
			"--", "set", "Logical_Switch_Port", vm, `external_ids:neutron\:device_id=i-`+vm, `external_ids:neutron\:project_id=p-`+vm, `external_ids:neutron\:revision=7`)
	}
	l.nb(args...)
}

func (l *lab) bind(chassis string, vms ...string) {
	for _, vm := range vms {
		l.sb("--may-exist", "lsp-bind", vm, chassis)
	}
}

// TestFollowerMetadata: of the networks of VMs here the metadata ports are
// replicated and nothing else, whichever OVN the database is of; a VM is there as
// soon as it is about to come; and its tap is.
func TestFollowerMetadata(t *testing.T) {
	for name, raw := range map[string][]byte{"installed": nil, "25.03": schema.Southbound} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.vs("add-br", "br-int")
			l.network("red", "red1", "red2", "red3", "red4", "red5", "red6")
			l.bind("a1", "red1")
			l.bind("a2", "red2", "red3", "red4", "red5")
			l.network("blue", "blue1", "blue2")
			l.bind("a2", "blue1", "blue2")
			w := l.follow(Config{Needs: Needs{VMs: true, Metadata: true}})
			w.untilPorts("the start", "red1", "md-red")
			if raw != nil {
				l.convert(w, "sb", name, raw, []string{"red1", "md-red"})
			}
			w.untilPorts("the rows", "red1", "md-red")
			w.View(func(r *Rows) {
				p, _ := r.Port("red1")
				md, _ := r.MetadataPort(p.Datapath)
				if p.ExternalIDs[keyDeviceID] != "i-red1" || p.ExternalIDs["neutron:project_id"] != "p-red1" || p.ExternalIDs["neutron:revision"] != "" {
					t.Errorf("keys of the VM %v", p.ExternalIDs)
				}
				if md.LogicalPort != "md-red" || md.ExternalIDs["neutron:mtu"] != "1442" || md.ExternalIDs["neutron:cidrs"] != "10.0.0.2/24" {
					t.Errorf("metadata port %+v", md)
				}
			})

			a1 := l.sb("get", "Chassis", "a1", "_uuid")
			l.sb("set", "Port_Binding", "blue2", "additional_chassis="+a1)
			w.untilPorts("a VM is about to come", "red1", "md-red", "blue2", "md-blue")
			l.sb("lsp-unbind", "blue1", "--", "lsp-bind", "blue1", "a1")
			w.untilPorts("another comes", "red1", "md-red", "blue1", "blue2", "md-blue")
			l.sb("clear", "Port_Binding", "blue2", "additional_chassis", "--", "lsp-unbind", "blue1")
			w.untilPorts("both are gone", "red1", "md-red")
			l.nb("lsp-del", "md-red")
			w.untilPorts("no metadata port", "red1")

			l.vs("add-port", "br-int", "tapred1", "--", "set", "Interface", "tapred1", "external_ids:iface-id=red1", "external_ids:vm-id=x", "ifindex=7")
			w.until("the tap", func() (ok bool) {
				w.View(func(r *Rows) {
					a := r.Attachments("red1")
					ok = len(a) == 1 && a[0].Bridge == "br-int" && a[0].Interface.Name == "tapred1" && a[0].Interface.IfIndex == 7 && !r.Userspace("br-int")
				})
				return ok
			})
			l.vs("set", "Bridge", "br-int", "datapath_type=netdev", "--", "clear", "Interface", "tapred1", "ifindex")
			w.until("the userspace datapath", func() (ok bool) {
				w.View(func(r *Rows) { ok = r.Userspace("br-int") && r.Attachments("red1")[0].Interface.IfIndex == 0 })
				return ok
			})
			l.vs("del-port", "br-int", "tapred1")
			w.until("the tap gone", func() (ok bool) {
				w.View(func(r *Rows) { ok = len(r.Attachments("red1")) == 0 })
				return ok
			})
		})
	}
}

// TestFollowerMetadataOldOVN: before OVN 22.06 nothing says where a VM is about to
// come; all else is as it is.
func TestFollowerMetadataOldOVN(t *testing.T) {
	l := newLab(t)
	l.network("red", "red1")
	l.bind("a1", "red1")
	w := l.follow(Config{Needs: Needs{VMs: true, Metadata: true}})
	w.untilPorts("the start", "red1", "md-red")
	l.convert(w, "sb", "old", edited(t, schema.Southbound, map[string]string{"Port_Binding": "additional_chassis"}), []string{"red1", "md-red"})
	w.untilPorts("without the column", "red1", "md-red")
}

// TestFollowerGrows: a VM on a network that is new here is told of with the network's
// name before the network's rows have come, and the event says that they are to come. A
// server that is lost is no growth.
func TestFollowerGrows(t *testing.T) {
	l := newLab(t)
	l.network("red", "red1")
	l.network("blue", "blue1")
	l.nb("set", "Logical_Switch_Port", "blue1", `external_ids:neutron\:network_name=neutron-blue`)
	l.bind("a1", "red1")
	var mu sync.Mutex
	seen := map[string]bool{}
	w := l.follow(Config{Needs: Needs{VMs: true, Metadata: true}, Handle: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range e.Rows.ServedPorts() {
			_, there := e.Rows.Datapath(p.Datapath)
			seen[fmt.Sprintf("%s of %q, its switch %t, in sync %t, grows %t", p.LogicalPort, p.Network(), there, e.InSync.SB, e.InSync.SBGrows)] = true
		}
	}})
	w.untilPorts("the start", "red1", "md-red")
	l.bind("a1", "blue1")
	w.untilPorts("another network", "red1", "md-red", "blue1", "md-blue")
	l.run("ovs-appctl", "-t", l.path("sb.ctl"), "exit")
	l.waitFor("the loss", func() bool { return !w.Status().InSync.SB })
	if w.Status().InSync.SBGrows {
		t.Error("rows are still to come from a server that is lost")
	}
	mu.Lock()
	defer mu.Unlock()
	for what, want := range map[string]bool{
		`blue1 of "blue", its switch false, in sync false, grows true`: true,
		`blue1 of "blue", its switch true, in sync true, grows false`:  true,
		`blue1 of "blue", its switch false, in sync true, grows false`: false,
		`red1 of "", its switch true, in sync true, grows false`:       true,
		`red1 of "", its switch false, in sync false, grows true`:      false,
	} {
		if seen[what] != want {
			t.Errorf("%s: %t, want %t", what, seen[what], want)
		}
	}
	if t.Failed() {
		t.Logf("seen: %q", slices.Sorted(maps.Keys(seen)))
	}
}

// TestFollowerMetadataCosts: without need none of it is replicated; with it, what other
// nodes' agents write is no event, and a tap touches no router.
func TestFollowerMetadataCosts(t *testing.T) {
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1", "a2") // so that a2's row is followed
	l.network("red", "red1", "red2")
	l.bind("a1", "red1")
	l.vs("add-br", "br-int")
	a2 := strings.TrimSpace(l.sb("get", "Chassis", "a2", "_uuid"))
	l.sb("create", "Chassis_Private", "name=a2", "chassis="+a2)
	base := append([]string{"ln-public", "red1"}, owned("r1", false)...)
	plain := l.follow(Config{})
	plain.untilPorts("without need", base...)
	plain.View(func(r *Rows) {
		if p, _ := r.Port("red1"); len(r.interfaces) > 0 || len(p.ExternalIDs) > 0 {
			t.Errorf("%d Interfaces and the keys %v", len(r.interfaces), p.ExternalIDs)
		}
	})
	w := l.follow(Config{Needs: Needs{VMs: true, Metadata: true}})
	w.untilPorts("with need", append([]string{"md-red"}, base...)...)
	state := func() (events, all int, routers string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.seen, w.all, fmt.Sprint(w.dirty)
	}
	events, all, routers := state()
	l.sb("set", "Chassis_Private", "a2", `external_ids:neutron\:ovn-metadata-sb-cfg=77`)
	l.vs("add-port", "br-int", "tapred1", "--", "set", "Interface", "tapred1", "external_ids:iface-id=red1")
	w.until("the tap", func() (ok bool) {
		w.View(func(r *Rows) { ok = len(r.Attachments("red1")) == 1 })
		return ok
	})
	if e, a, r := state(); e > events+2 || a != all || r != routers {
		t.Errorf("%d events, %d of them for all routers, routers %s; there were %d, %d, %s", e, a, r, events, all, routers)
	}
}

// TestMetadataAgentKeys: Neutron's keys are written beside the others, never over another
// agent's identifier; nb_cfg follows; the list of networks goes when it was Sluice's.
func TestMetadataAgentKeys(t *testing.T) {
	l := newLab(t)
	l.network("red", "red1")
	l.bind("a1", "red1")
	w := l.follow(Config{Needs: Needs{VMs: true, Metadata: true}})
	w.publisher.mu.Lock()
	w.publisher.agent.spread = time.Millisecond
	w.publisher.mu.Unlock()
	w.untilPorts("the start", "red1", "md-red")
	get := func(table, key string) string {
		return strings.Trim(l.sb("--if-exists", "get", table, "a1", `external_ids:`+strings.ReplaceAll(key, ":", `\:`)), `"`)
	}
	has := func(table, key, want string) {
		t.Helper()
		l.waitFor(fmt.Sprintf("%s=%q in %s", key, want, table), func() bool { return get(table, key) == want })
	}
	agent := MetadataAgent{ID: "one", Bridge: "br-int", Alive: true, Publish: true, Networks: []string{"red", "blue", "red"}}
	w.PublishMetadata(agent)
	has("Chassis_Private", keyAgentID, "one")
	has("Chassis_Private", keyAgentBridge, "br-int")
	has("Chassis_Private", "foreign", "kept")
	has("Chassis_Private", "sluice-old", "1") // Publish was not called
	has("Chassis", keyProxyNetworks, "blue,red")
	cfg := func() string { return l.sb("get", "SB_Global", ".", "nb_cfg") }
	has("Chassis_Private", keyAgentCfg, cfg())
	for range 3 {
		l.nb("sync")
		has("Chassis_Private", keyAgentCfg, cfg())
	}

	agent.Alive, agent.ID = false, "two"
	w.PublishMetadata(agent)
	was := get("Chassis_Private", keyAgentCfg)
	l.nb("sync")
	agent.Networks = []string{"red"}
	w.PublishMetadata(agent)
	has("Chassis", keyProxyNetworks, "red")
	has("Chassis_Private", keyAgentCfg, was)
	has("Chassis_Private", keyAgentID, "one")
	// ovn-controller was started anew: its row is another.
	l.sb("destroy", "Chassis_Private", "a1", "--", "create", "Chassis_Private", "name=a1")
	has("Chassis_Private", keyAgentID, "two")

	agent.Networks = nil
	w.PublishMetadata(agent)
	has("Chassis", keyProxyNetworks, "")
	has("Chassis", keyProxyOurs, "")
	l.sb("set", "Chassis", "a1", "external_ids:"+keyProxyNetworks+"=another's")
	agent.Networks, agent.Publish = []string{"red"}, false
	w.PublishMetadata(agent)
	l.nb("sync")
	has("Chassis", keyProxyNetworks, "another's")
	if s := w.Status(); s.Publish != nil {
		t.Error(s.Publish)
	}
	// What an earlier run wrote goes by a later one that does not serve metadata.
	l.sb("set", "Chassis", "a1", "external_ids:"+keyProxyOurs+"=true")
	l.follow(Config{}).PublishMetadata(MetadataAgent{})
	has("Chassis", keyProxyNetworks, "")
	has("Chassis_Private", keyAgentID, "two")
}

// TestMetadataConditions: the server is asked by clauses, which name the networks here.
func TestMetadataConditions(t *testing.T) {
	rows := metadataRows()
	if got := words(Discover(rows, Needs{}).SB["Port_Binding"]); len(got) != 2 {
		t.Errorf("without need %q", got)
	}
	w := Discover(rows, Needs{VMs: true, Metadata: true})
	for _, want := range []ovsdb.Clause{
		ovsdb.Includes("additional_chassis", ovsdb.UUID("own")), ovsdb.IncludesPair("external_ids", "neutron:device_id", "ovnmeta-net1"),
	} {
		if !slices.Contains(w.SB["Port_Binding"], want) {
			t.Errorf("%s is not among %q", want, words(w.SB["Port_Binding"]))
		}
	}
	if got := words(w.SB["Datapath_Binding"]); !slices.Equal(got, []string{ovsdb.Equal("_uuid", ovsdb.UUID("red")).String()}) || len(w.SB["SB_Global"]) != 1 {
		t.Errorf("switches %q, global %v", got, w.SB["SB_Global"])
	}
}

// TestFollowerACLs: of the Northbound database the ACLs of VMs here come, by their
// switch and their port groups, with the address sets that they name, as ovn-northd gives
// them; whether it knows tiers or not.
func TestFollowerACLs(t *testing.T) {
	for name, raw := range map[string][]byte{"installed": nil, "25.03": schema.Northbound} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.network("red", "red1", "red2")
			l.network("blue", "blue1")
			l.bind("a1", "red1")
			l.bind("a2", "red2", "blue1")
			l.nb("pg-add", "pg_a", "red1", "red2", "--", "pg-add", "pg_b", "red1", "--", "pg-add", "pg_c", "red2", "blue1",
				"--", "acl-add", "pg_a", "from-lport", "1002", `inport == @pg_a && ip4.dst == $near`, "allow-related",
				"--", "acl-add", "pg_a", "from-lport", "1000", `ip4.dst == $pg_c_ip4`, "drop",
				"--", "acl-add", "pg_a", "to-lport", "1002", `outport == @pg_a && ip4.src == $far`, "allow-related",
				"--", "--apply-after-lb", "acl-add", "pg_b", "from-lport", "1001", "ip", "drop",
				"--", "acl-add", "pg_c", "from-lport", "1001", "inport == @pg_c", "drop",
				"--", "acl-add", "neutron-red", "from-lport", "7", "ip6", "drop",
				"--", "create", "Address_Set", "name=near", `addresses="10.0.0.0/8"`, "--", "create", "Address_Set", "name=far", `addresses="10.0.0.0/8"`)
			w := l.follow(Config{Needs: Needs{VMs: true, Metadata: true, ACLs: true}, Northbound: l.remote("nb")})
			state := func() (out string) {
				w.View(func(r *Rows) {
					p, _ := r.Port("red1")
					rules, groups, known := r.ACLsOf("red1", p.Datapath)
					for _, a := range rules {
						out += fmt.Sprint(a.Priority, " ", a.Action, " ", a.Tier, " ", a.AfterLB, "; ")
					}
					_, near := r.AddressSet("near")
					_, far := r.AddressSet("far")
					_, made := r.AddressSet("pg_c_ip4")
					words := strings.Split(strings.TrimSuffix(out, "; "), "; ")
					slices.Sort(words)
					out = fmt.Sprint(words, groups, known, near, far, made, len(r.groups), len(r.aclRows.acls), r.DefaultACLDrop())
				})
				return out
			}
			expect := func(what, want string) {
				t.Helper()
				w.until(what, func() bool { return state() == want })
			}
			defer func() {
				if t.Failed() {
					t.Log(state())
				}
			}()
			const all = "[1000 drop 0 false 1001 drop 0 true 1002 allow-related 0 false 7 drop 0 false] map[pg_a:true pg_b:true] true true false true 2 5 false"
			expect("the ACLs", all)
			if raw != nil {
				l.convert(w, "nb", name, raw, []string{"red1", "md-red"})
				expect("the ACLs after the upgrade", all)
			}
			l.nb("set", "NB_Global", ".", "options:default_acl_drop=true", "--", "acl-del", "neutron-red", "--", "pg-del", "pg_b")
			expect("fewer", "[1000 drop 0 false 1002 allow-related 0 false] map[pg_a:true] true true false true 1 3 true")
			l.nb("acl-del", "pg_a", "--", "acl-add", "pg_a", "from-lport", "5", `ip4.dst == $far`, "drop")
			expect("another", "[5 drop 0 false] map[pg_a:true] true false true false 1 1 true")
			l.sb("lsp-unbind", "red1")
			w.until("nothing", func() bool {
				ok := false
				w.View(func(r *Rows) { ok = len(r.aclRows.acls)+len(r.groups)+len(r.sets)+len(r.switchPorts) == 0 })
				return ok
			})
		})
	}
}
