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

// steering lists the flows as "kind prefix", sorted.
func steering(t *Translator) []string {
	var out []string
	for k := range wanted.Rows(t.Tables(), intent.SteeringFlows) {
		s := k.Kind.String()
		if k.Prefix.IsValid() {
			s += " " + k.Prefix.String()
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// servedRows lists the questions as "prefix answer", those of a segment as
// "prefix known".
func servedRows(t *Translator) []string {
	var out []string
	for k, s := range wanted.Rows(t.Tables(), intent.ServedNextHops) {
		text := fmt.Sprint(k.Prefix, " ", s.Answer)
		if k.Gateway.IsSegment() && !s.Answer {
			text = fmt.Sprint(k.Prefix, " known")
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func TestServedAndSteering(t *testing.T) {
	source := []string{"source 10.10.0.0/24", "source 2001:db8:10::/64", "to-ovn"}
	own := []string{"source 172.24.4.1/32", "source 2001:db8:ff::1/128"}
	all := []string{"172.24.0.0/16 true", "172.24.4.1/32 false", "2001:db8:ff::/64 true", "2001:db8:ff::1/128 false",
		"fe80::/64 true", "fe80::ff:fe00:1/128 false"}
	ports := []string{"172.24.4.1/32 known", "2001:db8:ff::1/128 known", "fe80::ff:fe00:1/128 known"}
	rows := map[string]struct {
		physical bool
		edit     func(cloud)
		config   func(*Config)
		served   []string
		steering []string
		errs     []string
	}{
		"physical gateway": {physical: true, steering: source},
		"nobody else on the bridge": {
			served:   sorted(all, ports),
			steering: sorted(source, own, []string{"arp 172.24.0.0/16", "nd 2001:db8:ff::/64", "nd fe80::/64"}),
		},
		"known neighbours": {
			edit: func(c cloud) {
				c.put(pb("vm-public", ovn.TypeVIF, "ls-public", "02:00:00:00:09:09 172.24.4.99 198.51.100.1", "unknown"))
				c.edit("gw-r1", func(p *ovn.PortBinding) {
					p.NATAddresses = []string{`02:00:00:00:00:01 172.24.4.200 is_chassis_resident("cr")`}
				})
			},
			served:   sorted(all, ports, []string{"172.24.4.200/32 known", "172.24.4.99/32 known", "fe80::ff:fe00:909/128 known"}),
			steering: sorted(source, own, []string{"arp 172.24.0.0/16", "nd 2001:db8:ff::/64", "nd fe80::/64"}),
		},
		"listed for the network": {physical: true,
			config: func(c *Config) {
				c.NextHops = map[string][]netip.Addr{"physnet1": {addr("172.24.4.254"), addr("198.51.100.1"), addr("fe80::1")}}
			},
			served: []string{"172.24.4.254/32 true", "fe80::1/128 true"}, steering: sorted(source, own, []string{"arp 172.24.4.254/32", "nd fe80::1/128"})},
		"listed turns answering all off": {
			config:   func(c *Config) { c.NextHops = map[string][]netip.Addr{"physnet1": {addr("172.24.4.254")}} },
			served:   []string{"172.24.4.254/32 true"},
			steering: sorted(source, own[:1], []string{"arp 172.24.4.254/32"})},
		"listed on the port": {physical: true,
			edit: func(c cloud) {
				c.edit("lrp-gw-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyNextHops] = "2001:db8:ff::ffff, 203.0.113.1 172.24.4.1" })
			},
			served: []string{"2001:db8:ff::ffff/128 true"}, steering: sorted(source, own[1:], []string{"nd 2001:db8:ff::ffff/128"}),
			errs: []string{"gateway lrp-gw-r1 bad-next-hop", "gateway lrp-gw-r1 bad-next-hop"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c, cfg := node(row.physical).tenant(1, 1001), testConfig()
			if row.edit != nil {
				row.edit(c)
			}
			if row.config != nil {
				row.config(&cfg)
			}
			tr := compute(c, cfg)
			check(t, "served", row.served, servedRows(tr))
			check(t, "steering", row.steering, steering(tr))
			errs, _ := complaints(tr)
			check(t, "errors", row.errs, errs)
		})
	}
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// TestNAT: what is announced beside the rules of the router's NAT rows.
func TestNAT(t *testing.T) {
	hosts := []string{"1001 10.10.0.5/32", "1001 2001:db8:10::5/128"}
	own := []string{"1001 172.24.4.1/32", "1001 2001:db8:ff::1/128"}
	nat := func(kind, external, logical string) []ovn.Row {
		return []ovn.Row{ovn.LogicalRouter{UUID: "nb-r1", NAT: []ovn.UUID{"nat-1"}},
			ovn.NAT{UUID: "nat-1", Type: kind, ExternalIP: external, LogicalIP: logical}}
	}
	route := []ovn.Row{
		ovn.LogicalRouter{UUID: "nb-r1", NAT: []ovn.UUID{"nat-1"}, StaticRoutes: []ovn.UUID{"route-1"}},
		ovn.StaticRoute{UUID: "route-1", IPPrefix: "0.0.0.0/0", Nexthop: "172.24.4.254"},
	}
	hop := func(c *Config) { c.NextHops = map[string][]netip.Addr{"physnet1": {addr("172.24.4.254")}} }
	rows := map[string]struct {
		rows   []ovn.Row
		config func(*Config)
		want   []string
		block  []string
		notes  []string
	}{
		"unknown":      {want: hosts, notes: []string{"gateway cr-lrp-gw-r1 nat-unknown", "gateway cr-lrp-gw-r1 snat-source", "gateway cr-lrp-gw-r1 snat-source"}},
		"unknown held": {config: func(c *Config) { c.HoldNATUnknown = true }, notes: []string{"gateway cr-lrp-gw-r1 nat-unknown", "gateway cr-lrp-gw-r1 snat-source", "gateway cr-lrp-gw-r1 snat-source", "interface in-r1 nat-unknown"}},
		"none":         {rows: []ovn.Row{ovn.LogicalRouter{UUID: "nb-r1"}}, want: sorted(hosts, own)},
		"snat of the subnet": {rows: nat("snat", "172.24.4.1", "10.10.0.0/24"), want: sorted(hosts[1:], own[1:]),
			notes: []string{"gateway cr-lrp-gw-r1 snat-source", "interface in-r1 nat"}},
		"snat of everything": {rows: nat("snat", "172.24.4.1", "0.0.0.0/0"), want: sorted(hosts[1:], own[1:]),
			notes: []string{"gateway cr-lrp-gw-r1 snat-source", "interface in-r1 nat"}},
		"snat with another address": {rows: nat("snat", "172.24.4.77", "10.10.0.0/24"), want: sorted(hosts[1:], own),
			notes: []string{"interface in-r1 nat"}},
		"floating IP": {rows: nat("dnat_and_snat", "172.24.4.77", "10.10.0.5"), want: sorted(hosts[1:], own),
			block: hosts[:1], notes: []string{"host vm-r1 nat"}},
		"snat of a part": {rows: nat("snat", "172.24.4.77", "10.10.0.0/28"), want: sorted(hosts[1:], own),
			block: []string{"1001 10.10.0.0/28"}, notes: []string{"host vm-r1 nat"}},
		"announced anyway": {rows: nat("snat", "172.24.4.1", "10.10.0.0/24"), config: func(c *Config) { c.AnnounceNAT = true },
			want: sorted(hosts, own[1:]), notes: []string{"gateway cr-lrp-gw-r1 snat-source"}},
		"snat, default next hop served": {rows: append(nat("snat", "172.24.4.1", "10.99.0.0/24")[1:], route...), config: hop, want: sorted(hosts, own)},
		"snat, default next hop physical": {rows: append(nat("snat", "172.24.4.1", "10.99.0.0/24")[1:], route...), want: sorted(hosts, own[1:]),
			notes: []string{"gateway cr-lrp-gw-r1 snat-source"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c, cfg := node(true).tenant(1, 1001).put(row.rows...), testConfig()
			if row.config != nil {
				row.config(&cfg)
			}
			tr := compute(c, cfg)
			errs, notes := complaints(tr)
			check(t, "announced", row.want, announced(tr))
			check(t, "blocked", row.block, routes(tr, intent.RouteBlock))
			check(t, "errors", nil, errs)
			check(t, "notes", row.notes, notes)
		})
	}
}

// TestSharedVNI: two routers with one VNI share the VRF where they do not
// collide; the one with the higher UUID yields, and takes over when the other goes.
func TestSharedVNI(t *testing.T) {
	c := node(true).tenant(1, 1001).tenant(2, 1001)
	tr := compute(c, testConfig())
	errs, _ := complaints(tr)
	check(t, "errors", []string{"interface in-r2 overlap", "interface in-r2 overlap"}, errs)
	if n := len(wanted.Rows(tr.Tables(), intent.VRFs)); n != 1 {
		t.Errorf("%d VRFs", n)
	}
	for k, r := range wanted.Rows(tr.Tables(), intent.Routes) {
		if r.Gateway.MAC != (intent.MAC{2, 0, 0, 0, 0, 1}) {
			t.Errorf("%s leads to %s", k, r.Gateway)
		}
	}
	rows := c.load()
	tr = NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	d := tr.Step(rows, rows.Apply([]ovn.Change{ovn.Delete(ovn.TablePortBinding, "pb-cr-lrp-gw-r1")}), true)
	if len(wanted.Of(d, intent.VRFs).Delete) != 0 || len(wanted.Of(d, intent.Gateways).Delete) != 1 || len(wanted.Of(d, intent.Routes).Delete) != 0 || len(wanted.Of(d, intent.Routes).Set) == 0 {
		t.Errorf("the winner's going: %+v", d)
	}
	check(t, "announced", []string{"1001 10.10.0.5/32", "1001 2001:db8:10::5/128"}, announced(tr))

	c = node(true).tenant(1, 1001).tenant(2, 1001).edit("gw-r2", func(p *ovn.PortBinding) { p.ExternalIDs[keyAS] = "1" })
	errs, _ = complaints(compute(c, testConfig()))
	check(t, "errors", []string{"gateway cr-lrp-gw-r2 vrf-conflict"}, errs)
}

// TestDuplicates: one frame key twice, one address twice.
func TestDuplicates(t *testing.T) {
	c := node(true).tenant(1, 1001).tenant(2, 1002)
	first := c["pb-cr-lrp-gw-r1"].(ovn.PortBinding).MAC
	c.edit("cr-lrp-gw-r2", func(p *ovn.PortBinding) { p.MAC = first })
	twin := pb("vm-twin", ovn.TypeVIF, "ls-r1", "02:00:00:02:00:99 10.10.0.5")
	twin.Chassis, twin.ExternalIDs = there, map[string]string{keyExpose: "false"}
	c.put(twin)
	tr := compute(c, testConfig())
	errs, _ := complaints(tr)
	check(t, "errors", []string{"gateway cr-lrp-gw-r2 duplicate-gateway", "host vm-twin duplicate-address"}, sorted(errs[:1], errs[1:]))
	if _, ok := wanted.Rows(tr.Tables(), intent.VRFs)[1002]; ok {
		t.Error("a refused gateway port made a VRF")
	}
}

// TestLimit: a VRF over the limit is refused and gets the place of one that goes;
// one that has its place keeps it.
func TestLimit(t *testing.T) {
	cfg := testConfig()
	cfg.MaxVRFs = 2
	c := node(true).tenant(2, 1002).tenant(3, 1003)
	rows := c.load()
	tr := NewTranslator(cfg, indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	late := cloud{}.tenant(1, 1001)
	var batch []ovn.Change
	for _, row := range late {
		batch = append(batch, ovn.Set(row))
	}
	tr.Step(rows, rows.Apply(batch), true)
	errs, _ := complaints(tr)
	check(t, "errors", []string{"vrf 1001 vrf-limit"}, errs)
	d := tr.Step(rows, rows.Apply([]ovn.Change{ovn.Delete(ovn.TablePortBinding, "pb-cr-lrp-gw-r3")}), true)
	if _, ok := wanted.Of(d, intent.VRFs).Set[1001]; !ok || !slices.Equal(wanted.Of(d, intent.VRFs).Delete, []intent.VNI{1003}) {
		t.Errorf("VRFs: %+v", wanted.Of(d, intent.VRFs))
	}
	errs, _ = complaints(tr)
	check(t, "errors", nil, errs)
}

// TestRouteTargets: automatic ones from the annotation's AS, listed ones, and
// those of the configuration.
func TestRouteTargets(t *testing.T) {
	c := node(true).tenant(1, 1001)
	policy := func(c cloud, cfg Config) string {
		p := wanted.Rows(compute(c, cfg).Tables(), intent.Policies)[1001]
		return fmt.Sprintf("%s < %s auto=%t", p.Export, p.Import, p.AutoImport)
	}
	check(t, "automatic", "64999:1001 <  auto=true", policy(c, testConfig()))
	c.edit("gw-r1", func(p *ovn.PortBinding) { delete(p.ExternalIDs, keyAS) })
	check(t, "configured AS", "65001:1001 <  auto=true", policy(c, testConfig()))
	c.edit("gw-r1", func(p *ovn.PortBinding) {
		p.ExternalIDs[keyTargets], p.ExternalIDs[keyImport] = "['1:1']", "['2:2', '192.0.2.1:3']"
	})
	check(t, "annotated lists", "1:1 < 1:1 2:2 192.0.2.1:3 auto=false", policy(c, testConfig()))
	cfg := testConfig()
	rt, _ := intent.ParseRouteTarget("9:9")
	cfg.VRFs = map[intent.VNI]VRFConfig{1001: {Export: []intent.RouteTarget{rt}}}
	check(t, "configured list", "9:9 < 1:1 2:2 192.0.2.1:3 auto=false", policy(c, cfg))
}

// TestGatewayKinds: VLAN, MTU, an l3gateway port, a link-local address.
func TestGatewayKinds(t *testing.T) {
	c := node(true).tenant(1, 1001)
	c.edit("provnet", func(p *ovn.PortBinding) { p.Tag = 100 })
	c.put(ovn.LogicalRouterPort{UUID: "nb-lrp", Name: "lrp-gw-r1", Options: map[string]string{"gateway_mtu": "1400"}})
	delete(c, "pb-cr-lrp-gw-r1")
	c.edit("lrp-gw-r1", func(p *ovn.PortBinding) { p.Type, p.Chassis = ovn.TypeL3Gateway, here })
	c.edit("gw-r1", func(p *ovn.PortBinding) { p.Type, p.Chassis = ovn.TypeL3Gateway, here })
	c.edit("lrp-in-r1", func(p *ovn.PortBinding) {
		p.Type, p.Chassis, p.MAC = ovn.TypeL3Gateway, here, []string{p.MAC[0] + " fe80::1/64"}
	})
	c.edit("in-r1", func(p *ovn.PortBinding) { p.Type = ovn.TypeL3Gateway })
	tr := compute(c, testConfig())
	want := intent.GatewayKey{Bridge: "br-ex", VLAN: 100, MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	g := wanted.Rows(tr.Tables(), intent.Gateways)[want]
	if g.Kind != intent.GatewayL3 || g.MTU != 1400 || g.Addr4 != addr("172.24.4.1") || g.Addr6 != addr("2001:db8:ff::1") {
		t.Errorf("gateway %+v of %v", g, wanted.Rows(tr.Tables(), intent.Gateways))
	}
	check(t, "local", []string{"1001 10.10.0.0/24", "1001 10.10.0.5/32", "1001 2001:db8:10::/64", "1001 2001:db8:10::5/128"}, routes(tr, intent.RouteLocal))
}
