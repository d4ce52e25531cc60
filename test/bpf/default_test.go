package bpf_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// The default VRF: addresses that are exposed without EVPN.

var (
	hostMAC = mac("00:00:00:00:00:00") // of the loopback device, which stands for a NIC
	vmMAC   = mac("fa:16:3e:00:00:0a")
	vm      = intent.GatewayKey{Bridge: "br-ex", MAC: vmMAC}
)

// defaultWorld is world, and a VM's port on a provider network and a floating IP
// behind the gateway port of a tenant.
func defaultWorld(t testing.TB, dir string) *ebpf.Dataplane {
	t.Helper()
	d := world(t, dir, node())
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{intent.DefaultVRF: {VNI: intent.DefaultVRF, Index: 9}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{
		vm: {Key: vm, VNI: intent.DefaultVRF, Kind: intent.GatewayPort, LogicalPort: "vm", Addr4: addr("203.0.113.5"), Addr6: addr("2001:db8:113::5")}})
	apply(t, d.Routes(), routes(
		local(intent.DefaultVRF, "203.0.113.5/32", vm), local(intent.DefaultVRF, "2001:db8:113::5/128", vm),
		local(intent.DefaultVRF, "203.0.113.77/32", gw), local(intent.DefaultVRF, "2001:db8:113::77/128", gw)))
	return d
}

func fromUnderlay(b []byte) ebpf.TraceRequest {
	return ebpf.TraceRequest{Program: ebpf.UnderlayIn, Frame: b, IfIndex: lo}
}

func under4(src, dst string) []byte {
	return frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv4), ip4(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func under6(src, dst string) []byte {
	return frame(ether(peerMAC, hostMAC, layers.EthernetTypeIPv6), ip6(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

// hostRoutes is a namespace with routes of a host, and the ifindex of its NIC.
func hostRoutes(t *testing.T) (netns.Namespace, uint32) {
	t.Helper()
	name := fmt.Sprintf("sluice-host-%d", os.Getpid())
	command(t, "ip netns add "+name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	for _, line := range strings.Split(hostSetup, "\n") {
		command(t, strings.ReplaceAll(line, "NS", name))
	}
	ns := netns.Named(name)
	var index int
	if err := ns.Do(func() error {
		nic, err := net.InterfaceByName("nic")
		if err == nil {
			index = nic.Index
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return ns, uint32(index)
}

// The loopback device stands for sluice0.
const hostSetup = `ip -n NS link set lo up
ip netns exec NS sysctl -qw net.ipv4.conf.lo.forwarding=1 net.ipv6.conf.lo.forwarding=1
ip -n NS link add nic type veth peer name nic-peer
ip -n NS link set nic up
ip -n NS link set nic-peer up
ip -n NS addr add 192.0.2.1/24 dev nic
ip -n NS addr add 2001:db8:ffff::1/64 dev nic nodad
ip -n NS route add 198.51.100.0/24 via 192.0.2.254
ip -n NS route add 2001:db8:9::/64 via 2001:db8:ffff::fe`

// underlayDevices gives the data plane the NIC as a device of the underlay.
func underlayDevices(t *testing.T, ns netns.Namespace, d *ebpf.Dataplane, names ...string) {
	t.Helper()
	rows := map[string]intent.UnderlayDevice{}
	for _, name := range names {
		rows[name] = intent.UnderlayDevice{Name: name}
	}
	if err := ns.Do(func() error {
		apply(t, d.UnderlayDevices(), rows)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// runRowsIn is runRows in a namespace.
func runRowsIn(t *testing.T, ns netns.Namespace, dir string, d *ebpf.Dataplane, rows []row) {
	tr := tracer(t, dir)
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if err := ns.Do(func() error {
				r.run(t, d, tr)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUnderlayIn(t *testing.T) {
	dir := bpffs(t)
	d := defaultWorld(t, dir)
	toVM, toTenant := forwarded(nextHopMAC, vmMAC), forwarded(nextHopMAC, gwMAC)
	runRows(t, dir, d, []row{
		{name: "host 4", in: fromUnderlay(under4("198.51.100.1", "203.0.113.5")), out: lo, check: toVM},
		{name: "host 6", in: fromUnderlay(under6("2001:db8:9::1", "2001:db8:113::5")), out: lo, check: toVM},
		{name: "floating IP behind a tenant's gateway 4", in: fromUnderlay(under4("198.51.100.1", "203.0.113.77")), out: lo, check: toTenant},
		{name: "floating IP behind a tenant's gateway 6", in: fromUnderlay(under6("2001:db8:9::1", "2001:db8:113::77")), out: lo, check: toTenant},
		{name: "the host's own 4", in: fromUnderlay(under4("198.51.100.1", "192.0.2.1")), passes: true},
		{name: "the host's own 6", in: fromUnderlay(under6("2001:db8:9::1", "2001:db8:ffff::1")), passes: true},
	})
}

func vmOut4(src, dst string) []byte {
	return frame(ether(vmMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func vmOut6(src, dst string) []byte {
	return frame(ether(vmMAC, nextHopMAC, layers.EthernetTypeIPv6), ip6(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func TestWayOut(t *testing.T) {
	dir := bpffs(t)
	d := defaultWorld(t, dir)
	ns, nic := hostRoutes(t)
	underlayDevices(t, ns, d, "nic")
	via4 := &ebpf.Step{What: ebpf.StepFIB, Value: nic, Addr: addr("192.0.2.254")}
	via6 := &ebpf.Step{What: ebpf.StepFIB, Value: nic, Addr: addr("2001:db8:ffff::fe")}
	// The kernel writes the MAC addresses with the neighbour's.
	out := forwarded(nextHopMAC, nextHopMAC)
	runRowsIn(t, ns, dir, d, []row{
		{name: "by a gateway 4", in: fromOVN(vmOut4("203.0.113.5", "198.51.100.1")), out: nic, step: via4, check: out},
		{name: "by a gateway 6", in: fromOVN(vmOut6("2001:db8:113::5", "2001:db8:9::1")), out: nic, step: via6, check: out},
		{name: "floating IP behind a tenant's gateway 4", in: fromOVN(out4("203.0.113.77", "198.51.100.1")), out: nic, step: via4, check: out},
		{name: "floating IP behind a tenant's gateway 6", in: fromOVN(out6("2001:db8:113::77", "2001:db8:9::1")), out: nic, step: via6, check: out},
	})
}
