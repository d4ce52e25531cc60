package bgp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

const allFamilies = FamilyEVPN | FamilyIPv4 | FamilyIPv6

// Two speakers on a link without addresses, of different AS, exchange prefixes of
// both families and Type-5 routes; a router that takes the place of another is
// followed, and one in the node's own AS is refused.
func TestUnnumbered(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	link := func(last int) {
		for _, line := range []string{
			"-n MID link add up0 address 02:00:00:00:00:%02x type veth peer name up0 address 02:00:00:00:01:%02x netns NODE",
			"-n MID link set up0 up", "-n NODE link set up0 up",
		} {
			line = strings.NewReplacer("NODE", c.node, "MID", c.mid, "%02x", fmt.Sprintf("%02x", last)).Replace(line)
			c.ip(line)
		}
	}
	link(1)
	// An AS number that is configured: the BGP server races with itself when a
	// session without one ends.
	unnumbered := Neighbor{Interface: "up0", ASN: 65001, Families: allFamilies, ConnectRetry: time.Second, HoldTime: 3 * time.Second}
	a := startSpeakerIn(t, c.node, nodeConfig(1, unnumbered))
	leaf := listening(2, 179, "::")
	leaf.ASN, leaf.Neighbors = 65001, []Neighbor{{Interface: "up0", External: true, Families: allFamilies, ConnectRetry: time.Second}}
	b := startSpeakerIn(t, c.mid, leaf)

	k := key(1001, "10.10.0.0/24")
	b.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{k}, Unicast: prefixes("10.0.0.2/32", "2001:db8::2/128", "0.0.0.0/0")})
	a.do(childCommand{Policies: []childPolicy{red}, Unicast: prefixes("10.0.0.1/32", "2001:db8::1/128")})
	hop := func(mac string) string { return "fe80::ff:fe00:" + mac + "%up0" }
	eventually(t, "the routes are there", func() bool {
		ra, rb := a.do(childCommand{}), b.do(childCommand{})
		return learned(ra) == fmt.Sprintf("0.0.0.0/0 %[1]s, 10.0.0.2/32 %[1]s, 2001:db8::2/128 %[1]s", hop("1")) &&
			learned(rb) == fmt.Sprintf("10.0.0.1/32 %[1]s, 2001:db8::1/128 %[1]s", hop("101")) && ra.Unicast && rb.Unicast && a.hops(k) != nil
	})
	st := a.do(childCommand{Status: true}).Status
	if n := st.Neighbors[0]; n.Interface != "up0" || n.Address.String() != hop("1") || n.ASN != 65001 || n.UnicastReceived != 3 || n.Received != 1 || !st.InSync {
		t.Errorf("status %+v", n)
	}

	b.kill()
	c.ip("-n " + c.mid + " link del up0")
	link(3)
	third := listening(3, 179, "::")
	third.ASN, third.Neighbors = 65001, []Neighbor{{Interface: "up0", ASN: 64512, Families: allFamilies, ConnectRetry: time.Second}}
	d := startSpeakerIn(t, c.mid, third)
	d.do(childCommand{Unicast: prefixes("10.0.0.3/32")})
	eventually(t, "the new router is found, and what the old one sent is gone", func() bool {
		r := a.do(childCommand{Status: true})
		n := r.Status.Neighbors[0]
		return n.Address.String() == hop("3") && n.State == stateEstablished && learned(r) == "10.0.0.3/32 "+hop("3")
	})
}

// A neighbour of the node's own AS is none of an external one.
func TestExternalOnly(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	node, leaf := nodeConfig(1), listening(2, 179, "::")
	node.Neighbors = []Neighbor{{Address: netip.MustParseAddr("198.51.100.254"), External: true, Families: FamilyIPv4, ConnectRetry: time.Second}}
	leaf.Neighbors = []Neighbor{{Address: netip.MustParseAddr("198.51.100.1"), ASN: 64512, Families: FamilyIPv4, Passive: true}}
	a := startSpeakerIn(t, c.node, node)
	startSpeakerIn(t, c.mid, leaf)
	eventually(t, "it is refused for its AS", func() bool {
		n := a.do(childCommand{Status: true}).Status.Neighbors[0]
		return n.State != stateEstablished && strings.Contains(n.LastError, "own AS")
	})
}

// A link that comes late holds nobody up, and its neighbour counts as one that has
// not sent its routes.
func TestUnnumberedWaits(t *testing.T) {
	cfg := nodeConfig(1, Neighbor{Interface: "late0", External: true, Families: allFamilies})
	cfg.RestartTime = 2 * time.Second
	a := startSpeaker(t, cfg)
	r := a.do(childCommand{Status: true})
	if n := r.Status.Neighbors[0]; r.Unicast || r.Status.InSync || n.Address.IsValid() || !strings.Contains(n.LastError, "late0") && !strings.Contains(n.LastError, "no router") {
		t.Errorf("status %+v", n)
	}
	eventually(t, "the wait ends", func() bool { r := a.do(childCommand{Status: true}); return r.Unicast && r.Status.InSync })
}

func prefixes(words ...string) (out []netip.Prefix) {
	for _, w := range words {
		out = append(out, netip.MustParsePrefix(w))
	}
	return out
}

// learned words the prefixes with their hops, as they are to be installed.
func learned(r childReport) string {
	var words []string
	for _, l := range r.Learned {
		w := l.Prefix.String()
		for _, h := range l.Hops {
			w += " " + h.Neighbor.String()
			if h.Addr != h.Neighbor.WithZone("") && h.LinkLocal != h.Neighbor.WithZone("") {
				w += " by " + h.Addr.String()
			}
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}

// Prefixes come and go, over two neighbours as ECMP; what one does not send any
// more goes with it.
func TestUnicastECMP(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	node := nodeConfig(1)
	families := map[string]Families{"198.51.100.254": FamilyIPv4, "2001:db8:51::fe": FamilyIPv6}
	for addr, f := range families {
		node.Neighbors = append(node.Neighbors, Neighbor{Address: netip.MustParseAddr(addr), ASN: 65001, Families: f, ConnectRetry: time.Second})
	}
	leaf := listening(2, 179, "::")
	leaf.ASN = 65001
	leaf.Neighbors = []Neighbor{
		{Address: netip.MustParseAddr("198.51.100.1"), ASN: 64512, Families: FamilyIPv4, Passive: true},
		{Address: netip.MustParseAddr("2001:db8:51::1"), ASN: 64512, Families: FamilyIPv6, Passive: true},
	}
	a, b := startSpeakerIn(t, c.node, node), startSpeakerIn(t, c.mid, leaf)
	b.do(childCommand{Unicast: prefixes("10.0.0.2/32", "2001:db8::2/128")})
	eventually(t, "numbered neighbours, each with its family", func() bool {
		r := a.do(childCommand{})
		return learned(r) == "10.0.0.2/32 198.51.100.254, 2001:db8::2/128 2001:db8:51::fe" && r.Unicast
	})
	b.stop()
	eventually(t, "they are withdrawn", func() bool { return learned(a.do(childCommand{})) == "" })
}
