package exposure

import (
	"fmt"
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

// nobody is EVPN that has nothing.
type nobody struct{}

func (nobody) GatewayVRF(intent.GatewayKey) (intent.VNI, bool) { return 0, false }
func (nobody) Match(intent.VNI) func(netip.Addr) (intent.Route, bool) {
	return func(netip.Addr) (intent.Route, bool) { return intent.Route{}, false }
}
func (nobody) HasBridge(intent.BridgeKey) bool { return false }

// red has the gateway port, its own address, and the bridge.
type red struct{}

func (red) GatewayVRF(k intent.GatewayKey) (intent.VNI, bool) {
	return 1001, k.MAC[5] == 1 && k.MAC[4] == 0
}
func (red) Match(intent.VNI) func(netip.Addr) (intent.Route, bool) {
	return func(a netip.Addr) (intent.Route, bool) {
		return intent.Route{Kind: intent.RouteLocal, Gateway: key("02:00:00:00:00:01")}, a == netip.MustParseAddr("172.24.0.11")
	}
}
func (red) HasBridge(b intent.BridgeKey) bool { return b == "br-ex" }

type indices struct{ taken bool }

func (x *indices) Index(intent.VNI) (uint16, error) { x.taken = true; return 7, nil }
func (x *indices) Release(intent.VNI)               { x.taken = false }

var all = Config{Ports: true, FloatingIPs: true, Gateways: true, NextHopMAC: intent.MAC{2, 9, 9, 9, 9, 9}}

var complete = Change{Rows: true, Complete: true, Northbound: true}

// exposed are the addresses with their frame keys, as "address key".
func exposed(t wanted.Set) []string {
	var out []string
	for k, r := range wanted.Rows(t, intent.Routes) {
		out = append(out, fmt.Sprintf("%s %s", k.Prefix.Addr(), r.Gateway))
	}
	slices.Sort(out)
	return out
}

func told(t *Translator) []string {
	var out []string
	for _, o := range t.Objects() {
		if o.Kind != kindNetwork {
			out = append(out, fmt.Sprintf("%s %s %s", o.Kind, o.Key, o.Reason))
		}
	}
	return out
}

// TestExposure: what is exposed and complained of, rule by rule.
func TestExposure(t *testing.T) {
	const gw, vm, inner = "br-ex/02:00:00:00:00:01", "br-ex/02:00:00:00:01:01", "br-ex/02:00:00:00:00:61"
	ports := []string{"172.24.0.50 " + vm, "2001:db8:24::50 " + vm}
	gateways := []string{"172.24.0.11 " + gw, "2001:db8:24::b " + gw}
	floating := []string{"172.24.0.60 " + gw, "172.24.0.61 " + inner}
	join := func(lists ...[]string) []string { out := slices.Concat(lists...); slices.Sort(out); return out }
	set := func(port, key, value string) func(cloud) {
		return func(c cloud) { c.edit(port, func(p *ovn.PortBinding) { p.ExternalIDs[key] = value }) }
	}
	for name, row := range map[string]struct {
		config  func(*Config)
		edit    func(cloud)
		tenants Tenants
		want    []string
		told    []string
	}{
		"all":             {want: join(ports, gateways, floating)},
		"nothing":         {config: func(c *Config) { *c = Config{} }},
		"ports":           {config: func(c *Config) { c.FloatingIPs, c.Gateways = false, false }, want: ports},
		"gateways":        {config: func(c *Config) { c.FloatingIPs, c.Ports = false, false }, want: gateways},
		"floating":        {config: func(c *Config) { c.Gateways, c.Ports = false, false }, want: floating},
		"prefixes":        {config: func(c *Config) { c.Prefixes = []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")} }, want: join(ports[1:], gateways[1:])},
		"another network": {config: func(c *Config) { c.Networks = []string{"physnet2"} }},
		"this network":    {config: func(c *Config) { c.Networks = []string{"physnet2", "physnet1"} }, want: join(ports, gateways, floating)},
		"VLAN": {edit: func(c cloud) { c.edit("provnet", func(p *ovn.PortBinding) { p.Tag = 100 }) },
			config: func(c *Config) { c.FloatingIPs, c.Gateways = false, false },
			want:   []string{"172.24.0.50 br-ex.100/02:00:00:00:01:01", "2001:db8:24::50 br-ex.100/02:00:00:00:01:01"}},
		"bad VLAN": {edit: func(c cloud) { c.edit("provnet", func(p *ovn.PortBinding) { p.Tag = 5000 }) },
			config: func(c *Config) { c.FloatingIPs, c.Gateways = false, false }, told: []string{"port vm bad-vlan"}},
		"no mapping": {edit: func(c cloud) { c.edit("provnet", func(p *ovn.PortBinding) { p.Options["network_name"] = "physnet3" }) },
			told: []string{"gateway cr-gw no-bridge-mapping", "port vm no-bridge-mapping"}},
		"two localnet ports": {edit: func(c cloud) {
			l := pb("a-first", ovn.TypeLocalnet, "public", "", "unknown")
			l.Options = map[string]string{"network_name": "physnet3"}
			c.put(l)
		}, want: join(ports, gateways, floating)},
		"port opted out":    {edit: set("vm", keyExpose, "false"), want: join(gateways, floating), told: []string{"port vm opted-out"}},
		"gateway opted out": {edit: set("lrp-gw", keyExpose, "false"), want: join(ports, floating[1:]), told: []string{"floating-ip 172.24.0.60 opted-out", "gateway cr-gw opted-out"}},
		"side opted out":    {edit: set("lsp-gw", keyExpose, "false"), want: ports, told: []string{"floating-ip 172.24.0.60 opted-out", "floating-ip 172.24.0.61 opted-out", "gateway cr-gw opted-out"}},
		"VM opted out":      {edit: set("inner", keyExpose, "false"), want: join(ports, gateways, floating[:1]), told: []string{"floating-ip 172.24.0.61 opted-out"}},
		"expose nonsense":   {edit: set("vm", keyExpose, "no"), want: join(gateways, floating), told: []string{"port vm bad-expose"}},
		"port down":         {edit: func(c cloud) { c.edit("vm", func(p *ovn.PortBinding) { p.Up = false }) }, want: join(gateways, floating), told: []string{"port vm port-down"}},
		"port moved":        {edit: func(c cloud) { c.edit("vm", func(p *ovn.PortBinding) { p.Chassis = there }) }, want: join(gateways, floating)},
		"VM moved":          {edit: func(c cloud) { c.edit("inner", func(p *ovn.PortBinding) { p.Chassis = there }) }, want: join(ports, gateways, floating[:1])},
		"gateway moved":     {edit: func(c cloud) { c.edit("cr-gw", func(p *ovn.PortBinding) { p.Chassis = there }) }, want: join(ports, floating[1:])},
		"node's own address": {edit: func(c cloud) {
			c.edit("vm", func(p *ovn.PortBinding) { p.MAC = []string{"02:00:00:00:01:01 172.24.0.99"} })
		},
			want: join(gateways, floating), told: []string{"port vm host-address"}},
		"address twice": {edit: func(c cloud) { c.put(pb("wm", ovn.TypeVIF, "public", here, "02:00:00:00:01:09 172.24.0.50")) },
			want: join(ports, gateways, floating), told: []string{"port wm duplicate-address"}},
		"Neutron's addresses": {edit: func(c cloud) {
			c.edit("vm", func(p *ovn.PortBinding) {
				p.MAC, p.ExternalIDs[keyCIDRs] = []string{"02:00:00:00:01:01", "unknown"}, "172.24.0.50/16 2001:db8:24::50/64"
			})
		}, want: join(ports, gateways, floating)},
		"bad nat_addresses": {edit: func(c cloud) {
			c.edit("lsp-gw", func(p *ovn.PortBinding) {
				p.NATAddresses = append(p.NATAddresses, `02:00:00:00:00:61 172.24.0.63 is_chassis_resident(x)`)
			})
		}, want: join(ports, gateways, floating), told: []string{"floating-ip lsp-gw bad-nat-addresses"}},
		"EVPN has the gateway": {tenants: red{}, want: join(ports, gateways[1:], floating), told: []string{"gateway cr-gw in-evpn"}},
		"Northbound": {edit: func(c cloud) {
			c.edit("lsp-gw", func(p *ovn.PortBinding) { p.NATAddresses = nil })
			c.northbound(
				ovn.NAT{UUID: "n1", Type: "dnat_and_snat", ExternalIP: "172.24.0.60", LogicalIP: "10.0.0.6"},
				ovn.NAT{UUID: "n2", Type: "dnat_and_snat", ExternalIP: "172.24.0.61", LogicalIP: "10.0.0.5", LogicalPort: "inner", ExternalMAC: "02:00:00:00:00:61"},
				ovn.NAT{UUID: "n3", Type: "dnat_and_snat", ExternalIP: "2001:db8:24::61", LogicalIP: "fd00::5", LogicalPort: "inner", ExternalMAC: "02:00:00:00:00:61"},
				ovn.NAT{UUID: "n4", Type: "snat", ExternalIP: "172.24.0.11", LogicalIP: "10.0.0.0/24"},
				ovn.NAT{UUID: "n5", Type: "dnat_and_snat", ExternalIP: "2001:db8:24::60", LogicalIP: "fd00::6"},
				ovn.NAT{UUID: "n6", Type: "dnat_and_snat", ExternalIP: "172.24.0.62", LogicalIP: "10.0.0.7", LogicalPort: "elsewhere", ExternalMAC: "02:00:00:00:00:62"},
			)
		}, want: join(ports, gateways, floating, []string{"2001:db8:24::61 " + inner, "2001:db8:24::60 " + gw})},
		"two gateway ports": {edit: func(c cloud) {
			// The other one, on the same switch, is on another node; a routed pool is on
			// no network of either.
			other := "02:00:00:00:00:02 172.30.0.1/24"
			cr, lrp, lsp := pb("cr-two", ovn.TypeChassisRedirect, "router", there, other), pb("lrp-two", ovn.TypePatch, "router", "", other), pb("lsp-two", ovn.TypePatch, "public", "", "router")
			cr.Options, lrp.Options, lsp.Options = map[string]string{"distributed-port": "lrp-two"}, map[string]string{"peer": "lsp-two"}, map[string]string{"peer": "lrp-two"}
			c.put(cr, lrp, lsp)
			c.edit("lsp-gw", func(p *ovn.PortBinding) { p.NATAddresses = nil })
			c.northbound(
				ovn.NAT{UUID: "n1", Type: "dnat_and_snat", ExternalIP: "172.24.0.60", LogicalIP: "10.0.0.6"},
				ovn.NAT{UUID: "n2", Type: "dnat_and_snat", ExternalIP: "172.30.0.60", LogicalIP: "10.0.0.6"},
				ovn.NAT{UUID: "n3", Type: "dnat_and_snat", ExternalIP: "203.0.113.1", LogicalIP: "10.0.0.6", GatewayPort: "nb-lrp"},
				ovn.NAT{UUID: "n4", Type: "dnat_and_snat", ExternalIP: "2001:db8:99::1", LogicalIP: "fd00::6", GatewayPort: "nb-lrp"},
				ovn.NAT{UUID: "n5", Type: "dnat_and_snat", ExternalIP: "203.0.113.2", LogicalIP: "10.0.0.7", GatewayPort: "nb-two"},
				ovn.NAT{UUID: "n6", Type: "dnat_and_snat", ExternalIP: "172.24.0.62", LogicalIP: "10.0.0.7", GatewayPort: "nb-two"},
				ovn.NAT{UUID: "n7", Type: "dnat_and_snat", ExternalIP: "203.0.113.3", LogicalIP: "10.0.0.8"},
				ovn.NAT{UUID: "n8", Type: "dnat_and_snat", ExternalIP: "2001:db8:99::3", LogicalIP: "fd00::8"},
			)
		}, want: join(ports, gateways, floating[:1], []string{"203.0.113.1 " + gw, "2001:db8:99::1 " + gw}),
			told: []string{"floating-ip 2001:db8:99::3 no-gateway-port", "floating-ip 203.0.113.3 no-gateway-port"}},
		"both tell": {edit: func(c cloud) {
			c.northbound(ovn.NAT{UUID: "n1", Type: "dnat_and_snat", ExternalIP: "172.24.0.60", LogicalIP: "10.0.0.6"})
		}, want: join(ports, gateways, floating)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, c, tenants := all, sample(), row.tenants
			if row.config != nil {
				row.config(&cfg)
			}
			if row.edit != nil {
				row.edit(c)
			}
			if tenants == nil {
				tenants = nobody{}
			}
			x := NewTranslator(cfg, &indices{}, &loadbalancer.Book{})
			x.Step(c.load(), tenants, complete)
			if diff := cmp.Diff(row.want, exposed(x.Tables())); diff != "" {
				t.Errorf("exposed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.told, told(x)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			checkTables(t, x.Tables(), tenants)
		})
	}
}

// checkTables: each address has all that carries it, and nothing else is there.
func checkTables(t *testing.T, all wanted.Set, tenants Tenants) {
	t.Helper()
	keys := map[intent.GatewayKey]bool{}
	for k, r := range wanted.Rows(all, intent.Routes) {
		keys[r.Gateway] = true
		if a, ok := wanted.Rows(all, intent.Announcements)[k]; !ok || a.Gateway != r.Gateway {
			t.Errorf("%s is not announced", k)
		}
		s := wanted.Rows(all, intent.SteeringFlows)[intent.SteeringKey{Gateway: r.Gateway, Kind: intent.SteerRouted, Prefix: k.Prefix}]
		if s.Localnet != "provnet" || s.NextHopMAC.IsZero() {
			t.Errorf("%s is not steered: %+v", k, s)
		}
		_, tenant := tenants.GatewayVRF(r.Gateway)
		if _, there := wanted.Rows(all, intent.Gateways)[r.Gateway]; there == tenant {
			t.Errorf("%s: gateway row %v, a tenant's %v", k, there, tenant)
		}
		if _, there := wanted.Rows(all, intent.SteeringFlows)[intent.SteeringKey{Gateway: r.Gateway, Kind: intent.SteerToOVN}]; there == tenant {
			t.Errorf("%s: flow to OVN %v, a tenant's %v", k, there, tenant)
		}
		if _, there := wanted.Rows(all, intent.Bridges)[r.Gateway.Bridge]; there == tenants.HasBridge(r.Gateway.Bridge) {
			t.Errorf("%s: bridge row %v", k, there)
		}
	}
	if len(wanted.Rows(all, intent.Announcements)) != len(wanted.Rows(all, intent.Routes)) || len(wanted.Rows(all, intent.Policies)) != 0 {
		t.Errorf("%d announcements of %d routes, %d policies", len(wanted.Rows(all, intent.Announcements)), len(wanted.Rows(all, intent.Routes)), len(wanted.Rows(all, intent.Policies)))
	}
	for k := range wanted.Rows(all, intent.Gateways) {
		if !keys[k] {
			t.Errorf("gateway %s without an address", k)
		}
	}
	if _, there := wanted.Rows(all, intent.VRFs)[intent.DefaultVRF]; there != (len(wanted.Rows(all, intent.Routes)) > 0) {
		t.Errorf("the VRF's row is there: %v", there)
	}
}

// Next hops that are listed are answered, but a port's own address, and those that are
// on no network of a gateway port.
func TestNextHops(t *testing.T) {
	cfg := all
	cfg.FloatingIPs = false
	cfg.NextHops = map[string][]netip.Addr{"physnet1": {netip.MustParseAddr("172.24.0.1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")}}
	c := sample()
	c.edit("vm", func(p *ovn.PortBinding) { p.ExternalIDs[keyNextHops] = "172.24.0.2,172.24.0.50" })
	x := NewTranslator(cfg, &indices{}, &loadbalancer.Book{})
	x.Step(c.load(), nobody{}, complete)
	got := map[string][]string{}
	for k := range wanted.Rows(x.Tables(), intent.ServedNextHops) {
		m := k.Gateway.MAC.String()
		got[m] = append(got[m], k.Prefix.Addr().String())
	}
	for _, list := range got {
		slices.Sort(list)
	}
	// The address of the port itself is one of IPv4 alone.
	want := map[string][]string{
		"02:00:00:00:00:01": {"172.24.0.1", "fe80::1"},
		"02:00:00:00:01:01": {"172.24.0.1", "172.24.0.2", "192.0.2.1", "fe80::1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	for k, g := range wanted.Rows(x.Tables(), intent.Gateways) {
		first := map[byte]string{0: "172.24.0.1", 1: "172.24.0.2"}[k.MAC[4]]
		if g.ICMPSource4.String() != first || g.ICMPSource6.IsValid() {
			t.Errorf("%s: ICMP sources %s and %s", k, g.ICMPSource4, g.ICMPSource6)
		}
	}
	if n := x.Objects(); len(n) != 0 {
		t.Errorf("told %v", n)
	}
}

// A step is the difference to the one before; nothing is done for rows that are not
// complete, and they are looked at when they are.
func TestSteps(t *testing.T) {
	idx := &indices{}
	x := NewTranslator(all, idx, &loadbalancer.Book{})
	c := sample()
	if d := x.Step(c.load(), nobody{}, Change{Rows: true}); !d.Empty() || idx.taken {
		t.Fatal("half of the rows were looked at")
	}
	d := x.Step(c.load(), nobody{}, Change{Complete: true})
	if len(wanted.Of(d, intent.Announcements).Set) != 6 || !idx.taken {
		t.Fatalf("%d announcements when the rows are complete", len(wanted.Of(d, intent.Announcements).Set))
	}
	if why, ok := x.Needed(); !ok || !strings.Contains(why, "172.24.0.11 of cr-gw") {
		t.Errorf("needed for %q", why)
	}
	c.edit("vm", func(p *ovn.PortBinding) { p.Chassis = there })
	if d := x.Step(c.load(), nobody{}, Change{Complete: true}); !d.Empty() {
		t.Error("looked although nothing changed")
	}
	d = x.Step(c.load(), nobody{}, complete)
	if len(wanted.Of(d, intent.Announcements).Delete) != 2 || len(wanted.Of(d, intent.Gateways).Delete) != 1 || len(wanted.Of(d, intent.Announcements).Set)+len(wanted.Of(d, intent.Bridges).Delete) != 0 {
		t.Errorf("a VM went: %+v", d)
	}
	// The gateway port becomes a tenant's, in the same step as the tenant's rows come.
	d = wanted.With(wanted.With(wanted.Difference{}, intent.Gateways, wanted.Delta[intent.GatewayKey, intent.Gateway]{Set: map[intent.GatewayKey]intent.Gateway{key("02:00:00:00:00:01"): {Key: key("02:00:00:00:00:01"), VNI: 1001}}}), intent.Bridges, wanted.Delta[intent.BridgeKey, intent.Bridge]{Set: map[intent.BridgeKey]intent.Bridge{"br-ex": {Name: "br-ex"}}}).Merge(x.Step(c.load(), red{}, complete))
	if len(wanted.Of(d, intent.Gateways).Delete) != 0 || wanted.Of(d, intent.Gateways).Set[key("02:00:00:00:00:01")].VNI != 1001 || len(wanted.Of(d, intent.Bridges).Delete) != 0 {
		t.Errorf("a row that goes from the one to the other was to go: %+v", d)
	}
	d = wanted.With(wanted.With(wanted.Difference{}, intent.Gateways, wanted.Delta[intent.GatewayKey, intent.Gateway]{Delete: []intent.GatewayKey{key("02:00:00:00:00:01")}}), intent.Bridges, wanted.Delta[intent.BridgeKey, intent.Bridge]{Delete: []intent.BridgeKey{"br-ex"}}).Merge(x.Step(c.load(), nobody{}, complete))
	if len(wanted.Of(d, intent.Gateways).Delete) != 0 || wanted.Of(d, intent.Gateways).Set[key("02:00:00:00:00:01")].VNI != intent.DefaultVRF || len(wanted.Of(d, intent.Bridges).Delete) != 0 {
		t.Errorf("and back: %+v", d)
	}
	x.Step(cloud{}.load(), nobody{}, complete)
	if _, ok := x.Needed(); ok || idx.taken || len(wanted.Rows(x.Tables(), intent.Routes)) != 0 {
		t.Error("something is left")
	}
}

func key(mac string) intent.GatewayKey {
	m, _ := intent.ParseMAC(mac)
	return intent.GatewayKey{Bridge: "br-ex", MAC: m}
}

// What Northbound has not told yet is no reason to remove anything, once.
func TestPending(t *testing.T) {
	x := NewTranslator(all, &indices{}, &loadbalancer.Book{})
	rows := sample().load()
	rows.ExpectNB(true)
	x.Step(rows, nobody{}, Change{Rows: true, Complete: true})
	if !x.Pending() {
		t.Error("not pending while NAT rows are to come")
	}
	c := sample()
	c.northbound()
	rows = c.load()
	rows.ExpectNB(true)
	x.Step(rows, nobody{}, complete)
	if x.Pending() {
		t.Error("pending although they have come")
	}
}

func FuzzNATAddresses(f *testing.F) {
	for _, s := range []string{"", "router", `02:00:00:00:00:01 172.24.0.1 2001:db8::1 is_chassis_resident("a")`, `x is_chassis_resident(")`, "02:00:00:00:00:01 0.0.0.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseNATAddresses(s)
		if err == nil && len(n.addrs) > 0 && n.mac.IsZero() {
			t.Errorf("%q: addresses without a MAC", s)
		}
		for _, a := range n.addrs {
			if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
				t.Errorf("%q: address %s", s, a)
			}
		}
	})
}
