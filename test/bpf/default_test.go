package bpf_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The default VRF: addresses that are exposed without EVPN.

var (
	hostMAC = mac("00:00:00:00:00:00") // of the loopback device, which stands for a NIC
	vmMAC   = mac("fa:16:3e:00:00:0a")
	natMAC  = mac("fa:16:3e:00:00:0b")
	vm      = intent.GatewayKey{Bridge: "br-ex", MAC: vmMAC}
	nat     = intent.GatewayKey{Bridge: "br-two", VLAN: 200, MAC: natMAC}
)

// defaultWorld is world, and without EVPN: a VM's port on a provider network, a
// distributed floating IP in a VLAN, and a floating IP behind the gateway port of a
// tenant.
func defaultWorld(t testing.TB, dir string) *ebpf.Dataplane {
	t.Helper()
	d := world(t, dir, node())
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{intent.DefaultVRF: {VNI: intent.DefaultVRF, Index: 9}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{
		vm: {Key: vm, VNI: intent.DefaultVRF, Kind: intent.GatewayPort, LogicalPort: "vm",
			ICMPSource4: addr("203.0.113.1"), ICMPSource6: addr("2001:db8:113::1")},
		nat: {Key: nat, VNI: intent.DefaultVRF, Kind: intent.GatewayNAT, LogicalPort: "vm2"}})
	apply(t, d.Routes(), routes(
		local(intent.DefaultVRF, "203.0.113.66/32", nat), local(intent.DefaultVRF, "2001:db8:113::66/128", nat),
		local(intent.DefaultVRF, "203.0.113.128/25", vm), local(intent.DefaultVRF, "2001:db8:113:1::/64", vm), block(intent.DefaultVRF, "203.0.113.130/32"),
		// What underlay_in never takes, whatever the rows say.
		local(intent.DefaultVRF, "192.0.2.1/32", vm), local(intent.DefaultVRF, "2001:db8:ffff::1/128", vm),
		local(intent.DefaultVRF, "203.0.113.5/32", vm), local(intent.DefaultVRF, "2001:db8:113::5/128", vm),
		local(intent.DefaultVRF, "203.0.113.77/32", gw), local(intent.DefaultVRF, "2001:db8:113::77/128", gw)))
	return d
}

func vmOut4(src, dst string) []byte {
	return frame(ether(vmMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
}

func vmOut6(src, dst string) []byte {
	return frame(ether(vmMAC, nextHopMAC, layers.EthernetTypeIPv6), ip6(src, dst, layers.IPProtocolUDP), udp(), gopacket.Payload("hello"))
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

func hostName() string { return fmt.Sprintf("sluice-host-%d", os.Getpid()) }

// hostRoutes is a namespace with routes of a host, and the ifindex of its NIC.
func hostRoutes(t *testing.T) (netns.Namespace, uint32) {
	t.Helper()
	name := hostName()
	command(t, "ip netns add "+name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	for _, line := range strings.Split(hostSetup, "\n") {
		command(t, strings.ReplaceAll(line, "NS", name))
	}
	ns := netns.Named(name)
	sysctl(t, ns, "1", "ipv4/conf/lo/forwarding", "ipv6/conf/lo/forwarding")
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
ip -n NS link add nic type veth peer name nic-peer
ip -n NS link set nic up
ip -n NS link set nic-peer up
ip -n NS addr add 192.0.2.1/24 dev nic
ip -n NS addr add 2001:db8:ffff::1/64 dev nic nodad
ip -n NS addr add 192.0.2.2/24 dev nic
ip -n NS addr add 2001:db8:ffff::2/64 dev nic nodad
ip -n NS addr add 192.0.2.200/32 dev lo
ip -n NS link add other type veth peer name other-peer
ip -n NS link set other up
ip -n NS link set other-peer up
ip -n NS addr add 2001:db8:fffe::1/64 dev other nodad
ip -n NS route add 198.51.100.0/24 via 192.0.2.254
ip -n NS route add 198.51.101.0/24 via 192.0.2.254 mtu lock 1400
ip -n NS route add blackhole 198.18.1.0/24
ip -n NS route add unreachable 198.18.2.0/24
ip -n NS route add prohibit 198.18.3.0/24
ip -n NS route add 198.18.4.0/24 dev other
ip -n NS route add 198.18.6.0/24 via inet6 2001:db8:ffff::fe dev nic
ip -n NS route add 198.18.7.0/24 nexthop via 192.0.2.253 nexthop via 192.0.2.254
ip -n NS route add 2001:db8:9::/64 via 2001:db8:ffff::fe
ip -n NS route add 2001:db8:10::/64 via 2001:db8:ffff::fe mtu lock 1400
ip -n NS route add blackhole 2001:db8:81::/64
ip -n NS route add unreachable 2001:db8:82::/64
ip -n NS route add prohibit 2001:db8:83::/64
ip -n NS route add 2001:db8:84::/64 via 2001:db8:fffe::2
ip -n NS route add 2001:db8:87::/64 nexthop via 2001:db8:ffff::fd nexthop via 2001:db8:ffff::fe`

// sysctl sets knobs under net of a namespace.
func sysctl(t *testing.T, ns netns.Namespace, value string, knobs ...string) {
	t.Helper()
	if err := ns.Do(func() (err error) {
		for _, k := range knobs {
			err = errors.Join(err, os.WriteFile("/proc/sys/net/"+k, []byte(value), 0))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

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

// One world for all: to load it takes long on emulated processors.
func TestDefaultVRF(t *testing.T) {
	dir := bpffs(t)
	d := defaultWorld(t, dir)
	ns, nic := hostRoutes(t)
	underlayDevices(t, ns, d, "nic")
	t.Run("drivers", func(t *testing.T) { driversOfDefaultVRF(t, d) })
	t.Run("into OVN", func(t *testing.T) { intoOVN(t, dir, d) })
	t.Run("on to the host", func(t *testing.T) { onToTheHost(t, dir, d) })
	t.Run("refused", func(t *testing.T) { refusedFromUnderlay(t, dir, d) })
	t.Run("way out", func(t *testing.T) { wayOut(t, ns, dir, d, nic) })
	t.Run("no way out", func(t *testing.T) { noWayOut(t, ns, dir, d) })
	t.Run("several ways", func(t *testing.T) { severalWays(t, ns, dir) })
	t.Run("gateway changes its VRF", func(t *testing.T) { changesVRF(t, dir, d) })
	t.Run("taken away", func(t *testing.T) { takenAway(t, ns, dir, d) })
}

// takenAway is what becomes of packets when rows have gone.
func takenAway(t *testing.T, ns netns.Namespace, dir string, d *ebpf.Dataplane) {
	gone := func(errs []error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	to4, to6 := vmOut4("203.0.113.5", "198.51.100.1"), vmOut6("2001:db8:113::5", "2001:db8:9::1")
	hit, hit6 := under4("198.51.100.1", "203.0.113.5"), under6("2001:db8:9::1", "2001:db8:113::5")
	if err := ns.Do(func() error {
		gone(d.UnderlayDevices().Delete(context.Background(), []string{"nic"}))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	runRowsIn(t, ns, dir, d, []row{{name: "the device is not of the underlay any more", in: fromOVN(to4), drop: drop.NotUnderlay}})
	sysctl(t, ns, "0", "ipv4/conf/lo/forwarding", "ipv6/conf/lo/forwarding")
	runRowsIn(t, ns, dir, d, []row{
		{name: "forwarding is off 4", in: fromOVN(to4), drop: drop.ForwardingOff},
		{name: "forwarding is off 6", in: fromOVN(to6), drop: drop.ForwardingOff},
	})
	gone(d.Gateways().Delete(context.Background(), []intent.GatewayKey{vm}))
	runRows(t, dir, d, []row{
		{name: "the gateway is gone 4", in: fromUnderlay(hit), drop: drop.StaleRow},
		{name: "the gateway is gone 6", in: fromUnderlay(hit6), drop: drop.StaleRow},
	})
	gone(d.VRFs().Delete(context.Background(), []intent.VNI{intent.DefaultVRF}))
	runRows(t, dir, d, []row{
		{name: "without a default VRF 4", in: fromUnderlay(hit), passes: true},
		{name: "without a default VRF 6", in: fromUnderlay(hit6), passes: true},
	})
}

// driversOfDefaultVRF: what was applied is read back, and what is of tenants alone is
// refused.
func driversOfDefaultVRF(t *testing.T, d *ebpf.Dataplane) {
	vrfs, gws, rows := list(t, d.VRFs()), list(t, d.Gateways()), list(t, d.Routes())
	if want := (intent.VRF{VNI: intent.DefaultVRF, Index: 9}); vrfs[intent.DefaultVRF] != want {
		t.Errorf("VRF %+v, want %+v", vrfs[intent.DefaultVRF], want)
	}
	if g := gws[vm]; g.VNI != intent.DefaultVRF || g.Kind != intent.GatewayPort || g.LogicalPort != "vm" {
		t.Errorf("gateway %+v", g)
	}
	for _, want := range []intent.Route{local(intent.DefaultVRF, "203.0.113.5/32", vm), local(intent.DefaultVRF, "2001:db8:113::77/128", gw),
		local(intent.DefaultVRF, "203.0.113.128/25", vm), block(intent.DefaultVRF, "203.0.113.130/32")} {
		if rows[want.Key] != want {
			t.Errorf("route %+v, want %+v", rows[want.Key], want)
		}
	}
	ctx := context.Background()
	far := remote(intent.DefaultVRF, "198.51.100.0/24", hop(peer4, 5001))
	tenants := local(red, "10.10.9.0/24", vm)
	beyond := local(intent.DefaultVRF+1, "10.10.9.0/24", vm)
	for name, errs := range map[string][]error{
		"a remote route":               d.Routes().Apply(ctx, []reconcile.Row[intent.RouteKey, intent.Route]{{Key: far.Key, Value: far}}),
		"a tenant's through a VM's":    d.Routes().Apply(ctx, []reconcile.Row[intent.RouteKey, intent.Route]{{Key: tenants.Key, Value: tenants}}),
		"a VRF beyond the default one": d.Routes().Apply(ctx, []reconcile.Row[intent.RouteKey, intent.Route]{{Key: beyond.Key, Value: beyond}}),
		"the kernel path": d.VRFs().Apply(ctx, []reconcile.Row[intent.VNI, intent.VRF]{
			{Key: intent.DefaultVRF, Value: intent.VRF{VNI: intent.DefaultVRF, Index: 9, Path: intent.PathKernel}}}),
	} {
		if len(errs) != 1 || errs[0] == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
