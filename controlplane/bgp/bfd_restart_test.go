package bgp

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// FRR keeps the prefixes of a node whose daemon goes without a word, although its
// BFD session is lost with it: the connection ends first.
func TestBFDLeavesGracefulRestartAlone(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	f := startFRRWithBFD(t, c.mid, 64513, neighbor(nodeAddr4, 64512, "bfd 10 100 100"), " address-family ipv4 unicast", "  neighbor "+nodeAddr4+" activate", " exit-address-family")
	cfg := nodeConfig(1, Neighbor{Address: netip.MustParseAddr("198.51.100.254"), ASN: 64513, ConnectRetry: time.Second, BFD: BFDFollow, Families: FamilyEVPN | FamilyIPv4})
	route := func() string { return string(f.vtysh("show bgp ipv4 unicast 10.0.0.1/32")) }
	s := withBFD(t, c.node, cfg)
	s.do(childCommand{Unicast: prefixes("10.0.0.1/32")})
	bfd := func(want string) bool { return strings.Contains(f.bfdPeers(), `"status":"`+want+`"`) }
	// FRR may make its BFD session anew once BGP is established, which costs the
	// first BGP session: BFD has to have been up all the while.
	eventually(t, "FRR has the prefix, and BFD is up", func() bool { return bfd("up") && strings.Contains(route(), "best") && bfd("up") })
	s.kill()
	eventually(t, "BFD is down", func() bool { return bfd("down") })
	if got := route(); !strings.Contains(got, "(stale)") || !strings.Contains(got, "best") {
		t.Fatalf("FRR has not kept the prefix: %s", got)
	}
	cfg.Restarting = true
	s = withBFD(t, c.node, cfg)
	s.do(childCommand{Unicast: prefixes("10.0.0.1/32"), Set: []intent.RouteKey{}})
	missing := ""
	eventually(t, "it is a fresh one again", func() bool {
		got := route()
		if !strings.Contains(got, "10.0.0.1/32") {
			missing = got
		}
		return strings.Contains(got, "best") && !strings.Contains(got, "(stale)")
	})
	if missing != "" {
		t.Errorf("it was gone meanwhile: %s", missing)
	}
}
