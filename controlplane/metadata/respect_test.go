package metadata

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// grouped puts the port vm of the sample into a port group, with these ACLs.
func grouped(c cloud, rules ...ovn.ACL) {
	g := ovn.PortGroup{UUID: "pg", Name: "pg_a", Ports: []ovn.UUID{"lsp"}}
	for i, r := range rules {
		id := ovn.UUID(rune('a' + i))
		r.UUID = "acl-" + id
		c.put(r)
		g.ACLs = append(g.ACLs, "acl-"+id)
	}
	c.put(g, ovn.LogicalSwitchPort{UUID: "lsp", Name: "vm"}, ovn.LogicalSwitch{UUID: "nb-red"}, ovn.NBGlobal{UUID: "global"})
}

func rule(priority int, action, match string) ovn.ACL {
	return ovn.ACL{FromPort: true, Priority: priority, Action: action, Match: match}
}

// Ports are steered only if their ACLs let them ask.
func TestRespect(t *testing.T) {
	drop, four, six := rule(1001, "drop", "inport == @pg_a && ip"), rule(1002, "allow-related", "inport == @pg_a && ip4"), rule(1002, "allow-related", "inport == @pg_a && ip6")
	const steered, left, perhaps = "vm tap tapvm/7/0", "vm ovn withheld:acl-denied", "vm namespace warning:acl-unknown; ns red for vm"
	for name, tt := range map[string]struct {
		path   Path
		rules  []ovn.ACL
		change func(cloud)
		want   string
	}{
		"Neutron's default group":                {rules: []ovn.ACL{drop, four, six}, want: steered},
		"no ACL":                                 {want: steered},
		"no egress":                              {rules: []ovn.ACL{drop}, want: left},
		"by IPv4 alone, with an address of IPv6": {rules: []ovn.ACL{drop, four}, want: left},
		"by IPv4 alone": {rules: []ovn.ACL{drop, four}, change: func(c cloud) {
			c.edit("vm", func(p *ovn.PortBinding) { p.MAC = []string{"fa:16:3e:00:00:05 10.0.0.5", "fa:16:3e:00:00:06"} })
		}, want: steered},
		"to its own subnet": {rules: []ovn.ACL{drop, rule(1002, "allow-related", "inport == @pg_a && ip4 && ip4.dst == 10.0.0.0/24"), six}, want: left},
		"to metadata":       {rules: []ovn.ACL{drop, rule(1002, "allow-related", "inport == @pg_a && ip4 && ip4.dst == 169.254.169.254/32 && tcp && tcp.dst == 80"), six}, want: steered},
		"to a set":          {rules: []ovn.ACL{drop, rule(1002, "allow-related", "inport == @pg_a && ip4.dst == $some"), six}, change: func(c cloud) { c.put(ovn.AddressSet{UUID: "set", Name: "some", Addresses: []string{"169.254.0.0/16"}}) }, want: steered},
		"to a remote group": {rules: []ovn.ACL{drop, rule(1002, "allow-related", "inport == @pg_a && ip4 && ip4.dst == $pg_b_ip4"), six}, want: perhaps},
		"what is not read":  {rules: []ovn.ACL{drop, rule(1002, "allow-related", "a new thing"), six}, want: perhaps},
		"the same, by eBPF": {path: PathEBPF, rules: []ovn.ACL{drop, rule(1002, "allow-related", "a new thing"), six}, want: "vm ovn warning:acl-unknown"},
		"the same, no way":  {rules: []ovn.ACL{rule(1, "drop", "a new thing")}, change: func(c cloud) { delete(c.rows, "pb-md-red") }, want: "vm ovn warning:acl-unknown"},
		"by a namespace":    {path: PathNamespace, rules: []ovn.ACL{drop}, want: "vm namespace; ns red for vm"},
		"no tap":            {rules: []ovn.ACL{drop}, change: func(c cloud) { c.devices["tapvm"] = intent.TapDevice{Reason: reason.TapNetdev} }, want: "vm namespace ok:tap-netdev; ns red for vm"},
		"of the other way":  {rules: []ovn.ACL{drop}, change: func(c cloud) { c.put(ovn.ACL{UUID: "acl-a", Priority: 1001, Action: "drop", Match: drop.Match}) }, want: steered},
		"of the switch": {change: func(c cloud) {
			c.put(ovn.ACL{UUID: "acl-s", FromPort: true, Priority: 1, Action: "drop", Match: "ip4"}, ovn.LogicalSwitch{UUID: "nb-red", ACLs: []ovn.UUID{"acl-s"}})
		}, want: left},
		"one is to come": {rules: []ovn.ACL{drop}, change: func(c cloud) { delete(c.rows, "acl-a") }, want: perhaps},
		"no switch port": {change: func(c cloud) { delete(c.rows, "lsp") }, want: perhaps},
		"no switch":      {change: func(c cloud) { delete(c.rows, "nb-red") }, want: perhaps},
		"default drop":   {change: func(c cloud) { c.put(ovn.NBGlobal{UUID: "global", DefaultDrop: true}) }, want: left},
	} {
		t.Run(name, func(t *testing.T) {
			c := sample()
			grouped(c, tt.rules...)
			if tt.change != nil {
				tt.change(c)
			}
			check(t, c, Config{Path: tt.path, Respect: true}, tt.want)
		})
	}
}

// While Northbound is away what ACLs said stays, of ports that were there.
func TestRespectWithoutNorthbound(t *testing.T) {
	c := sample()
	grouped(c)
	tr := NewTranslator(Config{Respect: true})
	away := ovn.InSync{SB: true, VSwitch: true}
	if tr.Step(c.load(), c.devices, away); say(tr) != "vm namespace warning:acl-unknown; ns red for vm" || !tr.Stale() {
		t.Errorf("before it was there: %s", say(tr))
	}
	if tr.Step(c.load(), c.devices, synced); say(tr) != "vm tap tapvm/7/0" || tr.Stale() {
		t.Errorf("with it: %s", say(tr))
	}
	c.vm("new", "red", "fa:16:3e:00:00:07 10.0.0.7")
	c.plug("new", "br-int", 8)
	delete(c.rows, "lsp")
	tr.Step(c.load(), c.devices, away)
	if tr.Step(c.load(), c.devices, away); say(tr) != "new namespace warning:acl-unknown; vm tap tapvm/7/0; ns red for new" {
		t.Errorf("without it: %s", say(tr))
	}
	delete(c.rows, "pb-vm")
	if d := tr.Step(c.load(), c.devices, away); len(wanted.Of(d, intent.MetadataPorts).Delete) != 1 {
		t.Errorf("a port that has gone stays: %+v", d)
	}
}
