package bgp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A node that is drained says so in each route, in the form that others read: over
// iBGP and eBGP.
func TestGracefulShutdownOnTheWire(t *testing.T) {
	for _, prefix := range []string{"10.10.0.0/24", "2001:db8::1/128"} {
		for _, source := range []uint32{64512, 65001} {
			s := sample(prefix, "192.0.2.1")
			s.shutdown = true
			p, err := decodePath(received(t, encodePath(s, false), source), 64512)
			if err != nil {
				t.Fatal(err)
			}
			if !p.rank.shutdown || p.rank.localPref != 0 || p.check(func(netip.Addr) bool { return false }) != "" {
				t.Errorf("%s came back as %+v", prefix, p)
			}
		}
	}
}

// While a node is drained its paths are used only where there is no other, also
// those that it announces meanwhile; afterwards they are as good as the others.
func TestGracefulShutdown(t *testing.T) {
	t.Parallel()
	rr := startGoBGPD(t, 64512, "127.0.0.11", "127.0.0.12", "127.0.0.13")
	node := func(i byte, local string) *speaker {
		return startSpeaker(t, nodeConfig(i, rr.neighborFor(64512, local)))
	}
	a, other, b := node(1, "127.0.0.11"), node(2, "127.0.0.12"), node(3, "127.0.0.13")
	alone, both, later := key(1001, "10.10.0.0/24"), key(1001, "2001:db8:10::/64"), key(1001, "10.11.0.0/24")
	for s, keys := range map[*speaker][]intent.RouteKey{a: {alone, both}, other: {both, later}, b: {}} {
		s.do(childCommand{Policies: []childPolicy{red}, Set: keys})
	}
	eventually(t, "b has both, one over two nodes", func() bool { return len(b.hops(alone)) == 1 && len(b.hops(both)) == 2 })
	on, off := true, false
	a.do(childCommand{Shutdown: &on})
	eventually(t, "b uses the other node", func() bool { return len(b.hops(both)) == 1 && b.hops(both)[0].VTEP == "192.0.2.2" })
	if len(b.hops(alone)) != 1 {
		t.Error("the route without another path is gone")
	}
	a.do(childCommand{Upserts: []intent.RouteKey{later}})
	eventually(t, "b has the third route from both", func() bool {
		n := 0
		for _, r := range b.do(childCommand{Routes: true}).Routes {
			if r.Prefix == later.Prefix {
				n++
			}
		}
		return n == 2
	})
	if h := b.hops(later); len(h) != 1 || h[0].VTEP != "192.0.2.2" {
		t.Errorf("what is announced while draining is used: %v", h)
	}
	if n := b.deletes(); n != 0 {
		t.Errorf("b saw %d deletes", n)
	}
	a.do(childCommand{Shutdown: &off})
	eventually(t, "b uses both again", func() bool { return len(b.hops(both)) == 2 && len(b.hops(later)) == 2 })
}

// The routes of a node that is drained go with their withdrawal, the last one too.
func TestDrainedNodeDoesNotLinger(t *testing.T) {
	s := newScene(t, 30*time.Second)
	for _, drained := range []bool{false, true} {
		p := scenePath("A", "10.0.0.1/32", false)
		p.rank.shutdown = drained
		s.rib.apply(p, epoch)
		s.settle(epoch)
		s.rib.apply(scenePath("A", "10.0.0.1/32", true), epoch)
		s.settle(epoch)
		if _, there := s.shown[key(1001, "10.0.0.1/32")]; there == drained {
			t.Errorf("drained: %t, and the route is there: %t", drained, there)
		}
	}
}
