package bgp

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A link-local neighbour whose interface comes later is waited for and stops no
// other; its session comes back after a prefix limit, as any other does.
func TestLinkLocalNeighbor(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	rr := c.frr(64512, neighbor(nodeAddr4, 64512))
	cfg := nodeConfig(1,
		Neighbor{Address: netip.MustParseAddr("fe80::2%late0"), ASN: 64512, MaxPrefixes: 5, ConnectRetry: time.Second},
		rr.neighborFor(peerAddr4, 64512, ""))
	cfg.PrefixLimitRetry = time.Second
	a := startSpeakerIn(t, c.node, cfg)
	a.do(childCommand{Policies: []childPolicy{red}})
	unnumbered := func() NeighborStatus { return a.do(childCommand{Status: true}).Status.Neighbors[0] }
	eventually(t, "the other session is up", func() bool { return a.do(childCommand{Status: true}).Status.Neighbors[1].State == stateEstablished })
	eventually(t, "the status says what is missing", func() bool {
		return strings.HasPrefix(unnumbered().LastError, "cannot be set up: ") && strings.Contains(unnumbered().LastError, "interface late0: ") &&
			strings.Contains(unnumbered().LastError, "no such network interface")
	})

	for _, line := range []string{
		"-n MID link add late type veth peer name late0 netns NODE",
		"-n MID link set late addrgenmode none", "-n NODE link set late0 addrgenmode none",
		"-n MID addr add fe80::2/64 dev late nodad", "-n NODE addr add fe80::1/64 dev late0 nodad",
		"-n MID link set late up", "-n NODE link set late0 up",
	} {
		c.ip(strings.NewReplacer("NODE", c.node, "MID", c.mid).Replace(line))
	}
	leaf := listening(2, 179, "::")
	leaf.Neighbors = []Neighbor{{Address: netip.MustParseAddr("fe80::1%late"), ASN: 64512, Passive: true}}
	b := startSpeakerIn(t, c.mid, leaf)
	b.do(childCommand{Policies: []childPolicy{red}, Fill: 50})
	eventually(t, "the session ends by its limit", func() bool { return unnumbered().State == "prefix-limit" })
	k := key(1001, "10.10.0.0/24")
	b.do(childCommand{Set: []intent.RouteKey{k}})
	eventually(t, "it comes back", func() bool { n := unnumbered(); return n.State == stateEstablished && n.Flaps > 0 && a.hops(k) != nil })
	if st := unnumbered(); st.Address.String() != "fe80::2%late0" || !st.EndOfRIB || st.Received != 1 {
		t.Errorf("status %+v", st)
	}
}
