package evpn

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// table gives a router its tunnel key.
func (c cloud) table(router string, key uint32) cloud {
	d := c[router].(ovn.DatapathBinding)
	d.TunnelKey = key
	return c.put(d)
}

// dynamic gives ports options of OVN's dynamic routing.
func (c cloud) dynamic(port string, options ...string) cloud {
	return c.edit(port, func(p *ovn.PortBinding) {
		p.Options[optionDynamic] = "true"
		for i := 0; i < len(options); i += 2 {
			p.Options[options[i]] = options[i+1]
		}
	})
}

func (c cloud) external(key, value string) cloud {
	o := c["ovs"].(ovn.OpenvSwitch)
	o.ExternalIDs[key] = value
	return c.put(o)
}

func TestLearners(t *testing.T) {
	const gw = "cr-lrp-gw-r1"
	hop := func(text string) map[string][]netip.Addr {
		a, err := ovn.ParseAddresses(text)
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]netip.Addr{"physnet1": a}
	}
	second := func(c cloud) cloud { // the router has another gateway port
		p := c["pb-"+gw].(ovn.PortBinding)
		p.UUID, p.LogicalPort, p.Options = "pb-second", "second", map[string]string{optionDynamic: "true"}
		return c.put(p)
	}
	for name, row := range map[string]struct {
		edit     func(cloud)
		physical bool // the bridge has a port to others
		hops     map[string][]netip.Addr
		off      bool
		want     []string
		errs     []string
	}{
		"no dynamic routing": {edit: func(c cloud) { c.edit(gw, func(p *ovn.PortBinding) { delete(p.Options, optionDynamic) }) }},
		"it is not to learn": {edit: func(c cloud) { c.dynamic(gw, optionNoLearning, "true") }},
		"another one is not to learn": {edit: func(c cloud) {
			c.put(second(c)["pb-second"]).dynamic("second", optionNoLearning, "true")
		}, want: []string{"7 172.24.255.254 2001:db8:ff:0:ffff:ffff:ffff:ffff"}},
		"off":               {off: true},
		"the tunnel key":    {want: []string{"7 172.24.255.254 2001:db8:ff:0:ffff:ffff:ffff:ffff"}},
		"a listed next hop": {hops: hop("172.24.0.9 fe80::9"), want: []string{"7 172.24.0.9 fe80::9"}},
		"a listed one before a link-local one": {hops: hop("fe80::9 2001:db8:ff::9 172.24.0.9"),
			want: []string{"7 172.24.0.9 2001:db8:ff::9"}},
		"a listed one of one family": {physical: true, hops: hop("172.24.0.9"),
			want: []string{"7 172.24.0.9 invalid IP"}, errs: []string{"gateway cr-lrp-gw-r1 learn-next-hop"}},
		"none": {physical: true, errs: []string{"gateway cr-lrp-gw-r1 learn-next-hop", "gateway cr-lrp-gw-r1 learn-next-hop"}},
		"a default next hop is another thing": {edit: func(c cloud) {
			c.put(ovn.LogicalRouter{UUID: "nb-r1", StaticRoutes: []ovn.UUID{"sr"}}, ovn.StaticRoute{UUID: "sr", IPPrefix: "0.0.0.0/0", Nexthop: "172.24.0.77"})
		}, want: []string{"7 172.24.255.254 2001:db8:ff:0:ffff:ffff:ffff:ffff"}},
		"a known port has the highest address": {edit: func(c cloud) {
			c.put(pb("taken", ovn.TypeVIF, "ls-public", "02:00:00:00:77:01 172.24.255.254"))
		}, want: []string{"7 172.24.255.253 2001:db8:ff:0:ffff:ffff:ffff:ffff"}},
		"an identifier":            {edit: func(c cloud) { c.keys("lr-r1", keyVRFID, "77") }, want: []string{"77 172.24.255.254 2001:db8:ff:0:ffff:ffff:ffff:ffff"}},
		"one that cannot be read":  {edit: func(c cloud) { c.keys("lr-r1", keyVRFID, "x") }, want: []string{"7 172.24.255.254 2001:db8:ff:0:ffff:ffff:ffff:ffff"}},
		"the main table":           {edit: func(c cloud) { c.table("lr-r1", 254) }, errs: []string{"gateway cr-lrp-gw-r1 ovn-table"}},
		"an identifier above VNIs": {edit: func(c cloud) { c.keys("lr-r1", keyVRFID, "16777217") }, errs: []string{"gateway cr-lrp-gw-r1 ovn-table"}},
		"the port is elsewhere":    {edit: func(c cloud) { c.edit(gw, func(p *ovn.PortBinding) { p.Chassis = there }) }},
		"another port learns":      {edit: func(c cloud) { second(c) }, errs: []string{"gateway cr-lrp-gw-r1 learn-ports"}},
		"it learns by other things": {edit: func(c cloud) {
			second(c).dynamic("cr-lrp-gw-r1", optionLearnPort, "x")
			c.external(keyLearnPorts, "y=eth0")
		}, errs: []string{"gateway cr-lrp-gw-r1 learn-ports"}},
		"each by its device": {edit: func(c cloud) {
			second(c)
			p := c["pb-second"].(ovn.PortBinding)
			p.Options[optionLearnPort] = "y"
			c.put(p).dynamic(gw, optionLearnPort, "x").external(keyLearnPorts, "y=eth0, x="+intent.LearnedDevice)
		}, want: []string{"7 172.24.255.254 2001:db8:ff:0:ffff:ffff:ffff:ffff"}},
		"a device that is not Sluice's": {edit: func(c cloud) { c.dynamic(gw, optionLearnPort, "x").external(keyLearnPorts, "x=eth0") },
			errs: []string{"gateway cr-lrp-gw-r1 learn-ports"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := node(row.physical).tenant(1, 1001).table("lr-r1", 7).dynamic(gw)
			if row.edit != nil {
				row.edit(c)
			}
			cfg := testConfig()
			cfg.Learn, cfg.NextHops = !row.off, row.hops
			tr := compute(c, cfg)
			var got []string
			for k, l := range wanted.Rows(tr.Tables(), intent.Learners) {
				if got = append(got, fmt.Sprintf("%d %s %s", l.Table, l.Via4, l.Via6)); k != l.Gateway || l.VNI != 1001 || l.Port != gw {
					t.Errorf("learner %+v", l)
				}
				networks := intent.NewPrefixSet(netip.MustParsePrefix("172.24.0.0/16"), netip.MustParsePrefix("2001:db8:ff::/64"), netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("2001:db8:10::/64"))
				if l.Networks != networks {
					t.Errorf("networks %s, want %s", l.Networks, networks)
				}
			}
			check(t, "learners", row.want, got)
			errs, _ := complaints(tr)
			check(t, "errors", row.errs, errs)
		})
	}
}

func TestHighest(t *testing.T) {
	for text, want := range map[string][]string{
		"172.24.0.0/24":      {"172.24.0.254", "172.24.0.253"},
		"192.0.2.0/30":       {"192.0.2.2", "192.0.2.1"},
		"192.0.2.0/31":       {"192.0.2.1", "192.0.2.0"},
		"192.0.2.7/32":       {"192.0.2.7"},
		"255.255.255.0/24":   {"255.255.255.254", "255.255.255.253"},
		"2001:db8::/64":      {"2001:db8::ffff:ffff:ffff:ffff", "2001:db8::ffff:ffff:ffff:fffe"},
		"2001:db8::/127":     {"2001:db8::1", "2001:db8::"},
		"10.10.0.9/29":       {"10.10.0.14", "10.10.0.13"},
		"2001:db8::1234/126": {"2001:db8::1237", "2001:db8::1236"},
	} {
		var got []string
		for _, a := range highest(netip.MustParsePrefix(text)) {
			got = append(got, a.String())
		}
		if !slices.Equal(got[:min(len(got), 2)], want) || len(got) > mostTried {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestLearnersFollowKnownPorts: a next hop that turns out to be a port's is another one.
func TestLearnersFollowKnownPorts(t *testing.T) {
	rows, cfg := node(false).tenant(1, 1001).table("lr-r1", 7).dynamic("cr-lrp-gw-r1").load(), testConfig()
	cfg.Learn = true
	tr := NewTranslator(cfg, indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	taken := pb("taken", ovn.TypeVIF, "ls-public", "02:00:00:00:77:01 172.24.255.254")
	for _, step := range []struct {
		change ovn.Change
		want   string
	}{{ovn.Set(taken), "172.24.255.253"}, {ovn.Delete(ovn.TablePortBinding, taken.UUID), "172.24.255.254"}} {
		tr.Step(rows, rows.Apply([]ovn.Change{step.change}), true)
		for _, l := range wanted.Rows(tr.Tables(), intent.Learners) {
			check(t, "next hop", step.want, l.Via4.String())
		}
	}
}
