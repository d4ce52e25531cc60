package octavia

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// manyBalancers has load balancers with a listener and three members each, and with ports of VMs
// beside them, in networks of a router each.
func manyBalancers(b *testing.B, balancers, perNetwork, ports int) *northbound.Store {
	server := ovsdbtest.Start(b, ovsdbtest.Options{Schema: schema.Northbound})
	store, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	made := 0
	for n := 0; made < balancers; n++ {
		ls := &nb.LogicalSwitch{UUID: northbound.NewUUID(), Name: fmt.Sprintf("N%d", n)}
		lrp := &nb.LogicalRouterPort{UUID: northbound.NewUUID(), Name: fmt.Sprintf("lrp-%d", n), MAC: "02:00:00:00:00:01", Networks: []string{"10.0.0.1/8"}}
		lr := &nb.LogicalRouter{UUID: northbound.NewUUID(), Name: fmt.Sprintf("R%d", n), Ports: []string{lrp.UUID}}
		err := store.Commit(ctx, "bench", func(tx *northbound.Tx) error {
			first := &nb.LogicalSwitchPort{UUID: northbound.NewUUID(), Name: "to-" + lrp.Name, Type: "router", Options: map[string]string{"router-port": lrp.Name}}
			ls.Ports = append(ls.Ports, first.UUID)
			tx.Insert(first)
			for i := range ports {
				vm := &nb.LogicalSwitchPort{UUID: northbound.NewUUID(), Name: fmt.Sprintf("vm-%d-%d", n, i)}
				ls.Ports = append(ls.Ports, vm.UUID)
				tx.Insert(vm)
			}
			tx.Insert(lrp)
			tx.Insert(lr)
			tx.Insert(ls)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		err = store.Commit(ctx, "bench", func(tx *northbound.Tx) error {
			where, _ := network.Find(tx, ls.UUID)
			subnet := network.Subnets(tx, where)[0]
			for i := range min(perNetwork, balancers-made) {
				id, at := fmt.Sprintf("lb-%d", made+i), netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
				v := rowform.VIP{Address: at, Port: northbound.NewUUID()}
				network.AddPort(tx, v.Port, PortName(id), "p", subnet, at)
				lb := New(tx, id, northbound.NewUUID(), where, v)
				lb.SetAttributes(Attributes{Name: id, OwnPort: true, Subnet: subnet.ID})
				r := lb.Row("tcp", "")
				r.Pools = append(r.Pools, rowform.Pool{ID: northbound.NewUUID(), Enabled: true})
				r.Listeners = append(r.Listeners, rowform.Listener{ID: northbound.NewUUID(), Port: 80, Pool: r.Pools[0].ID, Enabled: true})
				for m := range 3 {
					backend := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, byte(m), byte(i)}), 80)
					lb.AddMember(r, 0, rowform.Member{ID: northbound.NewUUID(), Addr: backend, Subnet: subnet.ID}, where, rowform.StatusNoMonitor)
				}
				tx.Insert(r.NBRow())
				lb.Rows[0].Routers = []string{lr.Name}
				tx.Insert(r.NBRow())
				lb.refer(&nb.LogicalRouter{UUID: lr.UUID}, r.UUID, true)
				lb.refer(&nb.LogicalSwitch{UUID: ls.UUID}, r.UUID, true)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		made += min(perNetwork, balancers-made)
	}
	return store
}

// BenchmarkLook is one look of a Reactor: at all load balancers, as when it begins to lead; after a
// port of a VM was added to a network; and after a network was added to a router.
func BenchmarkLook(b *testing.B) {
	for _, size := range []struct{ balancers, perNetwork, ports int }{{1000, 10, 50}, {5000, 10, 50}, {5000, 5000, 5000}} {
		b.Run(fmt.Sprintf("balancers=%d/network=%d", size.balancers, size.perNetwork), func(b *testing.B) {
			store := manyBalancers(b, size.balancers, size.perNetwork, size.ports)
			snapshot := func() *northbound.Snapshot {
				s, err := store.Barrier(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				return s
			}
			r := NewReactor(store, slog.New(slog.DiscardHandler))
			commits, s := store.Stats().Commits, snapshot()
			before := heap()
			r.look(context.Background(), s, nil)
			b.Run("all", func(b *testing.B) {
				for b.Loop() {
					r.seen = nil
					r.look(context.Background(), s, nil)
				}
				b.ReportMetric(float64(heap()-before)/float64(size.balancers), "B/balancer")
			})
			if store.Stats().Commits != commits {
				b.Fatal("the load balancers were not settled")
			}
			number := 0
			for _, change := range []struct {
				name string
				f    func(tx *northbound.Tx, n int)
			}{
				{"port", func(tx *northbound.Tx, n int) {
					ls, _ := northbound.One(tx, northbound.SwitchByName, "N0", "ports")
					vm := &nb.LogicalSwitchPort{UUID: northbound.NewUUID(), Name: fmt.Sprintf("more-%d", n)}
					ls.Ports = append(ls.Ports, vm.UUID)
					tx.Insert(vm)
					tx.Update(ls, "ports")
				}},
				{"router-port", func(tx *northbound.Tx, n int) {
					lr, _ := northbound.One(tx, northbound.RouterByName, "R0", "ports")
					lrp := &nb.LogicalRouterPort{UUID: northbound.NewUUID(), Name: fmt.Sprintf("lrp-more-%d", n), MAC: "02:00:00:00:00:02", Networks: []string{"172.16.0.1/24"}}
					lr.Ports = append(lr.Ports, lrp.UUID)
					tx.Insert(lrp)
					tx.Update(lr, "ports")
				}},
			} {
				b.Run(change.name, func(b *testing.B) {
					looked := r.looked
					for b.Loop() {
						b.StopTimer()
						number++
						if err := store.Commit(context.Background(), "bench", func(tx *northbound.Tx) error { change.f(tx, number); return nil }); err != nil {
							b.Fatal(err)
						}
						s := snapshot()
						b.StartTimer()
						r.look(context.Background(), s, nil)
					}
					b.ReportMetric(float64(r.looked-looked)/float64(b.N), "balancers/op")
				})
			}
		})
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
