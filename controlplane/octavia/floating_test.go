package octavia

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// Floating IPs of VIPs come and go with NAT rows that others write, in each row of the load balancer.
func TestFloatingIPs(t *testing.T) { both(t, testFloatingIPs) }

func testFloatingIPs(t *testing.T, raw []byte) {
	c := newCloud(t, raw)
	c.router(1, 1, 2)
	c.router(2, 3)
	v6, more := rowform.VIP{Address: netip.MustParseAddr("fd00:1::10"), Port: "port-6"}, rowform.VIP{Address: netip.MustParseAddr("10.0.2.20"), Port: "port-more"}
	c.commit(func(tx *northbound.Tx) error {
		b := New(tx, "lb1", uuidOf(11), c.network(tx, 1), vip(1), v6, more)
		b.SetAttributes(Attributes{Name: "lb1"})
		for i, protocol := range []string{"tcp", "udp"} {
			r := b.Row(protocol, uuidOf(12))
			r.Pools = append(r.Pools, rowform.Pool{ID: "p" + protocol, Enabled: true})
			r.Listeners = append(r.Listeners, rowform.Listener{ID: "l" + protocol, Port: 80 + i, Pool: "p" + protocol, Enabled: true})
			b.AddMember(r, 0, rowform.Member{ID: "m" + protocol, Addr: netip.MustParseAddrPort("10.0.1.7:8080"), Subnet: "s"}, c.network(tx, 1), rowform.StatusNoMonitor)
		}
		b.Save()
		// Of another tenant, with the same address.
		tx.Update(&nb.LogicalRouterPort{UUID: uuidOf(206), Networks: []string{"10.0.1.2/24"}}, "networks")
		other := New(tx, "lb2", uuidOf(13), c.network(tx, 3), rowform.VIP{Address: vip(1).Address, Port: "port-other"})
		other.SetAttributes(Attributes{Name: "lb2"})
		other.Save()
		// One that the provider looks after.
		New(tx, "provider", uuidOf(14), c.network(tx, 1), rowform.VIP{Address: netip.MustParseAddr("10.0.1.30"), Port: "port-provider"}).Save()
		return nil
	})
	nat := func(router, n int, row nb.NAT) func(tx *northbound.Tx) error {
		return func(tx *northbound.Tx) error {
			row := row
			row.UUID = uuidOf(n)
			tx.Insert(&row)
			lr, _ := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "nat")
			lr.Nat = append(lr.Nat, row.UUID)
			tx.Update(lr, "nat")
			return nil
		}
	}
	remove := func(router, n int) func(tx *northbound.Tx) error {
		return func(tx *northbound.Tx) error {
			lr, _ := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "nat")
			lr.Nat = slices.DeleteFunc(lr.Nat, func(u string) bool { return u == uuidOf(n) })
			tx.Update(lr, "nat")
			return nil
		}
	}
	of := func(external, logical, port string) nb.NAT {
		row := nb.NAT{Type: "dnat_and_snat", ExternalIP: external, LogicalIP: logical}
		if port != "" {
			row.LogicalPort = &port
		}
		return row
	}
	snat := of("172.24.4.8", "10.0.1.10", "port-1")
	snat.Type = "snat"
	forwarding := of("172.24.4.8", "10.0.1.10", "port-1")
	forwarding.ExternalPortRange = "1-2"
	r := c.reactor()
	for _, s := range []struct {
		what        string
		change      func(tx *northbound.Tx) error
		first, more string // neutron:vip_fip, neutron:additional_vip_fips
	}{
		{"a floating IP comes", nat(1, 30, of("172.24.4.9", "10.0.1.10", "port-1")), "172.24.4.9", ""},
		{"another one does not take its place", nat(1, 31, of("172.24.4.7", "10.0.1.10", "port-1")), "172.24.4.9", ""},
		{"it goes, and the other one is there", remove(1, 30), "172.24.4.7", ""},
		{"the other one goes", remove(1, 31), "", ""},
		{"SNAT", nat(1, 32, snat), "", ""},
		{"ports alone are forwarded", nat(1, 33, forwarding), "", ""},
		{"of another address of the port", nat(1, 34, of("172.24.4.8", "10.0.1.11", "port-1")), "", ""},
		{"of another port with the address", nat(2, 35, of("172.24.4.8", "10.0.1.10", "port-x")), "", ""},
		{"of the address at the router", nat(1, 36, of("172.24.4.10", "10.0.1.10", "")), "172.24.4.10", ""},
		{"of the second additional VIP", nat(1, 37, of("172.24.4.11", "10.0.2.20", "port-more")), "172.24.4.10", ",172.24.4.11"},
		{"of the VIP of IPv6", nat(1, 38, of("2001:db8::9", "fd00:1::10", "port-6")), "172.24.4.10", "2001:db8::9,172.24.4.11"},
		{"it changes", func(tx *northbound.Tx) error {
			tx.Update(&nb.NAT{UUID: uuidOf(36), ExternalIP: "172.24.4.12"}, "external_ip")
			return nil
		}, "172.24.4.12", "2001:db8::9,172.24.4.11"},
		{"of the additional VIPs they go", func(tx *northbound.Tx) error {
			if err := remove(1, 37)(tx); err != nil {
				return err
			}
			return remove(1, 38)(tx)
		}, "172.24.4.12", ""},
		{"of a VIP of the provider's", nat(1, 39, of("172.24.4.13", "10.0.1.30", "port-provider")), "172.24.4.12", ""},
	} {
		c.commit(s.change)
		c.react(r)
		for i := range 2 {
			c.expectFloating(s.what, uuidOf(11+i), s.first, s.more)
			port := fmt.Sprint(80 + i)
			vips := map[string]string{"10.0.1.10:" + port: "10.0.1.7:8080", "10.0.2.20:" + port: "10.0.1.7:8080"}
			for _, f := range []string{s.first, map[bool]string{true: "172.24.4.11"}[s.more != ""]} {
				if f != "" {
					vips[f+":"+port] = "10.0.1.7:8080"
				}
			}
			if row := c.balancerRow(uuidOf(11 + i)); !maps.Equal(row.Vips, vips) {
				t.Errorf("%s: vips %v, want %v", s.what, row.Vips, vips)
			}
		}
		c.expectFloating(s.what, uuidOf(13), "", "")
		c.expectFloating(s.what, uuidOf(14), "", "")
	}
	// The second tenant's is by its router.
	c.commit(nat(2, 40, of("172.24.4.20", "10.0.1.10", "")))
	c.react(r)
	c.expectFloating("at the other router", uuidOf(11), "172.24.4.12", "")
	c.expectFloating("at the other router", uuidOf(13), "172.24.4.20", "")
}

func (c cloud) balancerRow(uuid string) *nb.LoadBalancer {
	c.Helper()
	s, err := c.store.Snapshot()
	if err != nil {
		c.Fatal(err)
	}
	row, ok := northbound.Get[*nb.LoadBalancer](s, uuid)
	if !ok {
		c.Fatalf("there is no row %s", uuid)
	}
	return row
}

func (c cloud) expectFloating(when, uuid, first, more string) {
	c.Helper()
	ids := c.balancerRow(uuid).ExternalIDs
	if ids["neutron:vip_fip"] != first || ids["neutron:additional_vip_fips"] != more {
		c.Errorf("%s: %s has the floating IPs %q and %q, want %q and %q", when, uuid, ids["neutron:vip_fip"], ids["neutron:additional_vip_fips"], first, more)
	}
}
