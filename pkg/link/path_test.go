package link_test

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/link"
)

// The kernel's own lookup tells whether a packet leaves, by which link, and how large it may be.
func TestPaths(t *testing.T) {
	f := newFacts(t, links+`ip addr add 10.0.0.1/32 dev lo; ip addr add 2001:db8:f::1/128 dev lo
		ip route add 203.0.113.1/32 via 192.0.2.9 mtu 1400; ip route add 203.0.113.8/29 dev eth1 via 198.51.100.9
		ip -6 route add 2001:db8:1::/48 via 2001:db8::9 mtu 1500
		ip route add 198.18.0.0/15 via 192.0.2.9 table 77; ip rule add from 10.0.0.1 lookup 77
		for type in unreachable blackhole prohibit; do
			n=$((n + 1)); ip route add $type 203.0.113.10$n/32; ip -6 route add $type 2001:db8:2::$n/128
		done`)
	sent := func(device string, mtu int, byDefault bool) link.Path {
		return link.Path{Device: device, MTU: mtu, DeviceMTU: map[string]int{"eth0": 1600, "eth1": 9000}[device], Default: byDefault}
	}
	refused := func(why string) link.Path { return link.Path{Refused: why} }
	check := func(q link.Query, want map[string]link.Path) {
		t.Helper()
		var to []netip.Addr
		for a := range want {
			to = append(to, netip.MustParseAddr(a))
		}
		got, err := f.Paths(q, to)
		if err != nil {
			t.Fatal(err)
		}
		for a, w := range want {
			if g := got[netip.MustParseAddr(a)]; g != w {
				t.Errorf("%s from %s: %+v, want %+v", a, q.Source, g, w)
			}
		}
	}
	always := map[string]link.Path{
		"203.0.113.1": sent("eth0", 1400, false), "203.0.113.9": sent("eth1", 9000, false), "192.0.2.7": sent("eth0", 1600, false),
		"2001:db8:1::1": sent("eth0", 1500, false), "2001:db8::7": sent("eth0", 1600, false),
		"203.0.113.101": refused("unreachable"), "203.0.113.102": refused("blackhole"), "203.0.113.103": refused("prohibit"),
		"2001:db8:2::1": refused("unreachable"), "2001:db8:2::2": refused("blackhole"), "2001:db8:2::3": refused("prohibit"),
		"100.64.0.1": refused("no route"), "2001:db8:3::1": refused("no route"), "fe80::1%gone": refused("no route"),
		"fe80::1%eth0": sent("eth0", 1600, false),
	}
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8:f::1")
	for _, source := range []netip.Addr{{}, v4, v6} {
		check(link.Query{Source: source}, always)
		check(link.Query{Source: source, Default: true}, always)
	}
	// A rule may ask for the source. One that the node has not is not the way's fault.
	check(link.Query{Source: v4}, map[string]link.Path{"198.18.0.1": sent("eth0", 1600, false)})
	check(link.Query{}, map[string]link.Path{"198.18.0.1": refused("no route")})
	check(link.Query{Source: netip.MustParseAddr("10.0.0.2")}, map[string]link.Path{"203.0.113.1": sent("eth0", 1400, false), "203.0.113.102": refused("blackhole")})

	run(t, "nsenter --net="+namespacePath()+" sh -ec 'ip route add default via 192.0.2.254; ip -6 route add default via 2001:db8::254'")
	for _, asked := range []bool{false, true} {
		check(link.Query{Source: v4, Default: asked}, map[string]link.Path{"100.64.0.1": sent("eth0", 1600, asked), "203.0.113.1": sent("eth0", 1400, false), "203.0.113.101": refused("unreachable")})
		check(link.Query{Source: v6, Default: asked}, map[string]link.Path{"2001:db8:3::1": sent("eth0", 1600, asked), "2001:db8:1::1": sent("eth0", 1500, false)})
	}
}
