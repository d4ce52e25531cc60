package bgp

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What FRR received of graceful restart (RFC 4724, RFC 8538 and RFC 9494) is what
// is configured.
func TestRestartCapabilities(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Config, *Neighbor)
		want   string // of "show bgp neighbors", white space made one
		again  string // of the next session
	}{
		{"defaults", nil, `Long-lived Graceful Restart: advertised Route .*Graceful Restart Capability: advertised and received Remote Restart timer is 120 seconds Address families by peer: L2VPN EVPN\(not preserved\).* R bit: False N bit: True`,
			`Address families by peer: L2VPN EVPN\(preserved\).* R bit: False N bit: True`},
		{"long-lived", func(c *Config, _ *Neighbor) { c.RestartTime, c.LongLivedTime = 77*time.Second, time.Hour },
			`Long-lived Graceful Restart: advertised and received Address families by peer: L2VPN EVPN .*Remote Restart timer is 77 seconds`, ``},
		{"restarting", func(c *Config, _ *Neighbor) { c.Restarting = true },
			`Address families by peer: L2VPN EVPN\(preserved\).* R bit: True N bit: True`,
			`Address families by peer: L2VPN EVPN\(preserved\).* R bit: False N bit: True`},
		{"off", func(c *Config, n *Neighbor) { n.NoGracefulRestart, c.LongLivedTime = true, time.Hour },
			`Long-lived Graceful Restart: advertised Route .*Graceful Restart Capability: advertised Graceful restart information`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newChain(t)
			f := c.frr(64512, neighbor(nodeAddr6, 64512), " bgp long-lived-graceful-restart stale-time 600")
			s := c.speaker(peerAddr6, 64512, tt.change)
			s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.10.0.0/24")}})
			eventually(t, "a session", s.established)
			var got string
			want, again := regexp.MustCompile(tt.want), regexp.MustCompile(tt.again)
			shown := func() bool {
				got = strings.Join(strings.Fields(string(f.vtysh("show bgp neighbors "+nodeAddr6))), " ")
				return strings.Contains(got, "Established")
			}
			eventually(t, "FRR shows what was agreed on", shown)
			if !want.MatchString(got) {
				t.Errorf("want %s, FRR has\n%s", want, got)
			}
			if tt.again == "" {
				return
			}
			eventually(t, "FRR has the End-of-RIB", func() bool {
				return strings.Contains(string(f.vtysh("show bgp neighbors "+nodeAddr6)), "End-of-RIB received: L2VPN EVPN")
			})
			f.vtysh("clear bgp *")
			eventually(t, "the next session", func() bool { return s.neighbor().Flaps == 1 && s.established() && shown() })
			if !again.MatchString(got) {
				t.Errorf("want %s of the next session, FRR has\n%s", again, got)
			}
		})
	}
}

// The routes of a node are kept for its restart time, then as long-lived stale ones,
// which lose against all others; when it is back they are as before, and when it does
// not come back they go when that time is over too.
func TestLongLivedGracefulRestart(t *testing.T) {
	t.Parallel() // it mostly waits
	rr := startGoBGPDWith(t, 64512, gobgpdOptions{120, longLived, longLivedFamily}, "127.0.0.11", "127.0.0.12", "127.0.0.13")
	cfg := func(i byte, local string, longLived time.Duration) Config {
		c := nodeConfig(i, rr.neighborFor(64512, local))
		c.RestartTime, c.LongLivedTime = 2*time.Second, longLived
		return c
	}
	first := cfg(1, "127.0.0.11", time.Hour)
	a, b, other := startSpeaker(t, first), startSpeaker(t, cfg(2, "127.0.0.12", time.Hour)), startSpeaker(t, cfg(3, "127.0.0.13", time.Hour))
	k, both := key(1001, "10.10.0.0/24"), key(1001, "2001:db8:10::/64")
	begin := func() { a.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{k, both}}) }
	begin()
	other.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{both}})
	b.do(childCommand{Policies: []childPolicy{red}})
	twoWays := func() bool { return len(b.hops(k)) == 1 && len(b.hops(both)) == 2 }
	eventually(t, "b has both, one over two nodes", twoWays)
	die := func() {
		a.kill()
		eventually(t, "the reflector has lost the session", func() bool { return !rr.established("127.0.0.11") })
		eventually(t, "a long-lived stale path is used only where there is no other", func() bool {
			return len(b.hops(k)) == 1 && len(b.hops(both)) == 1 && b.hops(both)[0].VTEP == "192.0.2.3"
		})
	}
	// Each path says so in an update of its own.
	stale := func(from string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(b.do(childCommand{Routes: true}).Routes, func(r RouteInfo) bool { return r.Stale != (r.NextHop.String() == from) })
		}
	}
	die()
	eventually(t, "what the dead node announced is stale, and nothing else", stale("192.0.2.1"))
	first.Restarting, first.LongLivedTime = true, 4*time.Second
	a = startSpeaker(t, first)
	begin()
	eventually(t, "the node is back, and its path is as good as any", twoWays)
	eventually(t, "nothing is stale", stale(""))
	die()
	if n := b.deletes(); n != 0 {
		t.Errorf("b saw %d deletes", n)
	}
	eventually(t, "it goes after the long-lived time", func() bool { return b.hops(k) == nil })
	if st := b.do(childCommand{Status: true}).Status; st.Stale != 0 || len(b.hops(both)) != 1 {
		t.Errorf("the other node's path is %v, and status %+v", b.hops(both), st)
	}
}

// The other way round: a neighbour does not come back within its restart time. What it
// sent stays as long-lived stale and loses against another neighbour's worse route,
// but for what it asked not to be kept (NO_LLGR); it is as before when the neighbour is
// back, and goes for good when the long-lived time is over.
func TestNeighborIsLongInRestarting(t *testing.T) {
	t.Parallel() // it mostly waits
	// Long enough for it to come back within: the BGP server waits some five seconds.
	far := startGoBGPDWith(t, 64512, gobgpdOptions{2, longLived, strings.Replace(longLivedFamily, "3600", "12", 1)}, "127.0.0.14")
	good := startRawPeerAt(t, "127.0.0.5", wire.RF_EVPN)
	cfg := nodeConfig(4, far.neighborFor(64512, "127.0.0.14"), good.neighbor())
	cfg.LongLivedTime = time.Hour
	s := startSpeaker(t, cfg)
	s.do(childCommand{Policies: []childPolicy{red}})
	alone, both, not, later := key(1001, "10.10.0.0/24"), key(1001, "2001:db8:10::/64"), key(1001, "10.11.0.0/24"), key(1001, "10.12.0.0/24")
	worse := route(both.Prefix.String(), 3)
	worse[4] = attribute(flagTransitive, attrLocalPref, []byte{0, 0, 0, 1})
	announce := func() {
		far.announce(alone.Prefix.String())
		far.announce(both.Prefix.String())
	}
	announce()
	far.announce(not.Prefix.String(), "community", "65535:7") // NO_LLGR
	far.announce(later.Prefix.String())
	eventually(t, "a session with the other one", func() bool { return good.sessions() > 0 })
	good.send(wire.BGP_MSG_UPDATE, update(worse...))
	via := func(k intent.RouteKey) string {
		if h := s.hops(k); len(h) == 1 {
			return h[0].VTEP
		}
		return ""
	}
	const farVTEP, goodVTEP = "192.0.2.9", "192.0.2.7"
	fresh := func() bool { return via(alone) == farVTEP && via(both) == farVTEP }
	eventually(t, "all routes", func() bool {
		return fresh() && via(not) == farVTEP && s.do(childCommand{Status: true}).Status.Neighbors[1].Received == 1
	})
	far.kill()
	eventually(t, "it restarts, and all is kept", func() bool {
		n := s.neighbor()
		return n.State != stateEstablished && n.PeerRestarting && n.Received == 4 && fresh() && via(not) == farVTEP
	})
	eventually(t, "its time is over", func() bool { return via(both) == goodVTEP && s.hops(not) == nil })
	if n := s.neighbor(); via(alone) != farVTEP || n.Received != 3 || s.do(childCommand{Status: true}).Status.Stale != 0 {
		t.Errorf("%s leads to %q, status %+v", alone, via(alone), n)
	}
	for _, r := range s.do(childCommand{Routes: true}).Routes {
		if want := r.NextHop.String() == farVTEP; r.Stale != want {
			t.Errorf("%s from %s: stale is %v", r.Prefix, r.NextHop, r.Stale)
		}
	}
	far.start()
	announce()
	eventually(t, "it is back, and better again; what it has no more goes", func() bool { return fresh() && s.hops(later) == nil })
	far.kill()
	eventually(t, "the long-lived time is over", func() bool { return s.hops(alone) == nil && via(both) == goodVTEP })
	if st := s.do(childCommand{Status: true}).Status; st.Stale != 0 || st.Neighbors[0].Received != 0 || st.Imported != 1 {
		t.Errorf("status %+v", st)
	}
}

// A speaker that restarts has its sessions at once. A neighbour that keeps its routes gets
// them as they are announced, and End-of-RIB behind the last of them; one that keeps none
// gets the routes alone. The next session's End-of-RIB is not withheld.
func TestEndOfRIBComesBehindTheRoutes(t *testing.T) {
	t.Parallel()
	var peers []*rawPeer
	var neighbors []Neighbor
	for _, address := range []string{"127.0.0.1", "::1", "127.0.0.2"} {
		p := startRawPeerAt(t, address, wire.RF_EVPN)
		if len(peers) < 2 {
			p.offer(90, wire.NewCapGracefulRestart(false, true, 120, []*wire.CapGracefulRestartTuple{wire.NewCapGracefulRestartTuple(wire.RF_EVPN, true)}))
		}
		peers, neighbors = append(peers, p), append(neighbors, p.neighbor())
	}
	cfg := nodeConfig(1, neighbors...)
	cfg.Restarting = true
	s := startSpeaker(t, cfg)
	s.do(childCommand{Policies: []childPolicy{red}, Upserts: []intent.RouteKey{key(1001, "10.1.0.0/24")}})
	seen := func(p *rawPeer) (routes, ends int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.got - len(p.ends), len(p.ends)
	}
	for _, p := range peers {
		eventually(t, "a session with the first route", func() bool { routes, _ := seen(p); return p.sessions() == 1 && routes == 1 })
	}
	s.do(childCommand{Upserts: []intent.RouteKey{key(1001, "2001:db8:1::/64")}})
	for i, p := range peers {
		eventually(t, "the second route", func() bool { routes, _ := seen(p); return routes == 2 })
		if _, ends := seen(p); ends != 0 {
			t.Errorf("neighbour %d has End-of-RIB before all is announced", i)
		}
	}
	s.do(childCommand{Upserts: []intent.RouteKey{key(1001, "10.3.0.0/24")}})
	s.do(childCommand{Ready: true})
	eventually(t, "the third route", func() bool { routes, _ := seen(peers[2]); return routes == 3 })
	for i, p := range peers[:2] {
		eventually(t, "End-of-RIB", func() bool { _, ends := seen(p); return ends > 0 })
		p.mu.Lock()
		if p.ends[0] < 4 { // three routes are before it
			t.Errorf("neighbour %d has End-of-RIB as UPDATE %d", i, p.ends[0])
		}
		p.mu.Unlock()
	}
	peers[0].drop()
	eventually(t, "End-of-RIB of the next session", func() bool {
		routes, ends := seen(peers[0])
		return peers[0].sessions() == 2 && routes == 3 && ends == 1
	})
}

// A neighbour that asks for all routes again (ROUTE-REFRESH) while End-of-RIB is withheld gets
// the routes without it: FRR has End-of-RIB only when it has all routes.
func TestRefreshBeforeEndOfRIB(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct{ frr, node string }{"IPv4": {"127.0.0.1", "127.0.0.11"}, "IPv6": {"::1", "::1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFRR(t, 64512, []string{at.frr}, neighbor(at.node, 64512))
			cfg := nodeConfig(1, f.neighborFor(at.frr, 64512, at.node))
			cfg.Restarting = true
			s := startSpeaker(t, cfg)
			announce := func(prefix string) {
				s.do(childCommand{Upserts: []intent.RouteKey{key(1001, prefix)}})
			}
			has := func(prefixes ...string) bool {
				routes := f.routes()
				return !slices.ContainsFunc(prefixes, func(p string) bool { _, there := routes["192.0.2.1:7 "+p]; return !there })
			}
			ended := func() bool {
				return strings.Contains(string(f.vtysh("show bgp neighbors "+at.node)), "End-of-RIB received: L2VPN EVPN")
			}
			messages := func() (refreshes, updates int) {
				var all map[string]struct {
					MessageStats struct{ RouteRefreshSent, UpdatesRecv int }
				}
				if err := json.Unmarshal(f.vtysh("show bgp neighbors "+at.node+" json"), &all); err != nil {
					t.Logf("messages: %v", err)
				}
				return all[at.node].MessageStats.RouteRefreshSent, all[at.node].MessageStats.UpdatesRecv
			}
			s.do(childCommand{Policies: []childPolicy{red}})
			announce("10.1.0.0/24")
			announce("2001:db8:1::/64")
			eventually(t, "the first routes", func() bool { return has("10.1.0.0/24", "2001:db8:1::/64") })
			_, before := messages()
			f.vtysh("clear bgp l2vpn evpn " + at.node + " soft in")
			eventually(t, "FRR asks, and gets routes again", func() bool {
				refreshes, updates := messages()
				return refreshes == 1 && updates > before
			})
			announce("10.2.0.0/24") // behind all of the answer
			eventually(t, "a later route", func() bool { return has("10.2.0.0/24") })
			if ended() {
				t.Error("FRR has End-of-RIB before all is announced")
			}
			announce("2001:db8:2::/64")
			s.do(childCommand{Ready: true})
			eventually(t, "End-of-RIB", ended)
			if !has("10.1.0.0/24", "2001:db8:1::/64", "10.2.0.0/24", "2001:db8:2::/64") {
				t.Errorf("with End-of-RIB FRR has %v", f.routes())
			}
		})
	}
}
