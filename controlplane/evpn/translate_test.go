package evpn

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestExposure: what is announced, reached and complained of, rule by rule, for
// one tenant behind a physical gateway unless the row says otherwise.
func TestExposure(t *testing.T) {
	hosts := []string{"1001 10.10.0.5/32", "1001 2001:db8:10::5/128"}
	subnets := []string{"1001 10.10.0.0/24", "1001 2001:db8:10::/64"}
	own := []string{"1001 172.24.4.1/32", "1001 2001:db8:ff::1/128"}
	set := func(port, key, value string) func(cloud) {
		return func(c cloud) { c.edit(port, func(p *ovn.PortBinding) { p.ExternalIDs[key] = value }) }
	}
	unset := func(port, key string) func(cloud) {
		return func(c cloud) { c.edit(port, func(p *ovn.PortBinding) { delete(p.ExternalIDs, key) }) }
	}
	quiet := []string{"gateway cr-lrp-gw-r1 nat-unknown", "gateway cr-lrp-gw-r1 snat-source", "gateway cr-lrp-gw-r1 snat-source"}
	rows := map[string]struct {
		served bool
		edit   func(cloud)
		config func(*Config)
		want   []string
		block  []string
		errs   []string
		notes  []string
	}{
		"hosts by default":        {want: hosts, notes: quiet},
		"own address when served": {served: true, want: sorted(hosts, own), notes: quiet[:1]},
		"subnets":                 {config: func(c *Config) { c.Announce = AnnounceSubnets }, want: subnets, notes: quiet},
		"both":                    {config: func(c *Config) { c.Announce = AnnounceBoth }, want: sorted(hosts, subnets), notes: quiet},
		"mode of the gateway":     {edit: set("gw-r1", keyAnnounce, "subnets"), want: subnets, notes: quiet},
		"mode of the interface":   {edit: set("lrp-in-r1", keyAnnounce, "both"), want: sorted(hosts, subnets), notes: quiet},
		"mode of the host": {config: func(c *Config) { c.Announce = AnnounceSubnets },
			edit: set("vm-r1", keyAnnounce, "hosts"), want: sorted(hosts, subnets), notes: quiet},
		"host opted out":    {edit: set("vm-r1", keyExpose, "false"), block: hosts, notes: quiet},
		"gateway opted out": {edit: set("lrp-gw-r1", keyExpose, "false"), notes: []string{"gateway gw-r1 opted-out", "interface in-r1 no-gateway"}},
		"subnet opted out":  {edit: set("in-r1", keyExpose, "false"), notes: append(quiet[:3:3], "interface in-r1 opted-out")},
		"expose nonsense":   {edit: set("vm-r1", keyExpose, "no"), block: hosts, errs: []string{"host vm-r1 bad-expose"}, notes: quiet},
		"announce nonsense": {edit: set("vm-r1", keyAnnounce, "x"), errs: []string{"host vm-r1 bad-announce"}, notes: quiet},
		"interface alone":   {edit: unset("gw-r1", keyVNI), notes: []string{"interface in-r1 no-gateway"}},
		"gateway alone":     {edit: unset("in-r1", keyVNI), notes: quiet},
		"gateway elsewhere": {edit: func(c cloud) { c.edit("cr-lrp-gw-r1", func(p *ovn.PortBinding) { p.Chassis = there }) }},
		"interface's VNI":   {edit: set("in-r1", keyVNI, "7"), errs: []string{"interface in-r1 vni-mismatch"}, notes: quiet},
		"vni abc":           {edit: set("in-r1", keyVNI, "abc"), errs: []string{"interface in-r1 bad-vni"}, notes: quiet},
		"vni 0":             {edit: set("gw-r1", keyVNI, "0"), errs: []string{"gateway gw-r1 bad-vni"}, notes: []string{"interface in-r1 no-gateway"}},
		"vni 2^24":          {edit: set("gw-r1", keyVNI, "16777216"), errs: []string{"gateway gw-r1 bad-vni"}, notes: []string{"interface in-r1 no-gateway"}},
		"type l2":           {edit: set("gw-r1", keyType, "l2"), errs: []string{"gateway gw-r1 unsupported-type"}, notes: []string{"interface in-r1 no-gateway"}},
		"type l3":           {edit: set("gw-r1", keyType, "l3"), want: hosts, notes: quiet},
		"as -1":             {edit: set("gw-r1", keyAS, "-1"), errs: []string{"gateway gw-r1 bad-as"}, notes: []string{"interface in-r1 no-gateway"}},
		"no localnet":       {edit: func(c cloud) { delete(c, "pb-provnet") }, errs: []string{"gateway cr-lrp-gw-r1 no-localnet"}, notes: []string{"interface in-r1 no-gateway"}},
		"no mapping":        {edit: func(c cloud) { c.edit("provnet", func(p *ovn.PortBinding) { p.Options["network_name"] = "x" }) }, errs: []string{"gateway cr-lrp-gw-r1 no-bridge-mapping"}, notes: []string{"interface in-r1 no-gateway"}},
		"gateway mac":       {edit: func(c cloud) { c.edit("cr-lrp-gw-r1", func(p *ovn.PortBinding) { p.MAC = []string{"zz"} }) }, errs: []string{"gateway cr-lrp-gw-r1 bad-mac"}, notes: []string{"interface in-r1 no-gateway"}},
		"host mac":          {edit: func(c cloud) { c.edit("vm-r1", func(p *ovn.PortBinding) { p.MAC = append(p.MAC, "zz 10.10.0.6") }) }, want: hosts, errs: []string{"host vm-r1 bad-mac"}, notes: quiet},
		"host down":         {edit: func(c cloud) { c.edit("vm-r1", func(p *ovn.PortBinding) { p.Chassis = "" }) }, notes: quiet},
		"host up, no chassis": {edit: func(c cloud) { c.edit("vm-r1", func(p *ovn.PortBinding) { p.Chassis, p.Up = "", true }) },
			want: hosts, notes: quiet},
		"interface on a provider network": {edit: localnet("ls-r1"), notes: append(quiet[:3:3], "interface in-r1 provider-network")},
		"exposed all the same on its switch port": {edit: func(c cloud) { localnet("ls-r1")(c); set("in-r1", keyExpose, "true")(c) },
			want: hosts, notes: quiet},
		"exposed all the same on its router port": {edit: func(c cloud) { localnet("ls-r1")(c); set("lrp-in-r1", keyExpose, "true")(c) },
			want: hosts, notes: quiet},
		"virtual":      {edit: func(c cloud) { c.edit("vm-r1", func(p *ovn.PortBinding) { p.Type = ovn.TypeVirtual }) }, want: hosts, notes: quiet},
		"another type": {edit: func(c cloud) { c.edit("vm-r1", func(p *ovn.PortBinding) { p.Type = "localport" }) }, notes: quiet},
		"unknown with cidrs": {edit: func(c cloud) {
			c.edit("vm-r1", func(p *ovn.PortBinding) {
				p.MAC, p.ExternalIDs["neutron:cidrs"] = []string{"unknown"}, "10.10.0.9/24 fe80::9/64 2001:db8:10::9/64"
			})
		}, want: []string{"1001 10.10.0.9/32", "1001 2001:db8:10::9/128"}, notes: quiet},
		"several": {edit: func(c cloud) {
			c.edit("vm-r1", func(p *ovn.PortBinding) {
				p.MAC = []string{"02:00:00:02:00:05 10.10.0.5", "02:00:00:02:00:06 10.10.0.6 192.0.2.1", "unknown"}
			})
		}, want: []string{"1001 10.10.0.5/32", "1001 10.10.0.6/32"}, notes: quiet},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c, cfg := node(!row.served).tenant(1, 1001), testConfig()
			if row.edit != nil {
				row.edit(c)
			}
			if row.config != nil {
				row.config(&cfg)
			}
			tr := compute(c, cfg)
			errs, notes := complaints(tr)
			check(t, "announced", row.want, announced(tr))
			check(t, "blocked", row.block, routes(tr, intent.RouteBlock))
			check(t, "errors", row.errs, errs)
			check(t, "notes", row.notes, notes)
		})
	}
}

// localnet makes a switch a provider network.
func localnet(sw string) func(cloud) {
	return func(c cloud) {
		p := pb("provnet-"+sw, ovn.TypeLocalnet, sw, "unknown")
		p.Options = map[string]string{"network_name": "physnet1"}
		c.put(p)
	}
}

func check[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
