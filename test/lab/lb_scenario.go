package lab

import "fmt"

// Backends is how many backends the scenario lb has.
const Backends = 5

// LB is the clouds of the scenario evpn with machines for load balancing alone. In cloud A,
// of tenant red: the backends be1 to be5, 10.10.0.21 to .25 and fd00:10::21 to ::25, on a1
// and a2 in turn; the clients c-same on their switch, on a2, and c-net on another one of their
// router, 10.40.0.0/24, on a3, which is no gateway. In cloud B the client c-fabric, whose packets come by the fabric.
// Node api has the replicas of sluice-controller of cloud A, and the command openstack.
func LB(p EVPNParams) Scenario {
	p.Balancing, p.Compute = false, true
	s := EVPN(p)
	s.Name = "lb"
	a, b := &s.Clouds[0], &s.Clouds[1]
	a.VMs, b.VMs = nil, nil
	addBalancing(a, b)
	return s
}

func addBalancing(a, b *Cloud) {
	for i := 1; i <= Backends; i++ {
		a.VMs = append(a.VMs, evpnVM(fmt.Sprintf("be%d", i), a.Chassis[i%2].Name, "red", 10, 20+i))
	}
	other := evpnNetwork(40)
	other.Name = "other"
	a.Tenants[0].Networks = append(a.Tenants[0].Networks, other)
	net := evpnVM("c-net", a.Chassis[len(a.Chassis)-1].Name, "red", 40, 11)
	net.Network = other.Name
	a.VMs = append(a.VMs, evpnVM("c-same", "a2", "red", 10, 31), net)
	b.VMs = append(b.VMs, evpnVM("c-fabric", "b1", "red", 20, 31))
	a.API = true
}
