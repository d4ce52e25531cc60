package evpn_test

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

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

	silent := w.tenantsStayInside()
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
	silent("with all flows", false)
	w.switchRestarts("a1")
	// The gateway still reaches the address of source NAT, and the hidden network
	// the world.
	w.reach("a-public-gw", "172.24.0.11")
	w.pings("a-red9", "172.24.0.1", 1000)
	w.clean()
}

// tenantsStayInside captures at the physical ports; the result ends that, and
// checks that no frame of a tenant was seen there, but others were. On a bare
// bridge, without any flows, OVN's own frames go to the router that they are for,
// as they would without Sluice.
func (w *world) tenantsStayInside() func(when string, bare bool) {
	w.Helper()
	port := w.Scenario().Clouds[0].Providers[0].PhysicalPort()
	nets := "net 10.10.0.0/24 or net 10.20.0.0/24 or net fd00:10::/64 or net fd00:20::/64"
	tenants := nets + " or (vlan and (" + nets + "))"
	captures, controls := map[string]*lab.Capture{}, map[string]*lab.Capture{}
	for _, n := range append(w.chassis(), "a-public-gw") {
		iface := port
		if n == "a-public-gw" {
			iface = "eth0"
		}
		captures[n] = w.capture(n, iface, tenants)
		controls[n] = w.capture(n, iface, "arp host 172.24.0.11 or arp host 172.25.0.11")
	}
	return func(when string, bare bool) {
		w.Helper()
		var routers []string
		for _, cloud := range []string{"a", "b"} {
			routers = append(routers, w.mac(cloud+"-public-gw", "eth0"))
		}
		// Requests of the gateways are flooded to every chassis.
		for cloud, router := range map[string]string{"a": "172.24.0.11", "b": "172.25.0.11"} {
			w.exec(cloud+"-public-gw", "sh", "-ec", "ip neigh flush all; ping -n -c3 -i0.1 -W1 "+router+" >/dev/null || true")
		}
		for n, c := range captures {
			p, all := w.stop(c), 0
			if bare {
				all = len(p)
				p = slices.DeleteFunc(p, func(p lab.Packet) bool {
					return slices.Contains(routers, net.HardwareAddr(p.Data[:6]).String())
				})
			}
			if len(p) != 0 {
				w.Errorf("%s: %d frames of tenants at the physical port of %s, the first: %x", when, len(p), n, p[0].Data)
			}
			if all > 0 {
				w.Logf("%s: %d frames of OVN to the physical router at %s", when, all-len(p), n)
			}
			if p := w.stop(controls[n]); len(p) == 0 {
				w.Errorf("%s: the capture at the physical port of %s does not even see ARP", when, n)
			}
		}
	}
}

// switchRestarts restarts ovs-vswitchd, with sluiced and without it, while tenants
// send: what is lost is lost, and nothing is flooded to the physical port.
func (w *world) switchRestarts(node string) {
	w.Helper()
	before := w.flows(node)
	if before == "" {
		w.Fatal("no steering flows")
	}
	back := func() {
		w.Helper()
		w.eventually("the steering flows of "+node+" are back", func() error {
			if got := w.flows(node); got != before {
				return fmt.Errorf("flows:\n%s\nwant:\n%s", got, before)
			}
			return nil
		})
	}
	for _, without := range []bool{false, true} {
		silent, streams := w.tenantsStayInside(), w.streams()
		if without {
			w.kill(node, "sluiced")
		}
		w.kill(node, "vswitchd")
		w.startAgain(node, "vswitchd")
		if without {
			w.eventually("the bridge answers, without flows of Sluice", func() error {
				if got := w.flows(node); got == before || strings.Contains(got, "ovs-ofctl") {
					return fmt.Errorf("flows:\n%s", got)
				}
				return nil
			})
			time.Sleep(time.Second) // tenants send into a bridge that has no flows
			w.startAgain(node, "sluiced")
		}
		back()
		w.connected()
		silent(fmt.Sprintf("ovs-vswitchd restarted, without sluiced: %v", without), true)
		for _, s := range streams {
			sent, lost := s.stop()
			w.Logf("without sluiced: %v: %s: %d of %d lost", without, s.name, lost, sent)
		}
	}
}
