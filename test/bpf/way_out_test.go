package bpf_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// wayOut: what comes from an exposed address goes where the host's routes lead, out of the
// underlay's devices.
func wayOut(t *testing.T, ns netns.Namespace, dir string, d *ebpf.Dataplane, nic uint32) {
	via := func(a string) *ebpf.Step { return &ebpf.Step{What: ebpf.StepFIB, Value: nic, Addr: addr(a)} }
	// The kernel writes the MAC addresses with the neighbour's.
	same := forwarded(nextHopMAC, nextHopMAC)
	out := func(name string, b []byte, next string) row {
		return row{name: name, in: fromOVN(b), out: nic, step: via(next), check: same}
	}
	segments := fromOVN(vmTCP("203.0.113.5", "198.51.100.1"))
	segments.GSOSize = 1400
	runRowsIn(t, ns, dir, d, []row{
		out("by a gateway 4", vmOut4("203.0.113.5", "198.51.100.1"), "192.0.2.254"),
		out("by a gateway 6", vmOut6("2001:db8:113::5", "2001:db8:9::1"), "2001:db8:ffff::fe"),
		out("on the link 4", vmOut4("203.0.113.5", "192.0.2.50"), "192.0.2.50"),
		out("on the link 6", vmOut6("2001:db8:113::5", "2001:db8:ffff::50"), "2001:db8:ffff::50"),
		out("IPv4 by a gateway of IPv6", vmOut4("203.0.113.5", "198.18.6.1"), "2001:db8:ffff::fe"),
		out("floating IP behind a tenant's gateway 4", out4("203.0.113.77", "198.51.100.1"), "192.0.2.254"),
		out("floating IP behind a tenant's gateway 6", out6("2001:db8:113::77", "2001:db8:9::1"), "2001:db8:ffff::fe"),
		out("by a prefix 4", vmOut4("203.0.113.140", "198.51.100.1"), "192.0.2.254"),
		out("by a prefix 6", vmOut6("2001:db8:113:1::9", "2001:db8:9::1"), "2001:db8:ffff::fe"),
		out("largest 4", sized(vmOut4, "203.0.113.5", "198.51.100.1", 1500), "192.0.2.254"),
		out("largest 6", sized(vmOut6, "2001:db8:113::5", "2001:db8:9::1", 1500), "2001:db8:ffff::fe"),
		out("largest of the route 4", sized(vmOut4, "203.0.113.5", "198.51.101.1", 1400), "192.0.2.254"),
		{name: "fragment", in: fromOVN(refrag(vmOut4("203.0.113.5", "198.51.100.1"), 0x20, 100)), out: nic, step: via("192.0.2.254")},
		{name: "segments", in: segments, out: nic, step: via("192.0.2.254")},
		// Another exposed address of this node: not by the host's routes.
		{name: "to another exposed address 4", in: fromOVN(vmOut4("203.0.113.5", "203.0.113.77")), out: lo, check: forwarded(nextHopMAC, gwMAC)},
		{name: "to another exposed address 6", in: fromOVN(vmOut6("2001:db8:113::5", "2001:db8:113::77")), out: lo, check: forwarded(nextHopMAC, gwMAC)},
		{name: "to one in a VLAN 4", in: fromOVN(vmOut4("203.0.113.5", "203.0.113.66")), out: sluice},
		{name: "from a tenant's gateway to an exposed address 4", in: fromOVN(out4("203.0.113.77", "203.0.113.5")), out: lo, check: forwarded(nextHopMAC, vmMAC)},
		{name: "from a tenant's gateway to an exposed address 6", in: fromOVN(out6("2001:db8:113::77", "2001:db8:113::5")), out: lo, check: forwarded(nextHopMAC, vmMAC)},
	})
}

func vmTCP(src, dst string) []byte {
	ip := ip4(src, dst, layers.IPProtocolTCP)
	ip.Flags = layers.IPv4DontFragment
	return frame(ether(vmMAC, nextHopMAC, layers.EthernetTypeIPv4), ip, &layers.TCP{SrcPort: 1, DstPort: 2, ACK: true}, gopacket.Payload(make([]byte, 3000)))
}

// noWayOut: what the host's routes refuse, and what they would do with it that is not for a
// stranger: the host's own addresses, and other devices.
func noWayOut(t *testing.T, ns netns.Namespace, dir string, d *ebpf.Dataplane) {
	told := func(name string, b []byte, why drop.Reason, src, dst string, typ, code uint8, mtu uint32) row {
		return row{name: name, in: fromOVN(b), drop: why, out: lo, check: icmp(src, dst, typ, code, mtu, nextHopMAC, vmMAC)}
	}
	four := func(name string, b []byte, why drop.Reason, typ, code uint8, mtu uint32) row {
		return told(name+" 4", b, why, "203.0.113.1", "203.0.113.5", typ, code, mtu)
	}
	six := func(name string, b []byte, why drop.Reason, typ, code uint8, mtu uint32) row {
		return told(name+" 6", b, why, "2001:db8:113::1", "2001:db8:113::5", typ, code, mtu)
	}
	to4 := func(dst string) []byte { return vmOut4("203.0.113.5", dst) }
	to6 := func(dst string) []byte { return vmOut6("2001:db8:113::5", dst) }
	silent := func(name string, b []byte, why drop.Reason) row { return row{name: name, in: fromOVN(b), drop: why} }
	large := fromOVN(vmTCP("203.0.113.5", "198.51.101.1"))
	large.GSOSize = 1400
	runRowsIn(t, ns, dir, d, []row{
		four("no route", to4("100.64.0.1"), drop.NoRoute, 3, 0, 0), six("no route", to6("2001:db8:77::1"), drop.NoRoute, 1, 0, 0),
		four("blackhole", to4("198.18.1.1"), drop.NoRoute, 3, 0, 0), six("blackhole", to6("2001:db8:81::1"), drop.NoRoute, 1, 0, 0),
		four("unreachable", to4("198.18.2.1"), drop.NoRoute, 3, 0, 0), six("unreachable", to6("2001:db8:82::1"), drop.NoRoute, 1, 0, 0),
		four("prohibited", to4("198.18.3.1"), drop.NoRoute, 3, 0, 0), six("prohibited", to6("2001:db8:83::1"), drop.NoRoute, 1, 0, 0),
		four("TTL", ttl(to4("198.51.100.1"), 1), drop.TTLExpired, 11, 0, 0), six("hop limit", ttl(to6("2001:db8:9::1"), 1), drop.TTLExpired, 3, 0, 0),
		four("too big for the device", sized(vmOut4, "203.0.113.5", "198.51.100.1", 1501), drop.TooBig, 3, 4, 1500),
		six("too big for the device", sized(vmOut6, "2001:db8:113::5", "2001:db8:9::1", 1501), drop.TooBig, 2, 0, 1500),
		four("too big for the route", sized(vmOut4, "203.0.113.5", "198.51.101.1", 1401), drop.TooBig, 3, 4, 1400),
		six("too big for the route", sized(vmOut6, "2001:db8:113::5", "2001:db8:10::1", 1401), drop.TooBig, 2, 0, 1400),
		{name: "segments are too big", in: large, drop: drop.TooBig, out: lo, check: icmp("203.0.113.1", "203.0.113.5", 3, 4, 1400, nextHopMAC, vmMAC)},
		// Addresses of the node itself are as those that nobody has.
		four("the host's own address", to4("192.0.2.2"), drop.NoRoute, 3, 0, 0), six("the host's own address", to6("2001:db8:ffff::2"), drop.NoRoute, 1, 0, 0),
		four("an address of the loopback device", to4("192.0.2.200"), drop.NoRoute, 3, 0, 0), four("a broadcast", to4("192.0.2.255"), drop.NoRoute, 3, 0, 0),
		silent("another device 4", to4("198.18.4.1"), drop.NotUnderlay), silent("another device 6", to6("2001:db8:84::1"), drop.NotUnderlay),
		silent("multicast 4", to4("239.1.1.1"), drop.Martian), silent("multicast 6", to6("ff0e::1"), drop.Martian),
		silent("back to the same port", to4("203.0.113.140"), drop.Hairpin),
		silent("a blocked address", to4("203.0.113.130"), drop.Blocked),
		// Sources of others, and tenants.
		silent("a floating IP of another gateway 4", vmOut4("203.0.113.77", "198.51.100.1"), drop.SourceNotExposed),
		silent("a floating IP of another gateway 6", vmOut6("2001:db8:113::77", "2001:db8:9::1"), drop.SourceNotExposed),
		silent("a tenant's source", vmOut4("10.10.0.5", "198.51.100.1"), drop.SourceNotExposed),
		silent("a VM's source from a tenant's gateway 4", out4("203.0.113.5", "198.51.100.1"), drop.SourceNotExposed),
		silent("a VM's source from a tenant's gateway 6", out6("2001:db8:113::5", "2001:db8:9::1"), drop.SourceNotExposed),
		four("to a tenant's address", to4("10.10.0.5"), drop.NoRoute, 3, 0, 0), six("to a tenant's address", to6("fd00:10::5"), drop.NoRoute, 1, 0, 0),
		{name: "from a tenant to an exposed address 4", in: fromOVN(out4("10.10.0.5", "203.0.113.5")), drop: drop.NoRoute, out: lo},
		{name: "from a tenant to an exposed address 6", in: fromOVN(out6("fd00:10::5", "2001:db8:113::5")), drop: drop.NoRoute, out: lo},
		{name: "from a tenant by the host's routes 4", in: fromOVN(out4("10.10.0.5", "198.51.100.1")), drop: drop.NoRoute, out: lo},
		{name: "from a tenant by the host's routes 6", in: fromOVN(out6("fd00:10::5", "2001:db8:9::1")), drop: drop.NoRoute, out: lo},
	})
}

// severalWays: flows are spread over the next hops of a route by the kernel, and a flow stays with
// its own; the fragments of a packet go one way.
func severalWays(t *testing.T, ns netns.Namespace, dir string) {
	tr := tracer(t, dir)
	next := func(b []byte) (a string) {
		t.Helper()
		if err := ns.Do(func() error {
			res, err := tr.Trace(context.Background(), fromOVN(b))
			for _, s := range res.Steps {
				if s.What == ebpf.StepFIB {
					a = s.Addr.String()
				}
			}
			return err
		}); err != nil || a == "" {
			t.Fatalf("no way out: %v", err)
		}
		return a
	}
	for family, b := range map[int]func(i int) []byte{
		4: func(i int) []byte { return vmOut4("203.0.113.5", fmt.Sprintf("198.18.7.%d", i)) },
		6: func(i int) []byte { return vmOut6("2001:db8:113::5", fmt.Sprintf("2001:db8:87::%x", i)) },
	} {
		seen := map[string]int{}
		for i := range 64 {
			a := next(b(i + 1))
			seen[a]++
			if again := next(b(i + 1)); again != a {
				t.Errorf("IPv%d: a flow went to %s and to %s", family, a, again)
			}
		}
		if len(seen) != 2 {
			t.Errorf("IPv%d: next hops %v, want two", family, seen)
		}
	}
	sysctl(t, ns, "1", "ipv4/fib_multipath_hash_policy")
	seen := map[string]bool{}
	for port := range 64 {
		l4 := &layers.UDP{SrcPort: layers.UDPPort(40000 + port), DstPort: 53}
		seen[next(frame(ether(vmMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("203.0.113.5", "198.18.7.1", layers.IPProtocolUDP), l4, gopacket.Payload("hello")))] = true
		first := next(refrag(vmOut4("203.0.113.5", fmt.Sprintf("198.18.7.%d", port+1)), 0x20, 0))
		if later := next(refrag(vmOut4("203.0.113.5", fmt.Sprintf("198.18.7.%d", port+1)), 0, 100)); later != first {
			t.Errorf("fragments of a packet went to %s and to %s", first, later)
		}
	}
	if len(seen) != 2 {
		t.Errorf("by ports: next hops %v, want two", seen)
	}
}
