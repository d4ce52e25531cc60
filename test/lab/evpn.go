package lab

import (
	"fmt"
	"net/netip"
)

// FabricAS is the autonomous system of the evpn scenario.
const FabricAS = 64512

// EVPNParams vary the evpn scenario; the zero value is the plain one.
type EVPNParams struct {
	// VLAN tags the provider networks.
	VLAN uint16
	// TwoBridges puts blue on a second provider bridge, br-ex2 of physnet2.
	TwoBridges bool
	// Uplink is what is on the provider bridges besides OVN.
	Uplink Uplink
	// ExtraTenants adds tenants t0001… with VNI 10001… in cloud A, with
	// HostsPerTenant phantom hosts each. Their gateway ports are on a1, 50 to a
	// provider network; these are VLANs 101… of br-ex.
	ExtraTenants, HostsPerTenant int
	// RemoteTCP reaches the databases by TCP.
	RemoteTCP bool
	// CentralA and CentralB say how the clouds serve their databases.
	CentralA, CentralB Central
	// ProgramsA and ProgramsB are the clouds' OVN and Open vSwitch (Cloud.Programs).
	ProgramsA, ProgramsB string
	// KernelDatapath and DirectPlug are of both clouds (Cloud.KernelDatapath).
	KernelDatapath, DirectPlug bool
	// Anycast adds a network to red in both clouds that is the same in both,
	// 10.60.0.0/24 and fd00:60::/64, and in each a VM with the same addresses:
	// a-any1 on a2 and b-any1.
	Anycast bool
	// Compute adds a3 to cloud A, which is no gateway, and red's a-red3 on it. OVN
	// takes a gateway chassis that no other chassis hears any more for a dead one: of
	// two alone neither follows the other.
	Compute bool
	// Metadata adds the networks of the scenario metadata to red and blue of cloud A, not
	// exposed, and m-red1 and m-blue1 on the last chassis of it.
	Metadata bool
	// Balancing adds the machines of the scenario lb.
	Balancing bool
	// Peers are added as they are.
	Peers []Peer
}

// EVPN is two clouds, A with gateway chassis a1 (active) and a2, B with b1, and
// the route reflector rr. Tenants red (VNI 1001) and blue (VNI 2001) use the
// same addresses: 10.10.0.0/24 and fd00:10::/64 in A, 10.20.0.0/24 and
// fd00:20::/64 in B. The VMs of A are on a2, away from the active gateway;
// a second red one, a-red2, is on a1.
func EVPN(p EVPNParams) Scenario {
	a := evpnCloud("a", 10, 24, p)
	a.Central, a.Programs = p.CentralA, p.ProgramsA
	a.Chassis = []Chassis{{Name: "a1", Gateway: true, Priority: 20}, {Name: "a2", Gateway: true, Priority: 10}}
	a.VMs = []VM{
		evpnVM("a-red1", "a2", "red", 10, 11), evpnVM("a-blue1", "a2", "blue", 10, 11),
		evpnVM("a-red2", "a1", "red", 10, 12),
	}
	if p.Compute {
		a.Chassis = append(a.Chassis, Chassis{Name: "a3"})
		a.VMs = append(a.VMs, evpnVM("a-red3", "a3", "red", 10, 13))
	}
	if p.Metadata {
		a.addMetadata()
	}
	b := evpnCloud("b", 20, 25, p)
	b.Central, b.Programs = p.CentralB, p.ProgramsB
	b.Chassis = []Chassis{{Name: "b1", Gateway: true, Priority: 20}}
	b.VMs = []VM{evpnVM("b-red1", "b1", "red", 20, 11), evpnVM("b-blue1", "b1", "blue", 20, 11)}
	if p.Anycast {
		a.addAnycast("a2")
		b.addAnycast("b1")
	}
	if p.Balancing {
		addBalancing(&a, &b)
	}
	a.addExtraTenants(p)
	return Scenario{Name: "evpn", AS: FabricAS, Clouds: []Cloud{a, b}, Reflectors: []string{"rr"}, Peers: p.Peers}
}

func evpnCloud(name string, subnet, provider int, p EVPNParams) Cloud {
	c := Cloud{Name: name, RemoteTCP: p.RemoteTCP, KernelDatapath: p.KernelDatapath, DirectPlug: p.DirectPlug}
	c.Providers = append(c.Providers, Provider{
		Name: "public", Physnet: "physnet1", Bridge: "br-ex", VLAN: p.VLAN, Uplink: p.Uplink,
		Subnet4: netip.MustParsePrefix(fmt.Sprintf("172.%d.0.0/16", provider)),
		Subnet6: netip.MustParsePrefix(fmt.Sprintf("2001:db8:%d::/64", provider)),
	})
	blue := "public"
	if p.TwoBridges {
		blue = "public2"
		c.Providers = append(c.Providers, Provider{
			Name: blue, Physnet: "physnet2", Bridge: "br-ex2", VLAN: p.VLAN, Uplink: p.Uplink,
			Subnet4: netip.MustParsePrefix(fmt.Sprintf("172.%d.0.0/16", provider+2)),
			Subnet6: netip.MustParsePrefix(fmt.Sprintf("2001:db8:%d::/64", provider+2)),
		})
	}
	c.Tenants = []Tenant{
		{Name: "red", VNI: 1001, AS: FabricAS, Provider: "public", Networks: []Network{evpnNetwork(subnet)}},
		{Name: "blue", VNI: 2001, AS: FabricAS, Provider: blue, Networks: []Network{evpnNetwork(subnet)}},
	}
	return c
}

func evpnNetwork(subnet int) Network {
	return Network{
		Name:    "net",
		Subnet4: netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/24", subnet)),
		Subnet6: netip.MustParsePrefix(fmt.Sprintf("fd00:%d::/64", subnet)),
	}
}

func evpnVM(name, chassis, tenant string, subnet, host int) VM {
	return VM{
		Name: name, Chassis: chassis, Tenant: tenant, Network: "net",
		Addr4: netip.MustParseAddr(fmt.Sprintf("10.%d.0.%d", subnet, host)),
		Addr6: netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", subnet, host)),
	}
}

func (c *Cloud) addAnycast(chassis string) {
	red, network := &c.Tenants[0], evpnNetwork(60)
	network.Name = "any"
	red.Networks = append(red.Networks, network)
	vm := evpnVM(c.Name+"-any1", chassis, red.Name, 60, 11)
	vm.Network = network.Name
	c.VMs = append(c.VMs, vm)
}

// tenantsPerProvider bounds the routers on one provider switch: what OVN
// computes for it (multicast groups, ARP between routers) grows with their square.
const tenantsPerProvider = 50

func (c *Cloud) addExtraTenants(p EVPNParams) {
	for i := 1; i <= p.ExtraTenants; i++ {
		name, k := fmt.Sprintf("t%04d", i), (i-1)/tenantsPerProvider+1
		provider := fmt.Sprintf("extra%d", k)
		if (i-1)%tenantsPerProvider == 0 {
			c.Providers = append(c.Providers, Provider{
				Name: provider, Physnet: "physnet1", Bridge: "br-ex", VLAN: uint16(100 + k), Uplink: p.Uplink,
				Subnet4: netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 100+k)),
				Subnet6: netip.MustParsePrefix(fmt.Sprintf("2001:db8:%x::/64", 0x1000+k)),
			})
		}
		c.Tenants = append(c.Tenants, Tenant{
			Name: name, VNI: uint32(10000 + i), AS: FabricAS, Provider: provider, GatewayChassis: "a1", Networks: []Network{evpnNetwork(10)},
		})
		for h := range p.HostsPerTenant {
			vm := evpnVM(fmt.Sprintf("%s-%d", name, h), "", name, 10, 11+h)
			vm.Phantom = true
			c.VMs = append(c.VMs, vm)
		}
	}
}
