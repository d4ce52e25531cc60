package evpn

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// TestICMPSource: the neighbour learned under our MAC, else the default route's
// next hop, else the configured address.
func TestICMPSource(t *testing.T) {
	learned := func(ips ...string) func(cloud) {
		return func(c cloud) {
			for _, ip := range ips {
				c.put(ovn.MACBinding{UUID: ovn.UUID("mb-" + ip), LogicalPort: "lrp-gw-r1", IP: ip})
			}
		}
	}
	routed := func(hops ...string) func(cloud) {
		return func(c cloud) {
			lr := ovn.LogicalRouter{UUID: "nb-r1"}
			for _, hop := range hops {
				prefix := "0.0.0.0/0"
				if netip.MustParseAddr(hop).Is6() {
					prefix = "::/0"
				}
				id := ovn.UUID("route-" + hop)
				c.put(ovn.StaticRoute{UUID: id, IPPrefix: prefix, Nexthop: hop})
				lr.StaticRoutes = append(lr.StaticRoutes, id)
			}
			c.put(lr)
		}
	}
	rows := map[string]struct {
		edits  []func(cloud)
		v4, v6 string
	}{
		"nothing known":     {v4: "192.0.2.4", v6: "2001:db8::6"},
		"learned":           {edits: []func(cloud){learned("172.24.4.254", "2001:db8:ff::fe")}, v4: "172.24.4.254", v6: "2001:db8:ff::fe"},
		"one family":        {edits: []func(cloud){learned("172.24.4.254")}, v4: "172.24.4.254", v6: "2001:db8::6"},
		"link-local":        {edits: []func(cloud){learned("fe80::fe")}, v4: "192.0.2.4", v6: "2001:db8::6"},
		"elsewhere":         {edits: []func(cloud){learned("10.10.0.5", "x")}, v4: "192.0.2.4", v6: "2001:db8::6"},
		"own":               {edits: []func(cloud){learned("172.24.4.1")}, v4: "192.0.2.4", v6: "2001:db8::6"},
		"routed":            {edits: []func(cloud){routed("172.24.4.253", "2001:db8:ff::fd")}, v4: "172.24.4.253", v6: "2001:db8:ff::fd"},
		"learned wins":      {edits: []func(cloud){routed("172.24.4.253"), learned("172.24.4.254")}, v4: "172.24.4.254", v6: "2001:db8::6"},
		"another's binding": {edits: []func(cloud){func(c cloud) { c.put(ovn.MACBinding{UUID: "mb", LogicalPort: "lrp-gw-r2", IP: "172.24.4.254"}) }}, v4: "192.0.2.4", v6: "2001:db8::6"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c, cfg := node(true).tenant(1, 1001), testConfig()
			cfg.ICMPSource4, cfg.ICMPSource6 = netip.MustParseAddr("192.0.2.4"), netip.MustParseAddr("2001:db8::6")
			for _, edit := range row.edits {
				edit(c)
			}
			for _, g := range wanted.Rows(compute(c, cfg).Tables(), intent.Gateways) {
				check(t, "IPv4", row.v4, g.ICMPSource4.String())
				check(t, "IPv6", row.v6, g.ICMPSource6.String())
				return
			}
			t.Fatal("no gateway")
		})
	}
}
