package evpn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// advertise adds a row: by way of a port, and with the port that has the address.
func (c cloud) advertise(port, prefix, tracked string) cloud {
	row := ovn.AdvertisedRoute{UUID: ovn.UUID(fmt.Sprintf("ar-%s-%s-%s", port, prefix, tracked)), Datapath: "lr-r1", LogicalPort: ovn.UUID("pb-" + port), IPPrefix: prefix}
	if tracked != "" {
		row.TrackedPort = ovn.UUID("pb-" + tracked)
	}
	return c.put(row)
}

// TestAdvertised: what of OVN's own advertisements a VRF takes. Only the gateway port
// names a VNI.
func TestAdvertised(t *testing.T) {
	const in, gw, vm = "lrp-in-r1", "lrp-gw-r1", "vm-r1"
	subnets := []string{"7 10.10.0.0/24", "7 2001:db8:10::/64"}
	own := []string{"7 172.24.4.1/32", "7 2001:db8:ff::1/128"}
	nat := func(c cloud, external, logical string) {
		c.put(ovn.LogicalRouter{UUID: "nb-r1", NAT: []ovn.UUID{"n"}}, ovn.NAT{UUID: "n", Type: "snat", ExternalIP: external, LogicalIP: logical})
	}
	for name, row := range map[string]struct {
		edit func(cloud)
		off  bool
		// routes are beside the gateway port's own addresses; announced: of these.
		routes, announced []string
		errs, notes       []string
	}{
		"nothing":      {},
		"switched off": {edit: func(c cloud) { c.advertise(in, "10.10.0.0/24", "") }, off: true},
		"networks": {edit: func(c cloud) { c.advertise(in, "10.10.0.0/24", "").advertise(in, "2001:db8:10::/64", "") },
			routes: subnets, announced: subnets},
		"one family": {edit: func(c cloud) { c.advertise(in, "2001:db8:10::/64", "") }, routes: subnets[1:], announced: subnets[1:]},
		"hosts": {edit: func(c cloud) {
			c.advertise(in, "10.10.0.5", vm).advertise(in, "2001:db8:10::5", vm).advertise(in, "10.10.0.1", in)
		},
			routes:    append([]string{"7 10.10.0.1/32", "7 10.10.0.5/32", "7 2001:db8:10::5/128"}, subnets...),
			announced: []string{"7 10.10.0.1/32", "7 10.10.0.5/32", "7 2001:db8:10::5/128"}},
		"host that is opted out": {edit: func(c cloud) {
			c.advertise(in, "10.10.0.5", vm).edit(vm, func(p *ovn.PortBinding) { p.ExternalIDs[keyExpose] = "false" })
		}, routes: subnets[:1]},
		"interface that is opted out": {edit: func(c cloud) {
			c.advertise(in, "10.10.0.0/24", "").edit("in-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyExpose] = "false" })
		}, notes: []string{"interface in-r1 opted-out"}},
		"interface with a VNI": {edit: func(c cloud) { c.advertise(in, "10.10.0.0/24", "").keys("pb-in-r1", keyVNI, "7") },
			routes: append([]string{"7 10.10.0.5/32", "7 2001:db8:10::5/128"}, subnets...), announced: []string{"7 10.10.0.0/24", "7 10.10.0.5/32", "7 2001:db8:10::5/128"}},
		"interface with another VNI": {edit: func(c cloud) { c.advertise(in, "10.10.0.0/24", "").keys("pb-in-r1", keyVNI, "8") },
			errs: []string{"interface in-r1 vni-mismatch"}},
		"static routes, one in another": {edit: func(c cloud) { c.advertise(in, "192.168.0.0/16", "").advertise(in, "192.168.1.0/24", "") },
			routes: []string{"7 192.168.0.0/16", "7 192.168.1.0/24"}, announced: []string{"7 192.168.0.0/16", "7 192.168.1.0/24"}},
		"static routes that are none of the tenant's": {edit: func(c cloud) { c.advertise(in, "0.0.0.0/0", "").advertise(in, "10.0.0.0/8", "") },
			notes: []string{"interface in-r1 left-out", "interface in-r1 left-out"}},
		"load balancers": {edit: func(c cloud) {
			for _, vip := range []string{"198.51.100.1", "2001:db8:99::1"} {
				c.advertise(in, vip, gw).advertise(gw, vip, gw)
			}
		}, routes: []string{"7 198.51.100.1/32", "7 2001:db8:99::1/128"}, announced: []string{"7 198.51.100.1/32", "7 2001:db8:99::1/128"}},
		"on the gateway port": {edit: func(c cloud) {
			c.advertise(gw, "172.24.0.0/16", "").advertise(gw, "0.0.0.0/0", "").advertise(gw, "172.24.4.77", vm)
		},
			notes: []string{"gateway cr-lrp-gw-r1 left-out", "gateway cr-lrp-gw-r1 left-out"}},
		"NAT outside the provider network": {edit: func(c cloud) { c.advertise(in, "198.51.100.9", gw); nat(c, "198.51.100.9", "10.99.0.0/24") },
			notes: []string{"interface in-r1 left-out"}},
		"NAT of the network": {edit: func(c cloud) { c.advertise(in, "10.10.0.0/24", ""); nat(c, "198.51.100.9", "10.10.0.0/24") },
			notes: []string{"interface in-r1 nat"}},
		"NAT unknown": {edit: func(c cloud) {
			delete(c, "nb-r1")
			c.advertise(in, "198.51.100.9", gw).advertise(in, "10.10.0.0/24", "")
		},
			routes: subnets[:1], announced: subnets[:1],
			notes: []string{"gateway cr-lrp-gw-r1 nat-unknown", "interface in-r1 left-out"}},
		"unreadable": {edit: func(c cloud) { c.advertise(in, "x", "") }, notes: []string{"interface lrp-in-r1 left-out"}},
		"no VNI": {edit: func(c cloud) { c.advertise(in, "10.10.0.0/24", "").keys("pb-gw-r1") },
			notes: []string{"interface in-r1 no-gateway"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := plain(true).keys("pb-gw-r1", keyVNI, "7")
			if row.edit != nil {
				row.edit(c)
			}
			cfg := testConfig()
			cfg.DynamicRouting = !row.off
			tr := compute(c, cfg)
			without := func(list []string) []string {
				return sorted(slices.DeleteFunc(list, func(s string) bool { return slices.Contains(own, s) }))
			}
			check(t, "routes", sorted(row.routes), without(routes(tr, intent.RouteLocal)))
			check(t, "announced", sorted(row.announced), without(announced(tr)))
			for _, r := range wanted.Rows(tr.Tables(), intent.Routes) {
				if _, steered := wanted.Rows(tr.Tables(), intent.SteeringFlows)[intent.SteeringKey{Gateway: r.Gateway, Kind: intent.SteerSource, Prefix: r.Key.Prefix}]; !steered && !r.Key.Prefix.IsSingleIP() {
					t.Errorf("%s is not taken from OVN", r.Key)
				}
			}
			errs, notes := complaints(tr)
			notes = slices.DeleteFunc(notes, func(s string) bool { return s == "gateway cr-lrp-gw-r1 "+reason.SNATSource })
			check(t, "errors", row.errs, errs)
			check(t, "notes", row.notes, notes)
		})
	}
}

// TestAdvertisedManyVNIs: an interface that names none belongs to no one.
func TestAdvertisedManyVNIs(t *testing.T) {
	c := plain(true).keys("pb-gw-r1", keyVNI, "7").advertise("lrp-in-r1", "10.10.0.0/24", "")
	for _, name := range []string{"cr-lrp-gw-r1", "lrp-gw-r1", "gw-r1"} {
		p := c["pb-"+name].(ovn.PortBinding)
		p.UUID, p.LogicalPort = "pb-2"+ovn.UUID(name), "2"+name
		p.Options, p.ExternalIDs = map[string]string{"peer": "2" + p.Options["peer"], "distributed-port": "2" + p.Options["distributed-port"]}, map[string]string{keyVNI: "8"}
		if len(p.MAC) > 0 && p.MAC[0] != "router" {
			p.MAC = []string{"02:00:00:00:99:01 172.24.4.200/16"}
		}
		c.put(p)
	}
	cfg := testConfig()
	cfg.DynamicRouting = true
	tr := compute(c, cfg)
	_, notes := complaints(tr)
	check(t, "notes", []string{"interface in-r1 left-out"}, notes)
	if n := len(wanted.Rows(tr.Tables(), intent.VRFs)); n != 2 {
		t.Errorf("%d VRFs", n)
	}
}
