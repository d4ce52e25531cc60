package loadbalancer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// What a load balancer says is read once; another row, size or probe is seen all the same.
func TestBook(t *testing.T) {
	r, book := ovn.NewRows(), Book{}
	lb := ovn.LoadBalancer{UUID: "lb", Name: "web", VIPs: map[string]string{"10.0.0.1:80": "10.1.0.1:80,10.1.0.2:80"}, HealthChecks: []ovn.UUID{"check"},
		Ports: map[netip.Addr]string{netip.MustParseAddr("10.1.0.1"): "one", netip.MustParseAddr("10.1.0.2"): "two"}}
	probe := ovn.ServiceMonitor{UUID: "probe", LogicalPort: "one", IP: "10.1.0.1", Protocol: "tcp", Port: 80}
	r.Apply([]ovn.Change{ovn.Set(lb), ovn.Set(ovn.HealthCheck{UUID: "check", VIP: "10.0.0.1:80"}), ovn.Set(probe)})
	want := func(when string, size, live, slots int, wrong string) {
		t.Helper()
		var errs error
		book.Follow(r)
		row, _ := r.Balancer("lb")
		list := book.VIPs(row, size, func(err error) { errs = errors.Join(errs, err) })
		if len(list) != 1 || list[0].TableSize != slots {
			t.Fatalf("%s: %+v", when, list)
		}
		n := 0
		for _, b := range list[0].Backends {
			if !b.Down && b.Weight > 0 {
				n++
			}
		}
		if n != live || (errs != nil) != (wrong != "") || errs != nil && errs.Error() != wrong {
			t.Errorf("%s: %d live backends, %v; want %d, %q", when, n, errs, live, wrong)
		}
	}
	want("at first", 0, 2, 1021, "")
	read := &book.readings["lb"].vips[0]
	probe.Status = "offline"
	r.Apply([]ovn.Change{ovn.Set(probe)})
	want("one is offline", 0, 1, 1021, "")
	if read != &book.readings["lb"].vips[0] {
		t.Error("the row was read again for a probe")
	}
	want("of another size", 4093, 1, 4093, "")
	probe.Status = "online"
	r.Apply([]ovn.Change{ovn.Set(probe)})
	want("one is back", 4093, 2, 4093, "")
	lb.Options = map[string]string{"sluice-weights": "10.1.0.2:80=0"}
	r.Apply([]ovn.Change{ovn.Set(lb)})
	want("one is drained", 0, 1, 1021, "")
	lb.VIPs = map[string]string{"10.0.0.1:80": "10.1.0.1:80", "nowhere": "10.1.0.2:80"}
	r.Apply([]ovn.Change{ovn.Set(lb)})
	for range 2 {
		want("one VIP is wrong", 0, 1, 1021, `VIP nowhere: "nowhere": no IP address`)
	}
	r.Apply([]ovn.Change{ovn.Set(ovn.NBGlobal{UUID: "global", Weights: map[ovn.UUID]string{"lb": "10.1.0.1:80=0"}})})
	want("a weight is held", 0, 0, 1021, `VIP nowhere: "nowhere": no IP address`)
	other := ovn.NewRows()
	lb.VIPs = map[string]string{"10.0.0.1:80": "10.1.0.1:80"}
	other.Apply([]ovn.Change{ovn.Set(lb)})
	r = other
	want("another store", 0, 1, 1021, "")
	r.Apply([]ovn.Change{ovn.Delete(ovn.TableLoadBalancer, "lb")})
	if book.Follow(r); len(book.readings) != 0 {
		t.Errorf("%d readings of rows that are gone", len(book.readings))
	}
}

// What variables have may change, and the row stays.
func TestBookOfTemplates(t *testing.T) {
	r, book := ovn.NewRows(), Book{}
	lb := ovn.LoadBalancer{UUID: "lb", VIPs: map[string]string{"10.0.0.1:80": "^B"}, Options: map[string]string{"template": "true"}}
	r.Apply([]ovn.Change{ovn.Set(lb)})
	for _, backend := range []string{"10.1.0.1:80", "10.1.0.2:80"} {
		r.Apply([]ovn.Change{ovn.Set(ovn.TemplateVar{UUID: "variables", Variables: map[string]string{"B": backend}})})
		book.Follow(r)
		row, _ := r.Balancer("lb")
		got := book.VIPs(row, 0, func(err error) { t.Error(err) })
		if len(got) != 1 || len(got[0].Backends) != 1 || got[0].Backends[0].Address.String() != backend {
			t.Errorf("%+v, want backend %s", got, backend)
		}
	}
}

// Whatever a book has read before, in whichever order rows changed, it says what one says that reads for the first time.
func TestBookSaysWhatTheRowsSay(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		one := func(of ...string) string { return of[rnd.IntN(len(of))] }
		r, book := ovn.NewRows(), Book{}
		said := func(b *Book, size int) string {
			b.Follow(r)
			out := ""
			for _, id := range []ovn.UUID{"one", "two"} {
				if row, there := r.Balancer(id); there {
					out += fmt.Sprintf("%s %+v\n", id, b.VIPs(row, size, func(err error) { out += err.Error() + "\n" }))
				}
			}
			return out
		}
		for range 200 {
			id := ovn.UUID(one("one", "two"))
			lb := ovn.LoadBalancer{UUID: id, VIPs: map[string]string{one("10.0.0.1:80", "10.0.0.2:80"): one("10.1.0.1:80", "10.1.0.1:80,10.1.0.2:80", "^B")},
				Options: map[string]string{"template": one("true", "false"), "sluice-weights": one("", "10.1.0.1:80=0")}}
			changes := []ovn.Change{
				ovn.Set(lb), ovn.Delete(ovn.TableLoadBalancer, id),
				ovn.Set(ovn.TemplateVar{UUID: "variables", Variables: map[string]string{"B": one("10.1.0.1:80", "10.1.0.2:80")}}),
				ovn.Set(ovn.NBGlobal{UUID: "global", Weights: map[ovn.UUID]string{id: one("", "10.1.0.2:80=0")}}),
			}
			rnd.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
			r.Apply(changes[:1+rnd.IntN(2)])
			if rnd.IntN(50) == 0 { // as when another Southbound server takes over
				other := ovn.NewRows()
				for _, id := range []ovn.UUID{"one", "two"} {
					if row, there := r.Balancer(id); there {
						other.Apply([]ovn.Change{ovn.Set(row)})
					}
				}
				r = other
			}
			size := []int{0, 4093}[rnd.IntN(2)]
			if got, want := said(&book, size), said(&Book{}, size); got != want {
				t.Fatalf("seed %d: the book says\n%sand the rows\n%s", seed, got, want)
			}
		}
	}
}
