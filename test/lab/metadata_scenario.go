package lab

import (
	"fmt"
	"net/netip"
)

// MetadataParams vary the scenario metadata; the zero value is the plain one.
type MetadataParams struct {
	// Networks adds so many networks, each with one VM on m1: m-n0001 … in the tenant
	// t0001 …, all with the addresses of the other VMs.
	Networks int
	// KernelDatapath and DirectPlug are the cloud's: taps that are ports of Open vSwitch.
	KernelDatapath, DirectPlug bool
	// OneChassis leaves m2 out, and the VMs that are on it; NoTenants leaves red and blue
	// out.
	OneChassis, NoTenants bool
	// MTU is that of all networks.
	MTU int
}

// Metadata is one cloud with the chassis m1 and m2 and two tenants, red and blue, whose
// machines have the same addresses, MAC address and all: m-red1 and m-blue1 on m1 are
// the instances inst-red1 and inst-blue1, with 10.30.0.5 and fd00:30::5; m-red2 and
// m-blue2 on m2 have 10.30.0.6 and fd00:30::6. Each network has Neutron's metadata port.
func Metadata(p MetadataParams) Scenario {
	c := Cloud{Name: "m", Chassis: []Chassis{{Name: "m1"}, {Name: "m2"}}, OwnNetns: true, KernelDatapath: p.KernelDatapath, DirectPlug: p.DirectPlug}
	if p.OneChassis {
		c.Chassis = c.Chassis[:1]
	}
	tenants := []string{"red", "blue"}
	if p.NoTenants {
		tenants = nil
	}
	for _, name := range tenants {
		c.Tenants = append(c.Tenants, Tenant{Name: name, Networks: []Network{metadataNetwork(name, p.MTU)}})
		for i, ch := range c.Chassis {
			c.VMs = append(c.VMs, metadataVM(fmt.Sprintf("m-%s%d", name, i+1), ch.Name, name, fmt.Sprintf("inst-%s%d", name, i+1), 5+i))
		}
	}
	for i := 1; i <= p.Networks; i++ {
		c.addMetadataNetwork(i, p.MTU)
	}
	return Scenario{Name: "metadata", AS: FabricAS, Clouds: []Cloud{c}, Reflectors: []string{"rr"}}
}

// addMetadata adds machines that ask for metadata to red and blue of another scenario.
func (c *Cloud) addMetadata() {
	c.OwnNetns = true
	for i := range c.Tenants {
		t := &c.Tenants[i]
		n := metadataNetwork(t.Name, 0)
		n.Name, n.Unexposed = "metadata", true
		t.Networks = append(t.Networks, n)
		vm := metadataVM("m-"+t.Name+"1", c.Chassis[len(c.Chassis)-1].Name, t.Name, "inst-"+t.Name+"1", 5)
		vm.Network = n.Name
		c.VMs = append(c.VMs, vm)
	}
}

func (c *Cloud) addMetadataNetwork(i, mtu int) {
	t, vm := MetadataTenant(i, c.Chassis[0].Name)
	t.Networks[0].MTU = mtu
	c.Tenants, c.VMs = append(c.Tenants, t), append(c.VMs, vm)
}

// MetadataTenant is one of the tenants that MetadataParams.Networks adds, and its VM.
func MetadataTenant(i int, chassis string) (Tenant, VM) {
	name := fmt.Sprintf("t%04d", i)
	return Tenant{Name: name, NoRouter: true, Networks: []Network{metadataNetwork(name, 0)}},
		metadataVM(fmt.Sprintf("m-n%04d", i), chassis, name, fmt.Sprintf("inst-n%04d", i), 5)
}

func metadataNetwork(tenant string, mtu int) Network {
	return Network{
		Name: "net", ID: NetworkID(tenant + "-net"), Metadata: true, MTU: mtu,
		Subnet4: netip.MustParsePrefix("10.30.0.0/24"), Subnet6: netip.MustParsePrefix("fd00:30::/64"),
	}
}

func metadataVM(name, chassis, tenant, instance string, host int) VM {
	return VM{
		Name: name, Chassis: chassis, Tenant: tenant, Network: "net", Instance: instance, Project: "project-" + tenant,
		Addr4: netip.MustParseAddr(fmt.Sprintf("10.30.0.%d", host)), Addr6: netip.MustParseAddr(fmt.Sprintf("fd00:30::%d", host)),
		MAC: fmt.Sprintf("fa:16:3e:00:00:%02x", host),
	}
}
