package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/frrtest"
)

// twinLinks are links between the node and the middle, whose ends have one link-local address
// at each side, as a router with one MAC address for all of its ports has.
func (c *chain) twinLinks(names ...string) {
	c.t.Helper()
	for _, name := range names {
		for _, line := range []string{
			"-n MID link add UP address 02:00:00:00:00:01 type veth peer name UP address 02:00:00:00:01:01 netns NODE",
			"-n MID link set UP up", "-n NODE link set UP up",
		} {
			c.ip(strings.NewReplacer("NODE", c.node, "MID", c.mid, "UP", name).Replace(line))
		}
	}
}

var twins = []string{"up0", "up1"}

const (
	twinAddr = "fe80::ff:fe00:1"
	nodeTwin = "fe80::ff:fe00:101"
)

// Two links to a router that has one link-local address on all of its ports are two sessions,
// with next hops of their own.
func TestOneAddressOnTwoLinks(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	c.twinLinks(twins...)
	conf := "router bgp 65001\n bgp router-id 192.0.2.255\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n no bgp network import-check\n"
	families := map[string]string{"ipv4 unicast": "  network 10.0.0.2/32\n", "ipv6 unicast": "  network 2001:db8::2/128\n", "l2vpn evpn": ""}
	for _, l := range twins {
		conf += fmt.Sprintf(" neighbor %[1]s interface remote-as external\n neighbor %[1]s timers connect 1\n", l)
		for f := range families {
			families[f] += "  neighbor " + l + " activate\n"
		}
	}
	for f, lines := range families {
		conf += " address-family " + f + "\n" + lines + " exit-address-family\n"
	}
	r := frrtest.Start(t, c.mid, frrtest.Daemon{Name: "zebra"}, frrtest.Daemon{Name: "bgpd", Config: conf})
	cfg := nodeConfig(1)
	for _, l := range twins {
		cfg.Neighbors = append(cfg.Neighbors, Neighbor{Interface: l, ASN: 65001, Families: allFamilies, ConnectRetry: time.Second})
	}
	a := startSpeakerIn(t, c.node, cfg)
	k := key(1001, "10.10.0.0/24")
	a.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{k}, Unicast: prefixes("10.0.0.1/32", "2001:db8::1/128")})
	hops := twinAddr + "%up0 " + twinAddr + "%up1"
	want := fmt.Sprintf("10.0.0.2/32 %[1]s, 2001:db8::2/128 %[1]s", hops)
	eventually(t, "both sessions are up, each with its routes", func() bool {
		rep := a.do(childCommand{Status: true})
		return sessionsUp(rep, 2) && learned(sorted(rep)) == want
	})
	eventually(t, "the router has the routes of both", func() bool {
		return strings.Count(string(r.VTY("bgpd", "show bgp ipv4 unicast 10.0.0.1/32")), nodeTwin) >= 2
	})
	c.ip("-n " + c.mid + " link set up1 down")
	eventually(t, "one of them ends by itself, and its next hop goes", func() bool {
		rep := a.do(childCommand{Links: true, Status: true})
		st := rep.Status.Neighbors
		return st[0].State == stateEstablished && st[0].Flaps == 0 && st[1].State != stateEstablished &&
			learned(rep) == fmt.Sprintf("10.0.0.2/32 %[1]s, 2001:db8::2/128 %[1]s", twinAddr+"%up0")
	})
}

// The same of neighbours with configured addresses: connections that come in are told apart by
// their links, with a password too.
func TestOneAddressOnTwoLinksPassive(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	c.twinLinks(twins...)
	node, leaf := nodeConfig(1), listening(2, 179, "::")
	leaf.ASN = 65001
	for _, l := range twins {
		node.Neighbors = append(node.Neighbors, Neighbor{Address: netip.MustParseAddr(twinAddr + "%" + l), ASN: 65001, Families: allFamilies, Password: "s3cret", ConnectRetry: time.Second})
		leaf.Neighbors = append(leaf.Neighbors, Neighbor{Address: netip.MustParseAddr(nodeTwin + "%" + l), ASN: 64512, Families: allFamilies, Password: "s3cret", Passive: true})
	}
	b, a := startSpeakerIn(t, c.mid, leaf), startSpeakerIn(t, c.node, node)
	b.do(childCommand{Unicast: prefixes("10.0.0.2/32", "2001:db8::2/128")})
	want := fmt.Sprintf("10.0.0.2/32 %[1]s, 2001:db8::2/128 %[1]s", twinAddr+"%up0 "+twinAddr+"%up1")
	eventually(t, "both sessions are up at both ends", func() bool {
		ra, rb := a.do(childCommand{Status: true}), b.do(childCommand{Status: true})
		return sessionsUp(ra, 2) && sessionsUp(rb, 2) && learned(sorted(ra)) == want
	})
}

func sessionsUp(r childReport, n int) bool {
	up := 0
	for _, s := range r.Status.Neighbors {
		if s.State == stateEstablished && s.Missing == 0 {
			up++
		}
	}
	return up == n
}

// sorted has the next hops of what was learned in order.
func sorted(r childReport) childReport {
	for _, l := range r.Learned {
		slices.SortFunc(l.Hops, func(a, b underlay.Hop) int { return a.Neighbor.Compare(b.Neighbor) })
	}
	return r
}
