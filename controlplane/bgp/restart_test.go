package bgp

import (
	"regexp"
	"strings"
	"testing"
	"time"

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
	}{
		{"defaults", nil, `Long-lived Graceful Restart: advertised Route .*Graceful Restart Capability: advertised and received Remote Restart timer is 120 seconds Address families by peer: L2VPN EVPN\(not preserved\).* R bit: False N bit: True`},
		{"long-lived", func(c *Config, _ *Neighbor) { c.RestartTime, c.LongLivedTime = 77*time.Second, time.Hour },
			`Long-lived Graceful Restart: advertised and received Address families by peer: L2VPN EVPN .*Remote Restart timer is 77 seconds`},
		{"restarting", func(c *Config, _ *Neighbor) { c.Restarting = true },
			`Address families by peer: L2VPN EVPN\(preserved\).* R bit: True N bit: True`},
		{"off", func(c *Config, n *Neighbor) { n.NoGracefulRestart, c.LongLivedTime = true, time.Hour },
			`Long-lived Graceful Restart: advertised Route .*Graceful Restart Capability: advertised Graceful restart information`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newChain(t)
			f := c.frr(64512, neighbor(nodeAddr6, 64512), " bgp long-lived-graceful-restart stale-time 600")
			s := c.speaker(peerAddr6, 64512, tt.change)
			s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.10.0.0/24")}})
			eventually(t, "a session", s.established)
			var got string
			want := regexp.MustCompile(tt.want)
			eventually(t, "FRR shows what was agreed on", func() bool {
				got = strings.Join(strings.Fields(string(f.vtysh("show bgp neighbors "+nodeAddr6))), " ")
				return strings.Contains(got, "Established")
			})
			if !want.MatchString(got) {
				t.Errorf("want %s, FRR has\n%s", want, got)
			}
		})
	}
}

// The routes of a node that does not come back are kept for its restart time,
// then as long-lived stale ones, and go when that time is over too.
func TestLongLivedGracefulRestart(t *testing.T) {
	t.Parallel() // it mostly waits
	rr := startGoBGPDWith(t, 64512, longLived, longLivedFamily, "127.0.0.11", "127.0.0.12", "127.0.0.13")
	cfg := func(i byte, local string) Config {
		c := nodeConfig(i, rr.neighborFor(64512, local))
		c.RestartTime, c.LongLivedTime, c.PeerLinger = 2*time.Second, 8*time.Second, -1
		return c
	}
	a, b, other := startSpeaker(t, cfg(1, "127.0.0.11")), startSpeaker(t, cfg(2, "127.0.0.12")), startSpeaker(t, cfg(3, "127.0.0.13"))
	k, both := key(1001, "10.10.0.0/24"), key(1001, "2001:db8:10::/64")
	for s, keys := range map[*speaker][]intent.RouteKey{a: {k, both}, other: {both}, b: {}} {
		s.do(childCommand{Policies: []childPolicy{red}, Set: keys})
	}
	eventually(t, "b has both, one over two nodes", func() bool { return len(b.hops(k)) == 1 && len(b.hops(both)) == 2 })
	a.kill()
	eventually(t, "the reflector has lost the session", func() bool { return !rr.established("127.0.0.11") })
	eventually(t, "a long-lived stale path is used only where there is no other", func() bool {
		return len(b.hops(k)) == 1 && len(b.hops(both)) == 1 && b.hops(both)[0].VTEP == "192.0.2.3"
	})
	for _, r := range b.do(childCommand{Routes: true}).Routes {
		if want := r.NextHop.String() == "192.0.2.1"; r.Stale != want {
			t.Errorf("%s from %s: stale is %v", r.Prefix, r.NextHop, r.Stale)
		}
	}
	if n := b.deletes(); n != 0 {
		t.Errorf("b saw %d deletes", n)
	}
	eventually(t, "it goes after the long-lived time", func() bool { return b.hops(k) == nil })
	if len(b.hops(both)) != 1 {
		t.Errorf("the other node's path is %v", b.hops(both))
	}
}
