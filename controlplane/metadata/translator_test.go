package metadata

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vmports"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Each rule, and each row, tap or key that comes late, by what becomes of the port.
func TestWays(t *testing.T) {
	device := func(reason string) func(cloud) {
		return func(c cloud) { c.devices["tapvm"] = intent.TapDevice{Reason: reason, Detail: "why"} }
	}
	edit := func(change func(*ovn.PortBinding)) func(cloud) { return func(c cloud) { c.edit("vm", change) } }
	without := func(ids ...string) func(cloud) {
		return func(c cloud) {
			for _, id := range ids {
				delete(c.rows, id)
			}
		}
	}
	for name, tt := range map[string]struct {
		path   Path
		change func(cloud)
		want   string
	}{
		"a tap":                         {want: "vm tap tapvm/7/0"},
		"no tap that can be steered":    {change: device(reason.TapNetdev), want: "vm namespace ok:tap-netdev; ns red for vm"},
		"a tap that is not clear":       {change: device(reason.TapUnknown), want: "vm namespace warning:tap-unknown; ns red for vm"},
		"a reason that is not known":    {change: device("new-reason"), want: "vm namespace warning:tap-unknown; ns red for vm"},
		"a tap that is still to come":   {change: device(reason.TapMissing), want: "vm none pending:tap-missing"},
		"nobody has looked for the tap": {change: func(c cloud) { delete(c.devices, "tapvm") }, want: "vm none pending:tap-missing"},
		"by eBPF or not at all":         {path: PathEBPF, change: device(reason.TapNetdev), want: "vm none warning:tap-netdev"},
		"by the namespace always":       {path: PathNamespace, want: "vm namespace; ns red for vm"},
		"neither tap nor metadata port": {change: func(c cloud) { device(reason.TapUnknown)(c); delete(c.rows, "pb-md-red") }, want: "vm none warning:no-metadata-port"},
		"no metadata port, and a tap":   {change: without("pb-md-red"), want: "vm tap tapvm/7/0"},
		"another localport of the net": {path: PathNamespace, change: func(c cloud) {
			c.edit("md-red", func(p *ovn.PortBinding) { p.ExternalIDs[keyDeviceID] = "ovn-lb-hm-red" })
		}, want: "vm none warning:no-metadata-port"},
		"a metadata port without MAC": {path: PathNamespace, change: func(c cloud) { c.edit("md-red", func(p *ovn.PortBinding) { p.MAC = nil }) },
			want: "vm none warning:no-metadata-port; red error:bad-mac"},
		"a metadata port with a bad MAC": {change: func(c cloud) { c.edit("md-red", func(p *ovn.PortBinding) { p.MAC = []string{"xx 10.0.0.2"} }) },
			want: "vm tap tapvm/7/0; red error:bad-mac"},
		"a metadata port with bad addresses": {change: func(c cloud) { c.edit("md-red", func(p *ovn.PortBinding) { p.ExternalIDs[keyCIDRs] = "x" }) },
			want: "vm tap tapvm/7/0; red error:bad-cidrs"},
		"a metadata port with a bad MTU": {path: PathNamespace, change: func(c cloud) { c.edit("md-red", func(p *ovn.PortBinding) { p.ExternalIDs[keyMTU] = "65536" }) },
			want: "vm namespace; ns red for vm; red error:bad-mtu"},
		"a subnet without metadata address": {path: PathNamespace, change: func(c cloud) { c.edit("md-red", func(p *ovn.PortBinding) { p.ExternalIDs[keyCIDRs] = "" }) },
			want: "vm namespace warning:no-metadata-address; ns red for vm"},
		"an external port": {change: edit(func(p *ovn.PortBinding) { p.Type = ovn.TypeExternal }),
			want: "vm namespace ok:external-port; ns red for vm"},
		"an external port, and eBPF only": {path: PathEBPF, change: edit(func(p *ovn.PortBinding) { p.Type = ovn.TypeExternal }), want: "vm none warning:external-port"},
		"a localport is no VM":            {change: edit(func(p *ovn.PortBinding) { p.Type = ovn.TypeLocalport }), want: ""},
		"bound elsewhere":                 {change: edit(func(p *ovn.PortBinding) { p.Chassis = there }), want: ""},
		"no longer bound":                 {change: edit(func(p *ovn.PortBinding) { p.Chassis = "" }), want: ""},
		"about to migrate here":           {change: edit(func(p *ovn.PortBinding) { p.Chassis, p.AdditionalChassis = there, []ovn.UUID{here} }), want: "vm tap tapvm/7/0"},
		"about to migrate here, no tap": {change: func(c cloud) {
			without("if-vm")(c)
			c.edit("vm", func(p *ovn.PortBinding) { p.Chassis, p.AdditionalChassis = there, []ovn.UUID{here} })
		}, want: "vm none pending:tap-missing"},
		"about to migrate away":         {change: edit(func(p *ovn.PortBinding) { p.AdditionalChassis = []ovn.UUID{there} }), want: "vm tap tapvm/7/0"},
		"here in both ways":             {change: edit(func(p *ovn.PortBinding) { p.AdditionalChassis = []ovn.UUID{here} }), want: "vm tap tapvm/7/0"},
		"down":                          {change: edit(func(p *ovn.PortBinding) { p.Up = false }), want: "vm tap tapvm/7/0"},
		"no device_id yet":              {change: edit(func(p *ovn.PortBinding) { delete(p.ExternalIDs, keyDeviceID) }), want: "vm tap tapvm/7/0 pending:no-instance"},
		"the tap before the row":        {change: without("pb-vm"), want: ""},
		"the row before the tap":        {change: without("if-vm", "po-vm"), want: "vm none pending:tap-missing"},
		"the Interface before its Port": {change: without("po-vm"), want: "vm none pending:tap-missing"},
		"a tap on another bridge": {change: func(c cloud) {
			b := c.rows["br-int"].(ovn.Bridge)
			b.Name = "br-other"
			c.put(b)
		}, want: "vm none pending:tap-missing"},
		"the tap made again, not seen by Open vSwitch": {change: func(c cloud) { c.devices["tapvm"] = intent.TapDevice{Name: "tapvm", IfIndex: 8} }, want: "vm none pending:tap-changed"},
		"Open vSwitch has not opened it": {change: func(c cloud) {
			i := c.rows["if-vm"].(ovn.Interface)
			i.IfIndex = 0
			c.put(i)
		}, want: "vm tap tapvm/7/0"},
		"hybrid plug":              {change: func(c cloud) { c.devices["tapvm"] = intent.TapDevice{Name: "tap-behind", IfIndex: 70} }, want: "vm tap tap-behind/70/0"},
		"no row of the switch yet": {change: without("red"), want: "vm none pending:network-missing"},
		"no address":               {change: edit(func(p *ovn.PortBinding) { p.MAC = []string{"unknown"} }), want: "vm none withheld:no-address"},
		"a bad element":            {change: edit(func(p *ovn.PortBinding) { p.MAC = append(p.MAC, "fa:16:3e:00:00:07 10.0.0.300") }), want: "vm tap tapvm/7/0 error:bad-mac"},
		"nothing that can be read": {change: edit(func(p *ovn.PortBinding) { p.MAC = []string{"x"} }), want: "vm none error:bad-mac"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample()
			if tt.change != nil {
				tt.change(c)
			}
			check(t, c, Config{Path: tt.path}, tt.want)
		})
	}
}

// The rows of a port and of a namespace, column by column.
func TestRows(t *testing.T) {
	c := sample()
	c.vm("bare", "red", "fa:16:3e:00:00:07", "fa:16:3e:00:00:08", "unknown")
	c.edit("bare", func(p *ovn.PortBinding) { p.Type = ovn.TypeExternal; p.ExternalIDs[keyCIDRs] = "10.0.0.7/24" })
	b := c.rows["br-int"].(ovn.Bridge)
	b.DatapathType = "netdev"
	c.put(b)
	tr := check(t, c, Config{PublishNetworks: true}, "bare namespace ok:external-port; vm tap tapvm/7/0; ns red for bare")
	mac := func(n byte) intent.MAC { return intent.MAC{0xfa, 0x16, 0x3e, 0, 0, n} }
	addr := netip.MustParseAddr
	want := map[string]intent.MetadataPort{
		"vm": {Port: "vm", Network: "red", Instance: "instance-vm", Project: "project-vm", Answer: mac(1), Tap: intent.Tap{Name: "tapvm", IfIndex: 7},
			Addresses: intent.NewPortAddressSet(intent.PortAddress{MAC: mac(5), Addr: addr("10.0.0.5")}, intent.PortAddress{MAC: mac(5), Addr: addr("2001:db8::5")})},
		"bare": {Port: "bare", Network: "red", Instance: "instance-bare", Project: "project-bare", Answer: mac(1),
			Addresses: intent.NewPortAddressSet(intent.PortAddress{MAC: mac(7)}, intent.PortAddress{MAC: mac(7), Addr: addr("10.0.0.7")}, intent.PortAddress{MAC: mac(8)})},
	}
	tables := tr.Tables()
	for name, w := range want {
		if got := wanted.Rows(tables, intent.MetadataPorts)[name]; got != w {
			t.Errorf("%s\n got %+v\nwant %+v", name, got, w)
		}
	}
	ns := intent.MetadataNetwork{Network: "red", Port: "md-red", MAC: mac(1), MTU: 1442, IPv6: true, Bridge: "br-int", Userspace: true,
		Addresses: intent.NewPrefixSet(netip.MustParsePrefix("10.0.0.2/24")), // no VM here is in the other subnets of IPv4
		Neighbours: intent.NewPortAddressSet(intent.PortAddress{MAC: mac(5), Addr: addr("10.0.0.5")}, intent.PortAddress{MAC: mac(5), Addr: addr("fe80::f816:3eff:fe00:5")},
			intent.PortAddress{MAC: mac(7), Addr: addr("10.0.0.7")}, intent.PortAddress{MAC: mac(7), Addr: addr("fe80::f816:3eff:fe00:7")},
			intent.PortAddress{MAC: mac(8), Addr: addr("fe80::f816:3eff:fe00:8")})}
	if got := wanted.Rows(tables, intent.MetadataNetworks)["red"]; got != ns {
		t.Errorf("\n got %+v\nwant %+v", got, ns)
	}
	if a := tr.Agent(); a.ID != AgentID("a1") || a.Bridge != "br-int" || !a.Publish || !slices.Equal(a.Networks, []string{"red"}) || a.Alive {
		t.Errorf("agent %+v", a)
	}
	delete(c.rows, "pb-md-red")
	if got := wanted.Rows(c.step(Config{Answer: answer}).Tables(), intent.MetadataPorts)["vm"].Answer; got != answer {
		t.Errorf("without a metadata port %s answers", got)
	}
	c.plug("later", "br-int", 9) // its port is not bound yet
	c.plug("elsewhere", "br-other", 10)
	if got := vmports.Interfaces(c.load()); !slices.Equal(got, []intent.Interface{{Name: "taplater", Userspace: true}, {Name: "tapvm", Userspace: true}}) {
		t.Errorf("devices of %+v are asked for", got)
	}
}

// Namespaces know the ports of their network here, whichever way these are served: by what
// answers reach them with, and none by an address that two ports have.
func TestNeighbours(t *testing.T) {
	c := sample()
	c.vm("same", "red", "fa:16:3e:00:00:07 10.0.0.5 10.0.0.7")
	c.vm("tap", "red", "fa:16:3e:00:00:08 10.0.0.8")
	c.plug("tap", "br-int", 8)
	c.vm("other", "red", "fa:16:3e:00:00:09 192.0.2.9 fe80::9")
	for _, name := range []string{"vm", "same", "other"} {
		c.edit(name, func(p *ovn.PortBinding) { p.Type = ovn.TypeExternal })
	}
	want := "fa:16:3e:00:00:05 fe80::f816:3eff:fe00:5, fa:16:3e:00:00:07 10.0.0.7, fa:16:3e:00:00:07 fe80::f816:3eff:fe00:7, " +
		"fa:16:3e:00:00:08 10.0.0.8, fa:16:3e:00:00:08 fe80::f816:3eff:fe00:8, fa:16:3e:00:00:09 fe80::9, fa:16:3e:00:00:09 fe80::f816:3eff:fe00:9"
	if got := wanted.Rows(c.step(Config{}).Tables(), intent.MetadataNetworks)["red"].Neighbours.String(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	c.edit("vm", func(p *ovn.PortBinding) { p.MAC = []string{"fa:16:3e:00:00:05 10.0.0.6"} })
	c.edit("other", func(p *ovn.PortBinding) { p.MAC = []string{"fa:16:3e:00:00:09 192.0.2.9"} })
	want = "fa:16:3e:00:00:05 10.0.0.6, fa:16:3e:00:00:07 10.0.0.5, fa:16:3e:00:00:07 10.0.0.7, fa:16:3e:00:00:08 10.0.0.8"
	if got := wanted.Rows(c.step(Config{}).Tables(), intent.MetadataNetworks)["red"].Neighbours.String(); got != want {
		t.Errorf("without IPv6\n got %s\nwant %s", got, want)
	}
	// A port's own two MAC addresses are no reason to ask who has the address.
	c.edit("vm", func(p *ovn.PortBinding) { p.MAC = []string{"fa:16:3e:00:00:05 10.0.0.6", "fa:16:3e:00:00:15 10.0.0.6"} })
	if got := wanted.Rows(c.step(Config{}).Tables(), intent.MetadataNetworks)["red"].Neighbours.String(); got != want {
		t.Errorf("with two MAC addresses\n got %s\nwant %s", got, want)
	}
}

// Subports have their trunk's tap with their own VLAN, and its instance.
func TestTrunks(t *testing.T) {
	subport := func(c cloud, name string, tag int) {
		c.vm(name, "red", "fa:16:3e:00:00:09 10.0.0.9")
		c.edit(name, func(p *ovn.PortBinding) {
			p.ParentPort, p.Tag, p.ExternalIDs = "vm", tag, nil
		})
	}
	for name, tt := range map[string]struct {
		change func(cloud)
		want   string
	}{
		"a subport":         {func(cloud) {}, "sub tap tapvm/7/101; vm tap tapvm/7/0"},
		"no tag":            {func(c cloud) { c.edit("sub", func(p *ovn.PortBinding) { p.Tag = 0 }) }, "sub none error:bad-tag; vm tap tapvm/7/0"},
		"no VLAN":           {func(c cloud) { c.edit("sub", func(p *ovn.PortBinding) { p.Tag = 4095 }) }, "sub none error:bad-tag; vm tap tapvm/7/0"},
		"before its trunk":  {func(c cloud) { delete(c.rows, "pb-vm") }, "sub none pending:parent-missing"},
		"a trunk elsewhere": {func(c cloud) { c.edit("vm", func(p *ovn.PortBinding) { p.Chassis = there }) }, "sub none pending:parent-missing"},
		"of a subport":      {func(c cloud) { c.edit("vm", func(p *ovn.PortBinding) { p.ParentPort = "sub" }) }, "sub none error:bad-tag; vm none error:bad-tag"},
		"two with one tag":  {func(c cloud) { subport(c, "sub2", 101) }, "sub tap tapvm/7/101; sub2 none error:tap-conflict; vm tap tapvm/7/0"},
		"in userspace": {func(c cloud) { c.devices["tapvm"] = intent.TapDevice{Reason: reason.TapNetdev} },
			"sub namespace ok:tap-netdev; vm namespace ok:tap-netdev; ns red for sub,vm"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample()
			subport(c, "sub", 101)
			tt.change(c)
			tr := check(t, c, Config{}, tt.want)
			if p, served := wanted.Rows(tr.Tables(), intent.MetadataPorts)["sub"]; served && (p.Instance != "instance-vm" || p.Project != "project-vm") {
				t.Errorf("the subport is %s of %s", p.Instance, p.Project)
			}
		})
	}
}

// What cannot be told apart is nobody's, and is said.
func TestNeverAnothers(t *testing.T) {
	twin := func(c cloud, name, mac string) {
		c.vm(name, "red", mac)
		c.edit(name, func(p *ovn.PortBinding) { p.Type = ovn.TypeExternal })
	}
	t.Run("one tap", func(t *testing.T) {
		c := sample()
		c.vm("vm2", "red", "fa:16:3e:00:00:09 10.0.0.9")
		c.plug("vm2", "br-int", 8)
		c.devices["tapvm2"] = intent.TapDevice{Name: "tapvm", IfIndex: 7}
		check(t, c, Config{}, "vm tap tapvm/7/0; vm2 none error:tap-conflict")
	})
	t.Run("two Interfaces", func(t *testing.T) {
		c := sample()
		c.plug("new", "br-int", 9)
		i := c.rows["if-new"].(ovn.Interface)
		i.IfaceID = "vm"
		c.put(i)
		check(t, c, Config{}, "vm namespace warning:tap-unknown; ns red for vm")
		c.devices["tapvm"] = intent.TapDevice{Reason: reason.TapMissing} // the old one goes
		check(t, c, Config{}, "vm tap tapnew/9/0")
	})
	t.Run("one address by tap and by namespace", func(t *testing.T) {
		c := sample()
		twin(c, "twin", "fa:16:3e:00:00:99 10.0.0.5 10.0.0.99")
		tr := check(t, c, Config{}, "twin namespace error:duplicate-address; vm tap tapvm/7/0; ns red for twin")
		if n := len(wanted.Rows(tr.Tables(), intent.MetadataPorts)["twin"].Addresses.All()); n != 2 {
			t.Errorf("%d addresses: who looks an address up among both finds both", n)
		}
	})
	t.Run("the other is not served", func(t *testing.T) {
		c := sample()
		c.devices["tapvm"] = intent.TapDevice{Reason: reason.TapMissing}
		twin(c, "twin", "fa:16:3e:00:00:99 10.0.0.5 10.0.0.99")
		tr := check(t, c, Config{}, "twin namespace error:duplicate-address; vm none pending:tap-missing; ns red for twin")
		if got := wanted.Rows(tr.Tables(), intent.MetadataPorts)["twin"].Addresses.String(); got != "fa:16:3e:00:00:99 10.0.0.99" {
			t.Errorf("addresses %s: nobody else would be found", got)
		}
	})
	t.Run("one MAC", func(t *testing.T) {
		c := sample()
		twin(c, "twin", "fa:16:3e:00:00:05 10.0.0.99")
		check(t, c, Config{}, "twin namespace error:duplicate-address; vm tap tapvm/7/0; ns red for twin")
	})
	t.Run("another network", func(t *testing.T) {
		c := sample()
		c.network("blue", "fa:16:3e:00:01:01", "10.0.0.2/24")
		twin(c, "twin", "fa:16:3e:00:00:05 10.0.0.5")
		c.edit("twin", func(p *ovn.PortBinding) { p.Datapath = "blue" })
		check(t, c, Config{}, "twin namespace ok:external-port; vm tap tapvm/7/0; ns blue for twin")
	})
	t.Run("two switches of one name", func(t *testing.T) {
		c := sample()
		c.network("redder", "fa:16:3e:00:01:01", "10.0.0.2/24")
		d := c.rows["redder"].(ovn.DatapathBinding)
		d.ExternalIDs = map[string]string{"logical-switch": "nb-redder", "name": "red"}
		c.put(d)
		twin(c, "twin", "fa:16:3e:00:00:05 10.0.0.5")
		c.edit("twin", func(p *ovn.PortBinding) { p.Datapath = "redder" })
		tr := check(t, c, Config{Path: PathNamespace}, "twin none warning:no-metadata-port; vm namespace; ns red for vm; nb-redder error:network-conflict")
		if n := tr.Ports()[0].Network; n != "nb-redder" {
			t.Errorf("the second is network %s", n)
		}
	})
}

// Nothing changes while Southbound is not in sync, and what changed meanwhile is said then.
func TestNotInSync(t *testing.T) {
	c := sample()
	tr := NewTranslator(Config{})
	if d := tr.Step(c.load(), c.devices, synced); len(wanted.Of(d, intent.MetadataPorts).Set) != 1 || tr.Stale() {
		t.Fatalf("difference %+v", d)
	}
	before := tr.Complaints()
	delete(c.rows, "pb-vm")
	if d := tr.Step(c.load(), nil, ovn.InSync{NB: true}); !d.Empty() || !tr.Stale() || len(wanted.Rows(tr.Tables(), intent.MetadataPorts)) != 1 || len(tr.Ports()) != 1 || tr.Complaints() != before {
		t.Errorf("while rows are missing: %+v", d)
	}
	if d := tr.Step(c.load(), c.devices, synced); !slices.Equal(wanted.Of(d, intent.MetadataPorts).Delete, []string{"vm"}) || tr.Stale() {
		t.Errorf("difference %+v", d)
	}
	c.vm("vm", "red")
	if tr.Step(c.load(), c.devices, synced); tr.Complaints() == before {
		t.Error("nothing is said of a port without an address")
	}
}

// A port on a network that is new here is served before its network's rows have come, and
// goes on by what these say then. Whatever is not sure waits.
func TestEarly(t *testing.T) {
	grows := ovn.InSync{SBGrows: true, VSwitch: true, NB: true}
	comes := func(c cloud) {
		c.vm("new", "blue", "fa:16:3e:00:00:05 10.0.0.5")
		c.edit("new", func(p *ovn.PortBinding) { p.ExternalIDs["neutron:network_name"] = "neutron-blue" })
		c.plug("new", "br-int", 8)
	}
	for name, tt := range map[string]struct {
		cfg    Config
		change func(cloud)
		want   []string
	}{
		"a new port": {want: []string{"new"}},
		"Neutron does not name a network": {change: func(c cloud) {
			c.edit("new", func(p *ovn.PortBinding) { delete(p.ExternalIDs, "neutron:network_name") })
		}},
		"nobody has looked for the tap": {change: func(c cloud) { delete(c.devices, "tapnew") }},
		"no tap that can be steered":    {change: func(c cloud) { c.devices["tapnew"] = intent.TapDevice{Reason: reason.TapNetdev} }},
		"the tap is another port's": {change: func(c cloud) {
			c.devices["tapnew"], c.rows["if-new"] = intent.TapDevice{Name: "tapvm", IfIndex: 7}, ovn.Interface{UUID: "if-new", Name: "tapnew", IfaceID: "new"}
		}},
		"the other port is missing":     {change: func(c cloud) { delete(c.rows, "pb-vm") }, want: []string{"new"}},
		"an instance that is not known": {change: func(c cloud) { c.edit("new", func(p *ovn.PortBinding) { delete(p.ExternalIDs, keyDeviceID) }) }},
		"the name of another network": {change: func(c cloud) {
			c.edit("new", func(p *ovn.PortBinding) { p.ExternalIDs["neutron:network_name"] = "neutron-red" })
		}},
		"by namespaces":        {cfg: Config{Path: PathNamespace}},
		"ACLs are to be asked": {cfg: Config{Respect: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample()
			tt.cfg.Answer, tt.cfg.PublishNetworks = answer, true
			tr := NewTranslator(tt.cfg)
			comes(c)
			if d := tr.Step(c.load(), c.devices, grows); !d.Empty() {
				t.Fatalf("before anything was whole: %+v", d)
			}
			c = sample()
			tr.Step(c.load(), c.devices, synced)
			before := tr.Tables()
			comes(c)
			if tt.change != nil {
				tt.change(c)
			}
			d := tr.Step(c.load(), c.devices, grows)
			if got := slices.Sorted(maps.Keys(wanted.Of(d, intent.MetadataPorts).Set)); !slices.Equal(got, tt.want) || len(wanted.Of(d, intent.MetadataPorts).Delete)+len(wanted.Of(d, intent.MetadataNetworks).Set)+len(wanted.Of(d, intent.MetadataNetworks).Delete) > 0 || !tr.Stale() {
				t.Fatalf("difference %+v, want the ports %q", d, tt.want)
			}
			if now := tr.Tables(); wanted.Rows(now, intent.MetadataPorts)["vm"] != wanted.Rows(before, intent.MetadataPorts)["vm"] {
				t.Errorf("port vm has changed: %+v", wanted.Rows(now, intent.MetadataPorts)["vm"])
			}
			if len(tt.want) == 0 {
				return
			}
			want := intent.MetadataPort{Port: "new", Network: "blue", Instance: "instance-new", Project: "project-new", Answer: answer,
				Tap: intent.Tap{Name: "tapnew", IfIndex: 8}, Addresses: wanted.Rows(tr.Tables(), intent.MetadataPorts)["new"].Addresses}
			if got := wanted.Of(d, intent.MetadataPorts).Set["new"]; got != want || got.Addresses == "" {
				t.Errorf("it is %+v, want %+v", got, want)
			}
			if a := tr.Agent(); !slices.Equal(a.Networks, []string{"blue", "red"}) {
				t.Errorf("published: %q", a.Networks)
			}
			c.network("blue", "fa:16:3e:00:00:02 10.0.0.2", "10.0.0.2/24")
			want.Answer = intent.MAC{0xfa, 0x16, 0x3e, 0, 0, 2}
			if d := tr.Step(c.load(), c.devices, synced); wanted.Of(d, intent.MetadataPorts).Set["new"] != want {
				t.Errorf("when all is there: %+v", d)
			}
		})
	}
}

// The identifiers are those that Python's uuid.uuid5 gives.
func TestAgentID(t *testing.T) {
	for name, want := range map[string]string{
		"a1":                                   "aa5d7a58-c8f8-5e97-8257-806cce4bf61f",
		"0ad5a8ca-0000-4000-8000-000000000001": "907b9f84-4b49-51e2-a9f7-3d532d909fb0",
		"{0AD5A8CA000040008000000000000001}":   "907b9f84-4b49-51e2-a9f7-3d532d909fb0",
		"urn:uuid:0ad5a8ca-0000-4000-8000-000000000001": "907b9f84-4b49-51e2-a9f7-3d532d909fb0",
		"{0AD5A8CA00004000800000000000 0001}":           "bf8e7cc5-8fdb-5e71-a18f-a38493af1989",
	} {
		if got := AgentID(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// FuzzPortAddresses: no column panics, and what may ask has a MAC and an address that fits.
func FuzzPortAddresses(f *testing.F) {
	f.Add("fa:16:3e:00:00:05 10.0.0.5 2001:db8::5", "unknown", "10.0.0.5/24")
	f.Add("fa:16:3e:00:00:05", "fa:16:3e:00:00:06 dynamic", "::ffff:10.0.0.5 fe80::1%eth0")
	f.Fuzz(func(t *testing.T, one, other, cidrs string) {
		list, _ := portAddresses([]string{one, other}, cidrs)
		for _, g := range list {
			if g.MAC.IsZero() || g.MAC[0]&1 != 0 || g.Addr.Is4In6() || g.Addr.Zone() != "" || g.Addr.IsMulticast() {
				t.Errorf("%q %q %q: address %s", one, other, cidrs, g)
			}
		}
		if set := intent.NewPortAddressSet(list...); len(list) > 0 && set == "" {
			t.Error("the set of addresses is empty")
		}
	})
}
