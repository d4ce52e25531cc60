package bgp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func key(vni intent.VNI, prefix string) intent.RouteKey {
	return intent.NewRouteKey(vni, netip.MustParsePrefix(prefix))
}

// nodeConfig is node i of AS 64512, with the VTEP 192.0.2.i.
func nodeConfig(i byte, neighbors ...Neighbor) Config {
	return Config{ASN: 64512, SystemID: string('a' + rune(i)), VTEP4: netip.AddrFrom4([4]byte{192, 0, 2, i}), Neighbors: neighbors}
}

var v4 = []string{"127.0.0.1"}

var red = childPolicy{VNI: 1001, Index: 7, Export: []string{"64512:1001", "64512:5"}, Auto: true}

func TestRoutesThroughRouteReflector(t *testing.T) {
	rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client))
	a := startSpeaker(t, nodeConfig(1, rr.neighborFor("127.0.0.1", 64512, "127.0.0.11")))
	b := startSpeaker(t, nodeConfig(2, rr.neighborFor("127.0.0.1", 64512, "127.0.0.12")))
	b.do(childCommand{Policies: []childPolicy{red}})
	a.do(childCommand{Policies: []childPolicy{red}})
	prefixes := []string{"10.10.0.5/32", "10.10.0.0/24", "0.0.0.0/0", "2001:db8:10::5/128", "2001:db8:10::/64", "::/0"}
	var keys []intent.RouteKey
	for _, p := range prefixes {
		keys = append(keys, key(1001, p))
	}
	a.do(childCommand{Set: keys})
	want := []childHop{{"192.0.2.1", 1001, RouterMAC("b").String()}}
	for _, k := range keys {
		eventually(t, "b imports "+k.String(), func() bool { return slices.Equal(b.hops(k), want) })
		eventually(t, "FRR shows "+k.String(), func() bool {
			p, ok := rr.routes()["192.0.2.1:7 "+k.Prefix.String()]
			return ok && p.Valid && p.VNI == "1001" && p.tag == 0 && p.Nexthops[0].IP == "192.0.2.1" &&
				p.ExtendedCommunity.String == "RT:64512:5 RT:64512:1001 ET:8 Rmac:"+RouterMAC("b").String()
		})
	}
	eventually(t, "both are in sync", func() bool { return a.synced() && b.synced() })
	checkListing(t, rr, a, b, len(keys))
	a.do(childCommand{Deletes: keys[:1]})
	eventually(t, "the withdrawal arrives", func() bool { return b.hops(keys[0]) == nil && b.hops(keys[1]) != nil })
	a.do(childCommand{Set: []intent.RouteKey{}})
	eventually(t, "all is withdrawn", func() bool { return len(rr.routes()) == 0 })
	// All that a had went at once, as it does with a lost session.
	eventually(t, "b keeps nothing but what lingers", func() bool {
		st := b.do(childCommand{Status: true}).Status
		return st.Imported == st.Stale && st.VTEPs == 1 && st.Neighbors[0].State == stateEstablished && st.Neighbors[0].EndOfRIB
	})
}

// checkListing: what people are shown of n routes from a to b.
func checkListing(t *testing.T, rr *frr, a, b *speaker, n int) {
	t.Helper()
	sent, got := a.do(childCommand{Routes: true}).Routes, b.do(childCommand{Routes: true}).Routes
	if len(sent) != n || len(got) != n || len(rr.routes()) != n {
		t.Fatalf("%d routes sent and %d received, FRR has %d; want %d", len(sent), len(got), len(rr.routes()), n)
	}
	for i := range sent {
		want := sent[i].Status()
		if want.Direction != "out" || want.RD != "192.0.2.1:7" || !slices.Equal(want.Targets, []string{"64512:5", "64512:1001"}) {
			t.Errorf("sent %+v", want)
		}
		want.Direction, want.Neighbor = "in", netip.MustParseAddr("127.0.0.1")
		if diff := cmp.Diff(want, got[i].Status(), cmp.Comparer(func(x, y netip.Addr) bool { return x == y }),
			cmp.Comparer(func(x, y netip.Prefix) bool { return x == y })); diff != "" {
			t.Errorf("received and sent differ: %s", diff)
		}
	}
	if st := a.do(childCommand{Status: true}).Status; st.Neighbors[0].Sent != n {
		t.Errorf("%d routes count as sent", st.Neighbors[0].Sent)
	}
	for _, end := range []struct{ src, dst string }{{"10.20.0.5", "10.10.0.5"}, {"2001:db8:20::5", "2001:db8:10::5"}} {
		q := status.Query{VRF: 1001, Src: netip.MustParseAddr(end.src), Dst: netip.MustParseAddr(end.dst)}
		steps := b.do(childCommand{Explain: &q}).Steps
		if last := steps[len(steps)-1]; !last.Found || !strings.Contains(last.Detail, "192.0.2.1 vni 1001") || !strings.Contains(last.Detail, "learned from 127.0.0.1") {
			t.Errorf("explain at b: %+v", last)
		}
		q.Src, q.Dst = q.Dst, q.Src
		for _, s := range a.do(childCommand{Explain: &q}).Steps[:3] {
			if !s.Found {
				t.Errorf("explain at a: %+v", s)
			}
		}
	}
}

func TestWhySessionsEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512), neighbor("127.0.0.12", 64512))
	a := startSpeaker(t, nodeConfig(1, rr.neighborFor("127.0.0.1", 64512, "127.0.0.11")))
	b := startSpeaker(t, nodeConfig(2, rr.neighborFor("127.0.0.1", 65001, "127.0.0.12")))
	state := func(s *speaker) NeighborStatus { return s.do(childCommand{Status: true}).Status.Neighbors[0] }
	ends := func(s *speaker, how string) func() bool {
		return func() bool { return strings.Contains(state(s).LastError, how) }
	}
	eventually(t, "a session", func() bool { return state(a).State == stateEstablished })
	if why := state(a).LastError; why != "" {
		t.Errorf("a session that was never lost has the error %q", why)
	}
	eventually(t, "b learns that the AS number is another", ends(b, "as number mismatch expected 65001, received 64512"))
	rr.vtysh("clear bgp 127.0.0.11")
	eventually(t, "a learns of the reset", ends(a, "received from the neighbour: code 6(cease) subcode 4(administrative reset)"))
	eventually(t, "a's log has the reason", func() bool {
		return a.log.says("BGP session lost", "neighbor=127.0.0.1 ", "received from the neighbour: code 6(cease) subcode 4(administrative reset)")
	})
	eventually(t, "it comes back", func() bool { return state(a).State == stateEstablished })
	rr.kill()
	eventually(t, "a learns that the connection is gone", ends(a, "the connection was lost"))
	eventually(t, "a's log has that reason", func() bool {
		return a.log.says("BGP session lost", "neighbor=127.0.0.1 ", "the connection was lost")
	})
	eventually(t, "and why it does not come back", ends(a, "; since then: cannot connect: connection refused"))
}

func TestPassword(t *testing.T) {
	rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512, "password s3cret"))
	n := rr.neighborFor("127.0.0.1", 64512, "127.0.0.11")
	n.Password = "s3cret"
	a := startSpeaker(t, nodeConfig(1, n))
	a.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.10.0.0/24")}})
	eventually(t, "FRR has the route over TCP-MD5", func() bool { return len(rr.routes()) == 1 })
}

func TestTTLSecurity(t *testing.T) {
	// FRR's eBGP multihop sets the TTL that it sends: 254 is what a packet has
	// after one router.
	rr := startFRR(t, 64513, []string{"127.0.0.1", "::1"}, neighbor("127.0.0.11", 64512, "ttl-security hops 1"), neighbor("127.0.0.12", 64512, "ebgp-multihop 254"),
		neighbor("127.0.0.13", 64512, "ebgp-multihop 254"), neighbor("::1", 64512, "ebgp-multihop 254"))
	start := func(i byte, to, local string, hops uint8) *speaker {
		n := rr.neighborFor(to, 64513, local)
		n.TTLSecurity = hops
		s := startSpeaker(t, nodeConfig(i, n))
		s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.10.0.0/24")}})
		return s
	}
	start(1, "127.0.0.1", "127.0.0.11", 1)
	far := start(2, "127.0.0.1", "127.0.0.12", 1)
	start(3, "127.0.0.1", "127.0.0.13", 2)
	start(4, "::1", "", 2)
	eventually(t, "FRR has the routes over GTSM", func() bool { return len(rr.routes()) == 3 })
	if st := far.do(childCommand{Status: true}).Status.Neighbors[0]; st.State == "established" {
		t.Error("a neighbour further away than allowed has a session")
	}
}

func TestIPv6SessionAndVTEP(t *testing.T) {
	rr := startFRR(t, 64512, []string{"::1", "127.0.0.1"}, neighbor("::1", 64512, client), neighbor("127.0.0.12", 64512, client))
	cfg := nodeConfig(1, rr.neighborFor("::1", 64512, ""))
	cfg.VTEP4, cfg.VTEP6, cfg.RouterID = netip.Addr{}, netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1")
	a := startSpeaker(t, cfg)
	both := nodeConfig(2, rr.neighborFor("127.0.0.1", 64512, "127.0.0.12"))
	both.VTEP6 = netip.MustParseAddr("2001:db8::2")
	b := startSpeaker(t, both)
	b.do(childCommand{Policies: []childPolicy{red}})
	keys := []intent.RouteKey{key(1001, "10.10.0.0/24"), key(1001, "2001:db8:10::/64")}
	a.do(childCommand{Policies: []childPolicy{red}, Set: keys})
	want := []childHop{{"2001:db8::1", 1001, RouterMAC("b").String()}}
	for _, k := range keys {
		eventually(t, "b imports "+k.String(), func() bool { return slices.Equal(b.hops(k), want) })
		// FRR 8.4 prints no IPv6 next hop of EVPN routes; b's is what it reflected.
		if p := rr.routes()["192.0.2.1:7 "+k.Prefix.String()]; !p.Valid || p.VNI != "1001" {
			t.Errorf("FRR shows %+v", p)
		}
	}
}

func TestEBGPIsNoTransit(t *testing.T) {
	unchanged := "af:attribute-unchanged next-hop"
	leaf := startFRR(t, 65001, v4, neighbor("127.0.0.11", 64512, unchanged), neighbor("127.0.0.13", 64513, unchanged))
	other := startFRR(t, 65002, []string{"127.0.0.2"}, neighbor("127.0.0.11", 64512, unchanged))
	a := startSpeaker(t, nodeConfig(1, leaf.neighborFor("127.0.0.1", 65001, "127.0.0.11"), other.neighborFor("127.0.0.2", 65002, "127.0.0.11")))
	cfg := nodeConfig(3, leaf.neighborFor("127.0.0.1", 65001, "127.0.0.13"))
	cfg.ASN = 64513
	c := startSpeaker(t, cfg)
	// The automatic target of another AS.
	policy := childPolicy{VNI: 1001, Index: 9, Export: []string{"64513:1001"}, Auto: true}
	c.do(childCommand{Policies: []childPolicy{policy}, Set: []intent.RouteKey{key(1001, "10.20.0.0/24")}})
	a.do(childCommand{Policies: []childPolicy{red}})
	eventually(t, "a imports over eBGP", func() bool {
		return slices.Equal(a.hops(key(1001, "10.20.0.0/24")), []childHop{{"192.0.2.3", 1001, RouterMAC("d").String()}})
	})
	a.do(childCommand{Upserts: []intent.RouteKey{key(1001, "10.10.0.0/24")}})
	for _, f := range []*frr{leaf, other} {
		eventually(t, "both neighbours have a's route", func() bool {
			p, ok := f.routes()["192.0.2.1:7 10.10.0.0/24"]
			return ok && p.Nexthops[0].IP == "192.0.2.1" && p.Aspath.String == "64512"
		})
	}
	if n := len(other.routes()); n != 1 {
		t.Errorf("%d routes at the second neighbour: a passed one on", n)
	}
}

func TestECMPAndPreference(t *testing.T) {
	rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client), neighbor("127.0.0.13", 64512, client))
	k := key(1001, "10.10.0.5/32")
	var nodes []*speaker
	for i := byte(1); i <= 3; i++ {
		s := startSpeaker(t, nodeConfig(i, rr.neighborFor("127.0.0.1", 64512, "127.0.0.1"+string('0'+rune(i)))))
		s.do(childCommand{Policies: []childPolicy{red}})
		nodes = append(nodes, s)
	}
	nodes[0].do(childCommand{Upserts: []intent.RouteKey{k}})
	nodes[1].do(childCommand{Upserts: []intent.RouteKey{k}})
	first := childHop{"192.0.2.1", 1001, RouterMAC("b").String()}
	second := childHop{"192.0.2.2", 1001, RouterMAC("c").String()}
	eventually(t, "two next hops", func() bool { return slices.Equal(nodes[2].hops(k), []childHop{first, second}) })
	rr.vtysh("configure terminal\nroute-map preferred permit 1\nset local-preference 101\nexit\n" +
		"router bgp 64512\naddress-family l2vpn evpn\nneighbor 127.0.0.12 route-map preferred in")
	rr.vtysh("clear bgp l2vpn evpn 127.0.0.12 soft in")
	eventually(t, "the preferred one", func() bool { return slices.Equal(nodes[2].hops(k), []childHop{second}) })
	nodes[1].do(childCommand{Deletes: []intent.RouteKey{k}})
	eventually(t, "the other one", func() bool { return slices.Equal(nodes[2].hops(k), []childHop{first}) })
	nodes[2].do(childCommand{Policies: []childPolicy{{VNI: 1001, Index: 7, Import: []string{"64512:1"}}}})
	eventually(t, "no import", func() bool { return nodes[2].hops(k) == nil })
	nodes[2].do(childCommand{Policies: []childPolicy{{VNI: 1002, Index: 7, Import: []string{"64512:5"}}}})
	eventually(t, "import by configured target into another VRF", func() bool {
		return slices.Equal(nodes[2].hops(key(1002, "10.10.0.5/32")), []childHop{first})
	})
}

func TestGracefulRestartKeepsRoutes(t *testing.T) {
	t.Parallel() // it mostly waits
	rr := startGoBGPD(t, 64512, "127.0.0.11", "127.0.0.12")
	cfg := nodeConfig(1, rr.neighborFor(64512, "127.0.0.11"))
	a := startSpeaker(t, cfg)
	other := nodeConfig(2, rr.neighborFor(64512, "127.0.0.12"))
	other.PeerLinger = -1 // what stays does so by the reflector's graceful restart
	b := startSpeaker(t, other)
	b.do(childCommand{Policies: []childPolicy{red}})
	stays, goes := key(1001, "10.10.0.0/24"), key(1001, "2001:db8:10::/64")
	a.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{stays, goes}})
	eventually(t, "b has both", func() bool { return b.hops(stays) != nil && b.hops(goes) != nil })
	eventually(t, "both are in sync", func() bool { return a.synced() && b.synced() })
	a.kill()
	eventually(t, "the reflector has lost the session", func() bool { return !rr.established("127.0.0.11") })
	cfg.Restarting = true
	a = startSpeaker(t, cfg)
	a.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{stays}})
	eventually(t, "what is not announced again goes after End-of-RIB", func() bool { return b.hops(goes) == nil })
	b.mu.Lock()
	deleted := b.deleted
	b.mu.Unlock()
	if deleted != 1 || b.hops(stays) == nil {
		t.Errorf("b saw %d deletes, want only the one: the restart was not hitless", deleted)
	}
	a.stop()
	eventually(t, "a plain stop withdraws", func() bool { return b.hops(stays) == nil })
	if !a.log.says("level=INFO", "BGP session closed by this node's stop") || a.log.says("level=WARN") {
		t.Error("the stop is told as a loss of the session")
	}
}

func TestNeighborRestartKeepsImports(t *testing.T) {
	rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client))
	a := startSpeaker(t, nodeConfig(1, rr.neighborFor("127.0.0.1", 64512, "127.0.0.11")))
	cfg := nodeConfig(2, rr.neighborFor("127.0.0.1", 64512, "127.0.0.12"))
	b := startSpeaker(t, cfg)
	b.do(childCommand{Policies: []childPolicy{red}})
	k := key(1001, "10.10.0.0/24")
	a.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{k}})
	eventually(t, "b has it and is in sync", func() bool { return b.hops(k) != nil && b.synced() })
	rr.kill()
	eventually(t, "b knows that the neighbour restarts", func() bool {
		n := b.do(childCommand{Status: true}).Status.Neighbors[0]
		return n.State != "established" && n.PeerRestarting && !n.EndOfRIB && n.Synced && n.Received == 1
	})
	if b.hops(k) == nil {
		t.Error("the import did not stay")
	}
}

func TestLostPeerBehindReflector(t *testing.T) {
	t.Parallel() // it mostly waits
	const n = 2000
	rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client))
	cfg := nodeConfig(1, rr.neighborFor("127.0.0.1", 64512, "127.0.0.11"))
	a := startSpeaker(t, cfg)
	other := nodeConfig(2, rr.neighborFor("127.0.0.1", 64512, "127.0.0.12"))
	other.PeerLinger = 20 * time.Second // the start of a process on a busy machine takes its time
	b := startSpeaker(t, other)
	b.do(childCommand{Policies: []childPolicy{red}})
	start := func() {
		a.do(childCommand{Policies: []childPolicy{red}, Fill: n})
	}
	start()
	status := func() *Status { return b.do(childCommand{Status: true}).Status }
	eventually(t, "b imports all", func() bool { return status().Imported == n && b.synced() })

	a.kill()
	eventually(t, "the reflector has withdrawn a's routes and b keeps them", func() bool { return status().Stale == n })
	time.Sleep(2 * time.Second) // the node is down for this long
	cfg.Restarting = true
	a = startSpeaker(t, cfg)
	start()
	eventually(t, "all are announced again", func() bool { st := status(); return st.Stale == 0 && st.Neighbors[0].Received == n })
	if seen := b.deletes(); seen != 0 {
		t.Fatalf("b saw %d deletes: the restart was not hitless", seen)
	}

	one := key(1001, "10.0.0.0/32")
	before := time.Now()
	a.do(childCommand{Deletes: []intent.RouteKey{one}})
	eventually(t, "one withdrawal counts at once", func() bool { return b.deletes() == 1 && b.hops(one) == nil })
	if took := time.Since(before); took > other.PeerLinger/2 {
		t.Errorf("a single withdrawal took %s", took)
	}

	time.Sleep(batchTime) // what went just before is taken for the same batch
	a.kill()
	eventually(t, "b keeps the routes", func() bool { return status().Stale == n-1 })
	if seen := b.deletes(); seen != 1 {
		t.Errorf("b saw %d deletes before the linger was over", seen-1)
	}
	eventually(t, "they go after the linger", func() bool { return b.deletes() == n && status().Imported == 0 })
}

func TestMaxPrefixes(t *testing.T) {
	t.Parallel() // it mostly waits
	rr := startFRR(t, 64512, v4, neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client))
	a := startSpeaker(t, nodeConfig(1, rr.neighborFor("127.0.0.1", 64512, "127.0.0.11")))
	n := rr.neighborFor("127.0.0.1", 64512, "127.0.0.12")
	n.MaxPrefixes = 5
	cfg := nodeConfig(2, n)
	cfg.PrefixLimitRetry = 1e9
	b := startSpeaker(t, cfg)
	b.do(childCommand{Policies: []childPolicy{red}})
	a.do(childCommand{Policies: []childPolicy{red}, Fill: 50})
	state := func() string { return b.do(childCommand{Status: true}).Status.Neighbors[0].State }
	eventually(t, "the session ends", func() bool { return state() == "prefix-limit" })
	eventually(t, "the status says why", func() bool { return b.neighbor().LastError == "the neighbour sent more than 5 routes" })
	// GoBGP leaves the reason out of the Hard Reset (RFC 8538 section 3.1).
	eventually(t, "FRR was told to forget our routes", func() bool {
		return strings.Contains(string(rr.vtysh("show bgp neighbors 127.0.0.12")), "Cease/Hard Reset")
	})
	a.do(childCommand{Set: []intent.RouteKey{key(1001, "10.10.0.0/24")}})
	eventually(t, "it comes back by itself", func() bool { return state() == "established" && b.hops(key(1001, "10.10.0.0/24")) != nil })
}
