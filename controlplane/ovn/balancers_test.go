package ovn

import (
	"errors"
	"testing"
)

// What a load balancer says is read once; another row, size or probe is seen all the same.
func TestReadings(t *testing.T) {
	r := NewRows()
	lb := LoadBalancer{UUID: "lb", Name: "web", VIPs: map[string]string{"10.0.0.1:80": "10.1.0.1:80,10.1.0.2:80"}, HealthChecks: []UUID{"check"},
		Ports: backendPorts(map[string]string{"10.1.0.1": "one:10.1.0.9", "10.1.0.2": "two:10.1.0.9"})}
	probe := ServiceMonitor{UUID: "probe", LogicalPort: "one", IP: "10.1.0.1", Protocol: "tcp", Port: 80}
	r.Apply([]Change{Set(lb), Set(HealthCheck{UUID: "check", VIP: "10.0.0.1:80"}), Set(probe)})
	want := func(when string, size, live, slots int, wrong string) {
		t.Helper()
		var errs error
		list := r.VIPs(r.balancers["lb"], size, func(err error) { errs = errors.Join(errs, err) })
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
	probe.Status = "offline"
	r.Apply([]Change{Set(probe)})
	want("one is offline", 0, 1, 1021, "")
	want("of another size", 4093, 1, 4093, "")
	probe.Status = "online"
	r.Apply([]Change{Set(probe)})
	want("one is back", 4093, 2, 4093, "")
	lb.Options = map[string]string{"sluice-weights": "10.1.0.2:80=0"}
	r.Apply([]Change{Set(lb)})
	want("one is drained", 0, 1, 1021, "")
	lb.VIPs = map[string]string{"10.0.0.1:80": "10.1.0.1:80", "nowhere": "10.1.0.2:80"}
	r.Apply([]Change{Set(lb)})
	for range 2 {
		want("one VIP is wrong", 0, 1, 1021, `VIP nowhere: "nowhere": no IP address`)
	}
}
