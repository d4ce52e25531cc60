package exposure

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// named adds what Northbound knows of next hops on the provider network: routes of
// the router, and DHCP's default gateway of the VM's port.
func (c cloud) named(bridge ...ovn.UUID) {
	c.put(
		ovn.Bridge{UUID: "br", Name: "br-ex", Ports: append([]ovn.UUID{"p-own", "p-patch"}, bridge...)},
		ovn.Port{UUID: "p-own", Name: "br-ex"}, ovn.Port{UUID: "p-nic", Name: "eth1"},
		ovn.Port{UUID: "p-patch", Name: "patch-provnet", ExternalIDs: map[string]string{"ovn-localnet-port": "provnet"}},
		ovn.LogicalRouter{UUID: "nb-router", StaticRoutes: []ovn.UUID{"r4", "r6", "r-in", "r-bad"}},
		ovn.StaticRoute{UUID: "r4", IPPrefix: "0.0.0.0/0", Nexthop: "172.24.0.1"},
		ovn.StaticRoute{UUID: "r6", IPPrefix: "::/0", Nexthop: "2001:db8:24::1"},
		ovn.StaticRoute{UUID: "r-in", IPPrefix: "192.0.2.0/24", Nexthop: "10.0.0.9"},
		ovn.StaticRoute{UUID: "r-bad", IPPrefix: "198.51.100.0/24", Nexthop: "discard"},
		ovn.LogicalSwitchPort{UUID: "lsp-vm", Name: "vm", DHCPv4: "dhcp"},
		ovn.DHCPOptions{UUID: "dhcp", Router: "172.24.0.3"},
	)
}

// Next hops that Northbound names are answered where the configuration lists none and
// nobody else can.
func TestKnownNextHops(t *testing.T) {
	addr := netip.MustParseAddr
	hops := func(list ...string) func(*Config, cloud) {
		return func(cfg *Config, _ cloud) {
			cfg.NextHops = map[string][]netip.Addr{"physnet1": {}}
			for _, a := range list {
				cfg.NextHops["physnet1"] = append(cfg.NextHops["physnet1"], addr(a))
			}
		}
	}
	for name, row := range map[string]struct {
		edit func(*Config, cloud)
		// gateway and VM are what is answered behind their MACs.
		gateway, vm string
		told        string
	}{
		"all":                      {gateway: "172.24.0.1 172.24.0.3 2001:db8:24::1", vm: "172.24.0.1 172.24.0.3 2001:db8:24::1"},
		"a list":                   {edit: hops("172.24.0.2", "2001:db8:24::2"), gateway: "172.24.0.2 2001:db8:24::2", vm: "172.24.0.2 2001:db8:24::2"},
		"a list of one family":     {edit: hops("172.24.0.2"), gateway: "172.24.0.2 2001:db8:24::1", vm: "172.24.0.2 2001:db8:24::1"},
		"an empty list":            {edit: hops(), told: "physnet1 IPv4 physnet1 IPv6"},
		"a physical port":          {edit: func(_ *Config, c cloud) { c.named("p-nic") }, told: "physnet1 IPv4 physnet1 IPv6"},
		"the node has the address": {edit: func(_ *Config, c cloud) { c.put(ovn.DHCPOptions{UUID: "dhcp", Router: "172.24.0.99"}) }, gateway: "172.24.0.1 2001:db8:24::1", vm: "172.24.0.1 2001:db8:24::1"},
		"another's VM has it":      {edit: func(_ *Config, c cloud) { c.put(ovn.DHCPOptions{UUID: "dhcp", Router: "172.24.0.51"}) }, gateway: "172.24.0.1 2001:db8:24::1", vm: "172.24.0.1 2001:db8:24::1"},
		"a router's port has it":   {edit: func(_ *Config, c cloud) { c.put(ovn.DHCPOptions{UUID: "dhcp", Router: "172.24.0.11"}) }, gateway: "172.24.0.1 2001:db8:24::1", vm: "172.24.0.1 2001:db8:24::1"},
		"a floating IP has it":     {edit: func(_ *Config, c cloud) { c.put(ovn.DHCPOptions{UUID: "dhcp", Router: "172.24.0.62"}) }, gateway: "172.24.0.1 2001:db8:24::1", vm: "172.24.0.1 2001:db8:24::1"},
		"a virtual port has it": {edit: func(_ *Config, c cloud) {
			c.virtual("far", there, "unknown")
			c.put(ovn.DHCPOptions{UUID: "dhcp", Router: "172.24.0.80"})
		}, gateway: "172.24.0.1 2001:db8:24::1", vm: "172.24.0.1 2001:db8:24::1"},
		"no DHCP":                {edit: func(_ *Config, c cloud) { delete(c, "lsp-vm") }, gateway: "172.24.0.1 2001:db8:24::1", vm: "172.24.0.1 2001:db8:24::1"},
		"DHCP gives nonsense":    {edit: func(_ *Config, c cloud) { c.put(ovn.DHCPOptions{UUID: "dhcp", Router: "x"}) }, gateway: "172.24.0.1 2001:db8:24::1", vm: "172.24.0.1 2001:db8:24::1"},
		"no route of the router": {edit: func(_ *Config, c cloud) { delete(c, "nb-router") }, gateway: "172.24.0.3", vm: "172.24.0.3", told: "physnet1 IPv6"},
		"a link-local next hop":  {edit: func(_ *Config, c cloud) { c.put(ovn.StaticRoute{UUID: "r6", IPPrefix: "::/0", Nexthop: "fe80::1"}) }, gateway: "172.24.0.1 172.24.0.3 fe80::1", vm: "172.24.0.1 172.24.0.3 fe80::1"},
		"another network's list": {edit: func(cfg *Config, _ cloud) { cfg.NextHops = map[string][]netip.Addr{"physnet2": nil} }, gateway: "172.24.0.1 172.24.0.3 2001:db8:24::1", vm: "172.24.0.1 172.24.0.3 2001:db8:24::1"},
		"the port lists one family": {edit: func(_ *Config, c cloud) {
			c.edit("vm", func(p *ovn.PortBinding) { p.ExternalIDs[keyNextHops] = "2001:db8:24::7" })
		}, gateway: "172.24.0.1 172.24.0.3 2001:db8:24::1", vm: "172.24.0.1 172.24.0.3 2001:db8:24::7"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, c := all, sample()
			cfg.FloatingIPs, cfg.Northbound = false, true
			c.named()
			if row.edit != nil {
				row.edit(&cfg, c)
			}
			x := NewTranslator(cfg, &indices{}, &loadbalancer.Book{})
			x.Step(c.load(), nobody{}, complete)
			got := map[byte][]string{}
			for k := range wanted.Rows(x.Tables(), intent.ServedNextHops) {
				got[k.Gateway.MAC[4]] = append(got[k.Gateway.MAC[4]], k.Prefix.Addr().String())
			}
			for at, want := range []string{row.gateway, row.vm} {
				slices.Sort(got[byte(at)])
				if diff := cmp.Diff(want, strings.Join(got[byte(at)], " ")); diff != "" {
					t.Errorf("served by %s (-want +got):\n%s", []string{"the gateway port", "the VM"}[at], diff)
				}
			}
			var without []string
			for _, o := range x.Objects() {
				without = append(without, o.Key)
			}
			if diff := cmp.Diff(row.told, strings.Join(without, " ")); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// A node without a gateway port has the next hops of the routers whose floating IPs the
// VMs here have, of both families.
func TestNextHopsOfFloatingIPs(t *testing.T) {
	c := sample()
	c.named()
	c.edit("cr-gw", func(p *ovn.PortBinding) { p.Chassis = there })
	c.edit("lsp-gw", func(p *ovn.PortBinding) { p.NATAddresses = nil })
	delete(c, "pb-vm")
	c.put(ovn.NAT{UUID: "n4", Type: "dnat_and_snat", ExternalIP: "172.24.0.61", LogicalPort: "inner", ExternalMAC: "02:00:00:00:00:61"},
		ovn.NAT{UUID: "n6", Type: "dnat_and_snat", ExternalIP: "2001:db8:24::61", LogicalPort: "inner", ExternalMAC: "02:00:00:00:00:61"},
		ovn.LogicalRouter{UUID: "nb-router", NAT: []ovn.UUID{"n4", "n6"}, Ports: []ovn.UUID{"nb-lrp"}, StaticRoutes: []ovn.UUID{"r4", "r6", "r-in"}},
		ovn.LogicalRouterPort{UUID: "nb-lrp", Name: "lrp-gw", Networks: []string{"172.24.0.11/16", "2001:db8:24::b/64"}})
	cfg := all
	cfg.Northbound = true
	x := NewTranslator(cfg, &indices{}, &loadbalancer.Book{})
	x.Step(c.load(), nobody{}, complete)
	var got []string
	for k := range wanted.Rows(x.Tables(), intent.ServedNextHops) {
		got = append(got, k.String())
	}
	slices.Sort(got)
	want := []string{"br-ex/02:00:00:00:00:61 172.24.0.1/32", "br-ex/02:00:00:00:00:61 2001:db8:24::1/128"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

// The rows of all ports of a provider switch are needed to know that nobody has a next
// hop, and only where it may be answered.
func TestNeedsOfNextHops(t *testing.T) {
	c := sample()
	c.named()
	rows := c.load()
	s, ok := rows.ProviderSwitchOf("public")
	if !ok {
		t.Fatal("no provider switch")
	}
	cfg := all
	if cfg.Needs(ovn.Needs{}).Gateways != nil {
		t.Error("asked for without Northbound")
	}
	cfg.Northbound = true
	if !cfg.Needs(ovn.Needs{}).Gateways(rows, s) {
		t.Error("not asked for")
	}
	cfg.NextHops = map[string][]netip.Addr{"physnet1": {}}
	if cfg.Needs(ovn.Needs{}).Gateways(rows, s) {
		t.Error("asked for although the configuration wants none")
	}
	c.named("p-nic")
	if cfg.NextHops = nil; cfg.Needs(ovn.Needs{}).Gateways(c.load(), s) {
		t.Error("asked for beside a physical port")
	}
}
