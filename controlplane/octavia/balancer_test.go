package octavia

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func uuidOf(n int) string { return fmt.Sprintf("9c5a1e0c-64a3-4a4e-8e4f-%012d", n) }

// cloud is a Northbound database with networks N1, N2 and N3, 10.0.N.0/24 and fd00:N::/64.
type cloud struct {
	*testing.T
	store *northbound.Store
}

func newCloud(t *testing.T, raw []byte) cloud {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
	store, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	c := cloud{t, store}
	c.commit(func(tx *northbound.Tx) error {
		for n := 1; n <= 3; n++ {
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(n), Name: fmt.Sprintf("N%d", n)})
		}
		return nil
	})
	return c
}

func (c cloud) commit(f func(tx *northbound.Tx) error) {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	if err := c.store.Commit(ctx, "test", f); err != nil {
		c.Fatal(err)
	}
}

// router connects a router with networks; a second one has the address 2 in each.
func (c cloud) router(n int, networks ...int) {
	c.Helper()
	c.commit(func(tx *northbound.Tx) error {
		lr := &nb.LogicalRouter{UUID: uuidOf(100 * n), Name: fmt.Sprintf("R%d", n)}
		for _, i := range networks {
			id := 100*n + 2*i
			lrp := &nb.LogicalRouterPort{UUID: uuidOf(id), Name: fmt.Sprintf("lrp-%d-%d", n, i), MAC: fmt.Sprintf("02:00:00:00:%02d:%02d", n, i),
				Networks: []string{fmt.Sprintf("10.0.%d.%d/24", i, n), fmt.Sprintf("fd00:%d::%d/64", i, n)}}
			tx.Insert(lrp)
			lr.Ports = append(lr.Ports, lrp.UUID)
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(id + 1), Name: "to-" + lrp.Name, Type: "router", Options: map[string]string{"router-port": lrp.Name}})
			ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(i), "ports")
			ls.Ports = append(ls.Ports, uuidOf(id+1))
			tx.Update(ls, "ports")
		}
		tx.Insert(lr)
		return nil
	})
}

func (c cloud) network(tx *northbound.Tx, n int) network.Network {
	found, ok := network.Find(tx, uuidOf(n))
	if !ok {
		c.Fatalf("there is no network %d", n)
	}
	return found
}

// where are the switches and routers that have a row, and those that it counts.
func (c cloud) where(uuid string) (on []string, counts string) {
	c.Helper()
	s, err := c.store.Snapshot()
	if err != nil {
		c.Fatal(err)
	}
	for _, ls := range northbound.Find(s, northbound.SwitchOfLoadBalancer, uuid) {
		on = append(on, ls.Name)
	}
	for _, lr := range northbound.Find(s, northbound.RouterOfLoadBalancer, uuid) {
		on = append(on, lr.Name)
	}
	slices.Sort(on)
	if row, ok := northbound.Get[*nb.LoadBalancer](s, uuid); ok {
		counts = row.ExternalIDs["ls_refs"] + " " + row.ExternalIDs["lr_ref"]
	}
	return on, counts
}

func (c cloud) expect(uuid string, on []string, counts string) {
	c.Helper()
	gotOn, gotCounts := c.where(uuid)
	if !slices.Equal(gotOn, on) || gotCounts != counts {
		c.Errorf("associated with %q, %s\nwant %q, %s", gotOn, gotCounts, on, counts)
	}
}

func vip(n int) rowform.VIP {
	return rowform.VIP{Address: netip.AddrFrom4([4]byte{10, 0, byte(n), 10}), Port: fmt.Sprintf("port-%d", n)}
}

func both(t *testing.T, f func(t *testing.T, raw []byte)) {
	for name, raw := range map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound} {
		t.Run(name, func(t *testing.T) { f(t, raw) })
	}
}

// The life of a load balancer, from its creation to its end, with rows for two protocols.
func TestRowsOfABalancer(t *testing.T) {
	both(t, func(t *testing.T, raw []byte) {
		c := newCloud(t, raw)
		c.router(1, 1, 2)
		tcp, udp := uuidOf(11), uuidOf(12)
		change := func(f func(b *Balancer)) {
			t.Helper()
			c.commit(func(tx *northbound.Tx) error {
				b, err := Load(tx, "lb")
				if err != nil {
					return err
				}
				f(b)
				b.Save()
				return nil
			})
		}
		c.commit(func(tx *northbound.Tx) error { New(tx, "lb", tcp, c.network(tx, 1), vip(1)).Save(); return nil })
		c.expect(tcp, []string{"N1", "N2", "R1"}, `{"N1": 1} R1`)
		change(func(b *Balancer) {
			r := b.Row("tcp", udp)
			r.Pools = append(r.Pools, rowform.Pool{ID: "a", Enabled: true})
			r.Listeners = append(r.Listeners, rowform.Listener{ID: "l", Port: 80, Pool: "a", Enabled: true})
			b.AddMember(r, 0, rowform.Member{ID: "m", Addr: netip.MustParseAddrPort("10.0.3.7:8080"), Subnet: "s"}, c.network(b.tx, 3), rowform.StatusNoMonitor)
		})
		c.expect(tcp, []string{"N1", "N2", "N3", "R1"}, `{"N1": 1, "N3": 1} R1`)
		change(func(b *Balancer) {
			r := b.Row("udp", udp)
			r.Listeners = append(r.Listeners, rowform.Listener{ID: "d", Port: 53, Enabled: true})
		})
		c.expect(udp, []string{"N1", "N2", "N3", "R1"}, `{"N1": 1, "N3": 1} R1`)
		s, err := c.store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		row, _ := northbound.Get[*nb.LoadBalancer](s, tcp)
		if want := map[string]string{"10.0.1.10:80": "10.0.3.7:8080"}; !maps.Equal(row.Vips, want) || *row.Protocol != "tcp" {
			t.Errorf("row %+v", row)
		}
		change(func(b *Balancer) { b.RemoveMember(b.Rows[0], 0, "m", c.network(b.tx, 3)) })
		c.expect(tcp, []string{"N1", "N2", "R1"}, `{"N1": 1} R1`)
		c.expect(udp, []string{"N1", "N2", "N3", "R1"}, `{"N1": 1, "N3": 1} R1`)
		change(func(b *Balancer) { b.Rows[0].Listeners, b.Rows[0].Pools = nil, nil })
		c.expect(tcp, nil, "")
		change(func(b *Balancer) { b.Rows[0].Listeners = nil })
		s, err = c.store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if row, _ := northbound.Get[*nb.LoadBalancer](s, udp); row == nil || row.Protocol != nil {
			t.Errorf("the last row is %+v", row)
		}
		c.commit(func(tx *northbound.Tx) error {
			b, err := Load(tx, "lb")
			if err == nil {
				b.Delete()
			}
			return err
		})
		c.expect(udp, nil, "")
		err = c.store.Commit(t.Context(), "test", func(tx *northbound.Tx) error { _, err := Load(tx, "lb"); return err })
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("after its end: %v", err)
		}
	})
}

// Two routers on one network: each serves it, and one that leaves takes nothing of
// the other's.
func TestTwoRoutersOnANetwork(t *testing.T) {
	both(t, func(t *testing.T, raw []byte) {
		c := newCloud(t, raw)
		c.router(1, 1, 2)
		c.router(2, 1, 3)
		c.commit(func(tx *northbound.Tx) error {
			New(tx, "lb1", uuidOf(11), c.network(tx, 1), vip(1)).Save()
			New(tx, "lb3", uuidOf(13), c.network(tx, 3), vip(3)).Save()
			return nil
		})
		c.expect(uuidOf(11), []string{"N1", "N2", "N3", "R1", "R2"}, `{"N1": 1} R1,R2`)
		c.expect(uuidOf(13), []string{"N1", "N3", "R2"}, `{"N3": 1} R2`)
		c.commit(func(tx *northbound.Tx) error {
			if err := disconnect(tx, 1, 1); err != nil {
				return err
			}
			for _, id := range []string{"lb1", "lb3"} {
				b, err := Load(tx, id)
				if err != nil {
					return err
				}
				b.Save()
			}
			return nil
		})
		c.expect(uuidOf(11), []string{"N1", "N3", "R2"}, `{"N1": 1} R2`)
		c.expect(uuidOf(13), []string{"N1", "N3", "R2"}, `{"N3": 1} R2`)
	})
}

// A VIP of IPv6, a VIP with an address of each family, and one on a provider network, which has
// the routers and not the switch.
func TestVIPsOfEachKind(t *testing.T) {
	both(t, func(t *testing.T, raw []byte) {
		c := newCloud(t, raw)
		c.router(1, 1, 2)
		c.commit(func(tx *northbound.Tx) error {
			v6 := rowform.VIP{Address: netip.MustParseAddr("fd00:1::10"), Port: "port-6"}
			New(tx, "lb6", uuidOf(16), c.network(tx, 1), v6).Save()
			New(tx, "lb46", uuidOf(17), c.network(tx, 1), vip(1), v6).Save()
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(50), Name: "port-2"})
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(51), Name: "provnet-2", Type: "localnet", Options: map[string]string{"network_name": "physnet1"}})
			ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(2), "ports")
			ls.Ports = append(ls.Ports, uuidOf(50), uuidOf(51))
			tx.Update(ls, "ports")
			New(tx, "lbp", uuidOf(18), c.network(tx, 2), vip(2)).Save()
			return nil
		})
		c.expect(uuidOf(16), []string{"N1", "N2", "R1"}, `{"N1": 1} R1`)
		c.expect(uuidOf(17), []string{"N1", "N2", "R1"}, `{"N1": 2} R1`)
		c.expect(uuidOf(18), []string{"N1", "N2", "R1"}, ` R1`)
	})
}

// The port of an additional VIP that somebody has removed is missed, and made again.
func TestPortOfAdditionalVIP(t *testing.T) {
	both(t, func(t *testing.T, raw []byte) {
		c := newCloud(t, raw)
		c.router(1, 1)
		v4 := rowform.VIP{Address: netip.MustParseAddr("10.0.1.10"), Port: uuidOf(70)}
		v6 := rowform.VIP{Address: netip.MustParseAddr("fd00:1::10"), Port: uuidOf(71)}
		c.commit(func(tx *northbound.Tx) error {
			n := c.network(tx, 1)
			subnets := network.Subnets(tx, n)
			network.AddPort(tx, v4.Port, PortName("lb"), "p", subnets[0], v4.Address)
			network.AddPort(tx, v6.Port, AdditionalPortName("lb", 0), "p", subnets[1], v6.Address)
			b := New(tx, "lb", uuidOf(11), n, v4, v6)
			b.SetAttributes(Attributes{Subnet: subnets[0].ID, AdditionalSubnets: []string{subnets[1].ID}, OwnPort: true})
			b.Save()
			return nil
		})
		settled := func() bool {
			s, err := c.store.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			b, err := Load(s, "lb")
			return err == nil && b.Settled()
		}
		if !settled() {
			t.Error("it is not settled")
		}
		c.commit(func(tx *northbound.Tx) error {
			network.RemovePort(tx, v6.Port, AdditionalPortName("lb", 0))
			return nil
		})
		if settled() {
			t.Error("the port is not missed")
		}
		c.commit(func(tx *northbound.Tx) error {
			b, err := Load(tx, "lb")
			if err == nil {
				b.Repair()
			}
			return err
		})
		s, err := c.store.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		lsp, ok := northbound.One(s, northbound.SwitchPortByName, v6.Port)
		if !settled() || !ok || lsp.ExternalIDs["neutron:port_name"] != "ovn-lb-vip-additional-1-lb" || lsp.ExternalIDs["neutron:cidrs"] != "fd00:1::10/64" {
			t.Errorf("the port is %+v", lsp)
		}
	})
}

func connect(tx *northbound.Tx, router, n int) error {
	id := 100*router + 2*n
	lrp := &nb.LogicalRouterPort{UUID: uuidOf(id), Name: fmt.Sprintf("lrp-%d-%d", router, n), MAC: "02:00:00:00:09:09", Networks: []string{fmt.Sprintf("10.0.%d.%d/24", n, router)}}
	tx.Insert(lrp)
	lr, _ := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "ports")
	lr.Ports = append(lr.Ports, lrp.UUID)
	tx.Update(lr, "ports")
	tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(id + 1), Name: "to-" + lrp.Name, Type: "router", Options: map[string]string{"router-port": lrp.Name}})
	ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(n), "ports")
	ls.Ports = append(ls.Ports, uuidOf(id+1))
	tx.Update(ls, "ports")
	return nil
}

// disconnect takes the ports out of router and switch: the database removes their rows.
func disconnect(tx *northbound.Tx, router, n int) error {
	id := 100*router + 2*n
	lr, _ := northbound.Get[*nb.LogicalRouter](tx, uuidOf(100*router), "ports")
	lr.Ports = slices.DeleteFunc(lr.Ports, func(u string) bool { return u == uuidOf(id) })
	tx.Update(lr, "ports")
	ls, _ := northbound.Get[*nb.LogicalSwitch](tx, uuidOf(n), "ports")
	ls.Ports = slices.DeleteFunc(ls.Ports, func(u string) bool { return u == uuidOf(id+1) })
	tx.Update(ls, "ports")
	return nil
}
