package namespace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var _ namespace.Ports = (*ovs.Switch)(nil)

type table map[string]intent.MetadataNetwork

const red = "2f0d7ac1-0a34-4b5c-9d64-7a1e00000001"

func network(name string, change ...func(*intent.MetadataNetwork)) intent.MetadataNetwork {
	v := intent.MetadataNetwork{
		Network: name, Port: "port-" + name, MAC: intent.MAC{0xfa, 0x16, 0x3e, 1, 2, 3}, MTU: 1442, Bridge: "br-int", IPv6: true, Userspace: true,
		Addresses:  intent.NewPrefixSet(netip.MustParsePrefix("10.0.0.2/24"), netip.MustParsePrefix("10.0.1.2/24")),
		Neighbours: neighbours("10.0.0.5 fe80::f816:3eff:fe00:5", 5),
	}
	for _, c := range change {
		c(&v)
	}
	return v
}

// neighbours are addresses of one VM.
func neighbours(addresses string, mac byte) intent.PortAddressSet {
	var out []intent.PortAddress
	for a := range strings.FieldsSeq(addresses) {
		out = append(out, intent.PortAddress{MAC: intent.MAC{0xfa, 0x16, 0x3e, 0, 0, mac}, Addr: netip.MustParseAddr(a)})
	}
	return intent.NewPortAddressSet(out...)
}

func tableOf(all ...intent.MetadataNetwork) table {
	out := table{}
	for _, v := range all {
		out[v.Network] = v
	}
	return out
}

func (n *node) networks() *namespace.Networks {
	return namespace.NewNetworks(namespace.NetworksConfig{Node: n.namespace(), Names: n.names, Ports: n.sw})
}

func (n *node) apply(d *namespace.Networks, want table) {
	n.t.Helper()
	var rows []reconcile.Row[string, intent.MetadataNetwork]
	for k, v := range want {
		rows = append(rows, reconcile.Row[string, intent.MetadataNetwork]{Key: k, Value: v})
	}
	if err := errors.Join(d.Apply(n.t.Context(), rows)...); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) expect(d *namespace.Networks, what string, want table) {
	n.t.Helper()
	got, err := d.List(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	if diff := cmp.Diff(want, table(got)); diff != "" {
		n.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (n *node) inside(network, script string) string {
	n.t.Helper()
	return n.in(n.names.Path(network), script)
}

// A network's namespace is as neutron-ovn-metadata-agent makes it.
func TestNetworks(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	d := n.networks()
	n.expect(d, "nothing", table{})
	want := tableOf(network(red),
		network("plain", func(v *intent.MetadataNetwork) {
			v.MTU, v.IPv6, v.Userspace, v.Addresses, v.Neighbours = 0, false, false, "", ""
		}),
		network("other", func(v *intent.MetadataNetwork) {
			v.MTU, v.Addresses = 9000, intent.NewPrefixSet(netip.MustParsePrefix("2001:db8::2/64"))
		}))
	n.apply(d, want)
	n.expect(d, "made", want)
	for where, wants := range map[string][]string{
		n.inside(red, "ip link; ip addr; ethtool -k tap2f0d7ac1-01"): {"mtu 1442", "link/ether fa:16:3e:01:02:03", "inet 10.0.0.2/24", "inet 10.0.1.2/24",
			"inet 169.254.169.254/32", "inet6 fe80::a9fe:a9fe/128", "inet6 fe80::f816:3eff:fe01:203/64", "tx-checksumming: off", "LOOPBACK,UP"},
		n.inside(red, "ip neigh show nud permanent"):                                                  {"10.0.0.5 dev tap2f0d7ac1-01 lladdr fa:16:3e:00:00:05", "fe80::f816:3eff:fe00:5 dev"},
		n.run("ip link show tap2f0d7ac1-00"):                                                          {"mtu 1442", "UP", "altname sluice:metadata:" + red},
		n.run("ovs-vsctl get interface tap2f0d7ac1-00 external_ids:iface-id"):                         {"port-" + red},
		n.run("ovs-vsctl get port tap2f0d7ac1-00 external_ids; ovs-vsctl iface-to-br tap2f0d7ac1-00"): {"sluice=metadata", "sluice-network=", "br-int"},
	} {
		for _, want := range wants {
			if !strings.Contains(where, want) {
				t.Errorf("%q is not in: %s", want, where)
			}
		}
	}
	if out := n.inside("plain", "ip -6 addr; ip -d link"); strings.Contains(out, "inet6 fe80") || !strings.Contains(out, "mtu 1500") {
		t.Errorf("without IPv6 and MTU: %s", out)
	}
	before := n.run("ip link; ovs-vsctl list-ports br-int")
	n.apply(d, want)
	n.expect(d, "again", want)
	if after := n.run("ip link; ovs-vsctl list-ports br-int"); after != before {
		t.Errorf("again: %s\nwas %s", after, before)
	}
	changed := tableOf(
		network(red, func(v *intent.MetadataNetwork) {
			v.MAC, v.MTU, v.IPv6, v.Port, v.Userspace = intent.MAC{0xfa, 0x16, 0x3e, 9, 9, 9}, 1400, false, "another", false
			v.Addresses = intent.NewPrefixSet(netip.MustParsePrefix("10.0.0.3/24"), netip.MustParsePrefix("10.0.1.2/24"))
			v.Neighbours = neighbours("10.0.0.5 10.0.0.6", 6)
		}),
		network("plain", func(v *intent.MetadataNetwork) { v.Bridge, v.Neighbours = "br-ex", "" }),
		network("other", func(v *intent.MetadataNetwork) { v.MTU = 0 }))
	n.apply(d, changed)
	if got, _ := d.List(t.Context()); got["other"].MTU != 0 {
		t.Errorf("an MTU that is not known any more: %+v", got["other"])
	}
	n.expect(d, "changed", changed)
	n.apply(d, want)
	n.expect(d, "changed back", want)

	for range 2 {
		if err := errors.Join(d.Delete(t.Context(), []string{red, "plain"})...); err != nil {
			t.Fatal(err)
		}
	}
	delete(want, red)
	delete(want, "plain")
	n.expect(d, "two removed", want)
	if err := errors.Join(d.Delete(t.Context(), []string{"other"})...); err != nil {
		t.Fatal(err)
	}
	n.expect(d, "all removed", table{})
	if out := n.run("ip link; ovs-vsctl list-ports br-int"); strings.Contains(out, "tap") || len(n.spaces()) > 0 {
		t.Errorf("left over: %s, %v", out, n.spaces())
	}
}

// Whatever somebody changes shows as a difference, and is mended.
func TestNetworksMend(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	d := n.networks()
	want := tableOf(network(red), network("second"))
	n.apply(d, want)
	n.expect(d, "made", want)
	for _, damage := range []string{
		"ovs-vsctl del-port tap2f0d7ac1-00",
		"ovs-vsctl set interface tap2f0d7ac1-00 external_ids:iface-id=other",
		"ip link set tap2f0d7ac1-00 down",
		"ip link set tap2f0d7ac1-00 mtu 1500",
		"ip link set tap2f0d7ac1-00 arp on",
		"ip link del tap2f0d7ac1-00",
		"IN ip link del tap2f0d7ac1-01",
		"IN ip link set tap2f0d7ac1-01 down",
		"IN ip link set lo down",
		"IN ip link set tap2f0d7ac1-01 mtu 1300",
		"IN ip link set tap2f0d7ac1-01 mtu 1000",
		"IN ip addr add 10.9.0.1/24 dev tap2f0d7ac1-01",
		"IN ip addr del 10.0.0.2/24 dev tap2f0d7ac1-01",
		"IN ip addr del 169.254.169.254/32 dev tap2f0d7ac1-01",
		"IN ip addr flush dev tap2f0d7ac1-01",
		"IN ip addr del fe80::a9fe:a9fe/128 dev tap2f0d7ac1-01",
		"IN ip addr del fe80::f816:3eff:fe01:203/64 dev tap2f0d7ac1-01",
		"IN ethtool -K tap2f0d7ac1-01 tx on",
		"IN ip link set tap2f0d7ac1-01 address 02:00:00:00:00:07",
		"IN sysctl -qw net.ipv6.conf.tap2f0d7ac1-01.accept_ra=1",
		"IN sysctl -qw net.ipv4.ip_forward=1",
		"IN ip link set tap2f0d7ac1-01 arp off",
		"IN ip neigh del 10.0.0.5 dev tap2f0d7ac1-01",
		"IN ip neigh replace fe80::f816:3eff:fe00:5 lladdr fa:16:3e:00:00:66 dev tap2f0d7ac1-01",
		"IN ip neigh replace fe80::f816:3eff:fe00:5 lladdr fa:16:3e:00:00:05 dev tap2f0d7ac1-01 nud stale",
		"IN ip neigh add 10.0.0.99 lladdr fa:16:3e:00:00:99 dev tap2f0d7ac1-01",
		"umount " + n.names.Path(red) + " && rm " + n.names.Path(red),
	} {
		if script, ok := strings.CutPrefix(damage, "IN "); ok {
			n.inside(red, script)
		} else {
			n.run(damage)
		}
		n.until("damage shows: "+damage, func() bool { got, err := d.List(t.Context()); return err == nil && got[red] != want[red] })
		n.apply(d, want)
		n.expect(d, "mended: "+damage, want)
	}
}

// What is somebody else's is an error of its network, and stays; others are made.
func TestNetworksForeign(t *testing.T) {
	for name, script := range map[string]string{
		"namespace": "ip netns add NS-net-" + red,
		"device":    "ip -n NS link add tap2f0d7ac1-00 type bridge",
		"port":      "VSCTL add-port br-ex tap2f0d7ac1-00 -- set interface tap2f0d7ac1-00 type=internal",
		"inside":    "ip netns add NS-net-" + red + "; ip -n NS link add tap2f0d7ac1-00 type veth peer name tap2f0d7ac1-01 netns NS-net-" + red,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.withSwitch()
			script = strings.ReplaceAll(strings.ReplaceAll(script, "NS", n.ns), "VSCTL", "ovs-vsctl ")
			n.in("/proc/self/ns/net", script)
			d := n.networks()
			rows := []reconcile.Row[string, intent.MetadataNetwork]{{Key: red, Value: network(red)}, {Key: "second", Value: network("second")}, {Key: "a/b", Value: network("a/b")}}
			errs := d.Apply(t.Context(), rows)
			if len(errs) != 3 || !errors.Is(errs[0], reconcile.ErrForeign) || errs[1] != nil || errs[2] == nil {
				t.Fatalf("errors: %v", errs)
			}
			got, err := d.List(t.Context())
			if err != nil || got["second"] != rows[1].Value || got[red] != (intent.MetadataNetwork{}) {
				t.Errorf("listed %+v, %v", got, err)
			}
			if err := errors.Join(d.Delete(t.Context(), []string{red, "second"})...); err != nil {
				t.Error(err)
			}
			there, _ := netns.Exists(n.names.Path(red))
			out := n.run("ip link; ovs-vsctl list-ports br-ex")
			if (name == "namespace" || name == "inside") != there || (name != "namespace") != strings.Contains(out, "tap2f0d7ac1-00") {
				t.Errorf("what is foreign: namespace %t, %s", there, out)
			}
		})
	}
}

// A port that the database refuses is an error of its network alone.
func TestNetworksRefused(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	n.run("ovs-vsctl --no-wait add-bond br-ex bond0 tap2f0d7ac1-00 other0")
	d := n.networks()
	rows := []reconcile.Row[string, intent.MetadataNetwork]{{Key: red, Value: network(red)}, {Key: "second", Value: network("second")}}
	errs := d.Apply(t.Context(), rows)
	if len(errs) != 2 || errs[0] == nil || !strings.Contains(errs[0].Error(), "tap2f0d7ac1-00") || errs[1] != nil {
		t.Fatalf("errors: %v", errs)
	}
	if got, err := d.List(t.Context()); err != nil || got["second"] != rows[1].Value {
		t.Errorf("listed %+v, %v", got, err)
	}
}

// A process that ended between two steps leaves what the next one finishes.
func TestNetworksUnfinished(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	d := n.networks()
	want := tableOf(network(red))
	n.apply(d, want)
	mac := strings.TrimSpace(n.run("cat /sys/class/net/tap2f0d7ac1-00/address 2>/dev/null || ip -o link show tap2f0d7ac1-00 | sed 's/.*ether //; s/ .*//'"))
	if err := errors.Join(d.Delete(t.Context(), []string{red})...); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.names.Path(red), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	n.run("ip link add tap2f0d7ac1-00 address " + mac + " type veth peer name tap2f0d7ac1-01")
	n.apply(d, want)
	n.expect(d, "finished", want)
}

// Without the database nothing is known, and without a bridge it is waited for.
func TestNetworksNotReady(t *testing.T) {
	n := newNode(t)
	d := namespace.NewNetworks(namespace.NetworksConfig{Node: n.namespace(), Names: n.names, Ports: ovs.New(ovs.Config{})})
	if _, err := d.List(t.Context()); !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("list: %v", err)
	}
	n.withSwitch()
	d = n.networks()
	v := network(red, func(v *intent.MetadataNetwork) { v.Bridge = "br-none" })
	if errs := d.Apply(t.Context(), []reconcile.Row[string, intent.MetadataNetwork]{{Key: red, Value: v}}); len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrNotReady) {
		t.Errorf("apply: %v", errs)
	}
}

// What a network takes does not grow with their number. Of 500, each took 6 ms to make,
// 3 ms to list and 17 ms to remove.
func TestManyNetworks(t *testing.T) {
	const count = 100
	n := newNode(t)
	n.withSwitch()
	d := n.networks()
	want := table{}
	for i := range count {
		v := network(fmt.Sprintf("%08x-0a34-4b5c-9d64-7a1e00000001", i), func(v *intent.MetadataNetwork) { v.MAC[4], v.MAC[5] = byte(i>>8), byte(i) })
		want[v.Network] = v
	}
	each := func(what string, do func()) {
		begin, cpu := time.Now(), used(t)
		do()
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / count }
		t.Logf("%s: %.1f ms each, %.1f ms of CPU", what, ms(time.Since(begin)), ms(used(t)-cpu))
	}
	each("made", func() { n.apply(d, want) })
	each("listed", func() { n.expect(d, "made", want) })
	each("applied again", func() { n.apply(d, want) })
	each("removed", func() {
		if err := errors.Join(d.Delete(context.Background(), slices.Collect(maps.Keys(want)))...); err != nil {
			t.Fatal(err)
		}
	})
	n.expect(d, "removed", table{})
}

// used is the CPU time of the process so far.
func used(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
