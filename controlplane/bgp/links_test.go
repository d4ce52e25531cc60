package bgp

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/test/frrtest"
)

func TestRestsOn(t *testing.T) {
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	links := []underlay.Link{
		{Name: "lo", Index: 1, Carrier: true, Loopback: true, Prefixes: []netip.Prefix{p("10.0.0.0/8")}},
		{Name: "eth1", Index: 2, Carrier: true, Prefixes: []netip.Prefix{p("192.0.2.1/24"), p("2001:db8:1::1/64"), p("fe80::1/64")}},
		{Name: "eth2", Index: 3, Prefixes: []netip.Prefix{p("198.51.100.1/31"), p("2001:db8:2::1/64")}},
		{Name: "eth3", Index: 4, Carrier: true, Prefixes: []netip.Prefix{p("203.0.113.1/32")}},
		{Name: "docker0", Index: 5, Prefixes: []netip.Prefix{p("172.16.0.1/12"), p("2001:db8:d::1/48")}},
		{Name: "twin1", Index: 6, Prefixes: []netip.Prefix{p("100.64.0.1/24"), p("2001:db8:7::1/64")}},
		{Name: "twin2", Index: 7, Carrier: true, Prefixes: []netip.Prefix{p("100.64.0.2/24"), p("2001:db8:7::2/64")}},
		{Name: "dead1", Index: 8, Prefixes: []netip.Prefix{p("100.65.0.1/24"), p("2001:db8:8::1/64")}},
		{Name: "dead2", Index: 9, Prefixes: []netip.Prefix{p("100.65.0.2/24"), p("2001:db8:8::2/64")}},
	}
	eth1, several := sessionLink{name: "eth1", index: 2}, sessionLink{several: true}
	for _, tc := range []struct {
		name, local string
		n           Neighbor
		want        sessionLink
		down        bool
	}{
		{"external, IPv4", "192.0.2.1", Neighbor{Address: a("192.0.2.2"), ASN: 65001}, eth1, false},
		{"external, IPv6", "2001:db8:1::1", Neighbor{Address: a("2001:db8:1::2"), External: true}, eth1, false},
		{"no carrier", "198.51.100.1", Neighbor{Address: a("198.51.100.0"), ASN: 65001}, sessionLink{name: "eth2"}, true},
		{"no carrier, IPv6", "2001:db8:2::1", Neighbor{Address: a("2001:db8:2::2"), ASN: 65001}, sessionLink{name: "eth2"}, true},
		{"no carrier, no session yet", "", Neighbor{Address: a("198.51.100.0"), ASN: 65001}, sessionLink{}, false},
		{"no carrier, a route past it", "192.0.2.1", Neighbor{Address: a("172.16.5.2"), ASN: 65001}, sessionLink{}, false},
		{"no carrier, a route past it, IPv6", "2001:db8:1::1", Neighbor{Address: a("2001:db8:d:5::2"), ASN: 65001}, sessionLink{}, false},
		{"the lost one of two links", "100.64.0.1", Neighbor{Address: a("100.64.0.9"), ASN: 65001}, several, false},
		{"the other one, IPv6", "2001:db8:7::2", Neighbor{Address: a("2001:db8:7::9"), ASN: 65001}, several, false},
		{"both of two links", "100.65.0.2", Neighbor{Address: a("100.65.0.9"), ASN: 65001}, sessionLink{name: "dead1"}, true},
		{"both of two links, IPv6", "2001:db8:8::1", Neighbor{Address: a("2001:db8:8::9"), ASN: 65001}, sessionLink{name: "dead1"}, true},
		{"one hop by TTL security", "192.0.2.1", Neighbor{Address: a("192.0.2.2"), ASN: 65001, TTLSecurity: 1}, eth1, false},
		{"two hops by TTL security", "192.0.2.1", Neighbor{Address: a("192.0.2.2"), ASN: 65001, TTLSecurity: 2}, sessionLink{}, false},
		{"multihop", "192.0.2.1", Neighbor{Address: a("192.0.2.2"), ASN: 65001, MultihopTTL: 2}, sessionLink{}, false},
		{"internal", "192.0.2.1", Neighbor{Address: a("192.0.2.2"), ASN: 64512}, sessionLink{}, false},
		{"a loopback", "10.0.0.0", Neighbor{Address: a("10.0.0.2"), ASN: 65001}, sessionLink{}, false},
		{"a single address", "203.0.113.1", Neighbor{Address: a("203.0.113.1"), ASN: 65001}, sessionLink{}, false},
		{"link-local, internal too", "", Neighbor{Address: a("fe80::2%eth1"), ASN: 64512}, eth1, false},
		{"link-local, no carrier", "", Neighbor{Address: a("fe80::2%eth2"), ASN: 64512}, sessionLink{name: "eth2"}, true},
		{"link-local, no link", "", Neighbor{Address: a("fe80::2%eth9"), ASN: 64512}, sessionLink{name: "eth9"}, true},
	} {
		local, _ := netip.ParseAddr(tc.local)
		if got := tc.n.restsOn(64512, links, local); got != tc.want || (got.down() != "") != tc.down {
			t.Errorf("%s: %+v, %q", tc.name, got, got.down())
		}
	}
}

// A session goes on when one of two links with its network is lost, or another one comes, and ends
// with the last.
func TestTwoLinksOfOneNetwork(t *testing.T) {
	link := func(index int, carrier bool, prefix string) underlay.Link {
		return underlay.Link{Name: "eth" + string(rune('0'+index)), Index: index, Carrier: carrier, Prefixes: []netip.Prefix{netip.MustParsePrefix(prefix)}}
	}
	a := netip.MustParseAddr("192.0.2.9")
	s := &GoBGP{cfg: Config{ASN: 64512}, paths: pathChanges{wake: make(chan struct{}, 1)}}
	n := &neighborSync{config: Neighbor{Address: a, ASN: 65001}, established: true}
	s.sync = map[netip.Addr]*neighborSync{a: n}
	s.LinksChanged([]underlay.Link{link(1, true, "192.0.2.1/24")})
	s.sessionFrom(a, netip.MustParseAddr("192.0.2.1"))
	for _, step := range []struct {
		what       string
		one, two   bool
		lost, held bool
	}{
		{"another link", true, true, false, false},
		{"the first is lost", false, true, false, false},
		{"and is back", true, true, false, false},
		{"both are lost", false, false, false, true},
		{"one is back", false, true, false, false},
	} {
		s.LinksChanged([]underlay.Link{link(1, step.one, "192.0.2.1/24"), link(2, step.two, "192.0.2.2/24")})
		if lost := s.takeLinksLocked(); len(lost) > 0 != step.lost || n.held() != step.held {
			t.Errorf("%s: lost %v, held %q", step.what, lost, n.holds())
		}
	}
}

// Sessions on a link end with it, and come up on the link that is made again; one with a
// neighbour's loopback stays. The hold time would end them after minutes.
func TestSessionsEndWithTheirLink(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	// up0 has no addresses; eth0 of the chain has them of both families.
	c.twinLinks("up0")
	c.ip("-n " + c.mid + " addr add 10.0.0.9/32 dev lo")
	c.ip("-n " + c.node + " addr add 10.0.0.1/32 dev lo")
	up1 := strings.NewReplacer("NODE", c.node, "MID", c.mid)
	for _, line := range []string{"-n MID link add up1 type veth peer name up1 netns NODE", "-n MID link set up1 up", "-n NODE link set up1 up",
		"-n MID addr add 192.0.2.1/31 dev up1", "-n NODE addr add 192.0.2.0/31 dev up1",
		"-n NODE route add 10.0.0.9/32 via 192.0.2.1 src 10.0.0.1", "-n MID route add 10.0.0.1/32 via 192.0.2.0 src 10.0.0.9"} {
		c.ip(up1.Replace(line))
	}
	conf := "router bgp 65001\n bgp router-id 192.0.2.255\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n" +
		" neighbor up0 interface remote-as external\n neighbor 198.51.100.1 remote-as external\n neighbor 2001:db8:51::1 remote-as external\n" +
		" neighbor 10.0.0.1 remote-as external\n neighbor 10.0.0.1 ebgp-multihop 3\n neighbor 10.0.0.1 update-source 10.0.0.9\n" +
		" address-family l2vpn evpn\n  neighbor up0 activate\n  neighbor 198.51.100.1 activate\n  neighbor 2001:db8:51::1 activate\n  neighbor 10.0.0.1 activate\n exit-address-family\n"
	frrtest.Start(t, c.mid, frrtest.Daemon{Name: "zebra"}, frrtest.Daemon{Name: "bgpd", Config: conf})
	eth0, eth06, loopback := netip.MustParseAddr("198.51.100.254"), netip.MustParseAddr("2001:db8:51::fe"), netip.MustParseAddr("10.0.0.9")
	cfg := nodeConfig(1, Neighbor{Interface: "up0", ASN: 65001, ConnectRetry: time.Second, HoldTime: 3 * time.Hour},
		Neighbor{Address: eth0, ASN: 65001, ConnectRetry: time.Second, HoldTime: 3 * time.Hour},
		Neighbor{Address: eth06, ASN: 65001, ConnectRetry: time.Second, HoldTime: 3 * time.Hour},
		Neighbor{Address: loopback, ASN: 65001, MultihopTTL: 3, LocalAddress: netip.MustParseAddr("10.0.0.1"), ConnectRetry: time.Second, HoldTime: 3 * time.Hour})
	a := startSpeakerIn(t, c.node, cfg)
	neighbors := func() []NeighborStatus { return a.do(childCommand{Links: true, Status: true}).Status.Neighbors }
	states := func(want ...bool) func() bool {
		return func() bool {
			for i, n := range neighbors() {
				if (n.State == stateEstablished) != want[i] {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "all sessions are up", states(true, true, true, true))
	begin := time.Now()
	c.ip("-n " + c.node + " link del up0")
	c.ip("-n " + c.node + " link set eth0 down")
	eventually(t, "the sessions on the links have ended", states(false, false, false, true))
	t.Logf("ended after %s", time.Since(begin).Round(time.Millisecond))
	for i, link := range []string{"up0", "eth0", "eth0"} {
		if why := neighbors()[i].LastError; !strings.Contains(why, "its link "+link+" is down") {
			t.Errorf("of %s: %s", link, why)
		}
	}
	c.twinLinks("up0")
	c.ip("-n " + c.node + " link set eth0 up")
	c.ip("-n " + c.node + " addr replace 2001:db8:51::1/64 dev eth0 nodad")
	eventually(t, "the sessions are up again", states(true, true, true, true))
	t.Logf("up again after %s", time.Since(begin).Round(time.Millisecond))
	for i, want := range []uint32{1, 1, 1, 0} {
		if n := neighbors()[i]; n.Flaps != want {
			t.Errorf("%s was lost %d times", n.Name(), n.Flaps)
		}
	}
}
