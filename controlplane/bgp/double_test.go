package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Two nodes have one VTEP, or one router ID, behind a route reflector: the server of neither
// ever shows the other's routes. Each is told who the other one is, and a third node names
// both.
func TestDoublesBehindAReflector(t *testing.T) {
	t.Parallel()
	first := netip.MustParseAddr("192.0.2.1")
	for name, tt := range map[string]struct {
		clone func(*Config)
		twin  func(Status) []Identity // at each of the two
		third func(Sightings) string
	}{
		"one VTEP": {
			func(c *Config) { c.VTEP4, c.RouterID = first, netip.MustParseAddr("192.0.2.2") },
			func(s Status) []Identity { return s.SameVTEP },
			func(s Sightings) string {
				var ids []netip.Addr
				for _, n := range s.VTEPs[first] {
					ids = append(ids, n.RouterID)
				}
				return fmt.Sprint(ids)
			},
		},
		"one router ID": {
			func(c *Config) { c.RouterID = first },
			func(s Status) []Identity { return s.SameRouterID },
			func(s Sightings) string { return fmt.Sprint(s.RDs["192.0.2.1:7"]) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client), neighbor("127.0.0.13", 64512, client))
			var nodes []*speaker
			for i := byte(1); i <= 3; i++ {
				c := nodeConfig(i, rr.neighborFor("127.0.0.1", 64512, fmt.Sprintf("127.0.0.1%d", i)))
				if i == 2 {
					tt.clone(&c)
				}
				s := startSpeaker(t, c)
				s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, fmt.Sprintf("10.%d.0.0/24", i)), key(1001, fmt.Sprintf("2001:db8:%d::/64", i))}})
				nodes = append(nodes, s)
			}
			eventually(t, "the third node names both", func() bool {
				return tt.third(nodes[2].do(childCommand{Status: true}).Seen) == "[192.0.2.1 192.0.2.2]"
			})
			for i, s := range nodes[:2] {
				other := netip.AddrFrom4([4]byte{192, 0, 2, byte(2 - i)})
				eventually(t, "a twin names the other one", func() bool {
					return slices.ContainsFunc(tt.twin(*s.do(childCommand{Status: true}).Status), func(o Identity) bool {
						return o.RouterID == other && o.VTEP == first || o.RouterID == first && o.VTEP == other
					})
				})
			}
			nodes[1].do(childCommand{Set: []intent.RouteKey{}})
			eventually(t, "nothing is left of it", func() bool { return len(tt.twin(*nodes[0].do(childCommand{Status: true}).Status)) == 0 })
		})
	}
}
