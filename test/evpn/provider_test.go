package evpn_test

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// physical is the scenario with a router on each provider network, and beside
// red's exposed network one that is behind source NAT.
func physical() lab.Scenario {
	s := lab.EVPN(lab.EVPNParams{Uplink: lab.UplinkGateway})
	for i := range s.Clouds {
		red := &s.Clouds[i].Tenants[0]
		red.SNAT = true
		red.Networks = append(red.Networks, lab.Network{Name: "plain", Unexposed: true, Subnet4: netip.MustParsePrefix("10.30.0.0/24")})
	}
	s.Clouds[0].VMs = append(s.Clouds[0].VMs, lab.VM{
		Name: "a-red9", Chassis: "a2", Tenant: "red", Network: "plain", Addr4: netip.MustParseAddr("10.30.0.9"),
	})
	return s
}

// With a physical default gateway the exposed networks go through Sluice, all
// else to that gateway; no tenant's frame gets to the physical port, also while
// the bridge knows no MAC, and none arrives twice.
func TestPhysicalGateway(t *testing.T) {
	w := own(t, physical(), "")
	w.connected()
	w.reach("a-red9", "172.24.0.1")
	w.unreachable("a-red9", addrB4)
	for _, r := range []string{"10.30.0.0/24", "10.30.0.9/32", "172.24.0.11/32"} {
		w.withdrawn("a1", vniRed, r)
	}

	p := w.Scenario().Clouds[0].Providers[0]
	filter := "net 10.10.0.0/24 or net 10.20.0.0/24 or net fd00:10::/64 or net fd00:20::/64"
	captures := map[string]*lab.Capture{}
	for _, n := range w.chassis() {
		captures[n] = w.capture(n, p.PhysicalPort(), filter)
	}
	captures["a-public-gw"] = w.capture("a-public-gw", "eth0", filter)
	for range 3 {
		for _, n := range w.chassis() {
			w.exec(n, "ovs-appctl", "-t", "ovs-vswitchd", "fdb/flush", "br-ex")
		}
		for _, vm := range vms {
			for _, addr := range far(vm) {
				w.pings(vm, addr, 100)
			}
		}
	}
	for n, c := range captures {
		if p := w.stop(c); len(p) != 0 {
			t.Errorf("%d frames of tenants at the physical port of %s, the first: %x", len(p), n, p[0].Data)
		}
	}
	// The gateway still reaches the address of source NAT, and the hidden network
	// the world.
	w.reach("a-public-gw", "172.24.0.11")
	w.pings("a-red9", "172.24.0.1", 1000)
	w.clean()
}
