package bgp

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// GTSM over a router: packets arrive with 254. Whoever allows one hop only
// drops them, which its kernel counts; with two hops allowed there is a session.
func TestTTLSecurityOverARouter(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			for _, tt := range []struct {
				name       string
				ours, frrs uint8
				refusedBy  string // the end whose kernel drops
			}{
				{"both allow it", 2, 2, ""},
				{"we refuse", 1, 2, "node"},
				{"FRR refuses", 2, 1, "peer"},
			} {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					c := newChain(t)
					c.frr(64513, neighbor(f.node, 64512, "ttl-security hops "+string('0'+rune(tt.frrs))))
					s := c.speaker(f.peer, 64513, func(_ *Config, n *Neighbor) { n.TTLSecurity, n.HoldTime = tt.ours, 3*time.Second })
					if tt.refusedBy == "" {
						eventually(t, "a session", s.established)
						return
					}
					ns := map[string]string{"node": c.node, "peer": c.peer}[tt.refusedBy]
					eventually(t, "the kernel drops what came too far", func() bool { return c.counter(ns, "TCPMinTTLDrop") > "1" })
					// FRR tells its kernel only when it has taken a connection: messages that were
					// quicker make a session, which does not outlive its hold time.
					eventually(t, "there is no session", func() bool { return !s.established() })
					if tt.refusedBy == "node" {
						eventually(t, "the status names TTL security", func() bool {
							return strings.HasSuffix(s.neighbor().LastError, " or it is further away than TTL security allows")
						})
					}
				})
			}
		})
	}
}

// An eBGP neighbour behind a router needs multihop; an iBGP neighbour does not.
func TestMultihop(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := newChain(t)
			c.frr(64513, neighbor(f.node, 64512, "ebgp-multihop 2"))
			short := c.speaker(f.peer, 64513, nil)
			eventually(t, "the status says that it cannot connect", func() bool {
				// The router's ICMP error, or nothing when it sends too many of them.
				why := short.neighbor().LastError
				return why == "cannot connect: no route to host" ||
					why == "cannot connect: no answer, as when the neighbour is down or it wants a password or it is more than one hop away and multihop is off"
			})
			short.kill()
			far := c.speaker(f.peer, 64513, func(_ *Config, n *Neighbor) { n.MultihopTTL = 2 })
			eventually(t, "a session over two hops", far.established)
		})
	}
	t.Run("iBGP", func(t *testing.T) {
		t.Parallel()
		c := newChain(t)
		c.frr(64512, neighbor(nodeAddr4, 64512), neighbor(nodeAddr6, 64512))
		for _, f := range families {
			s := c.speaker(f.peer, 64512, nil)
			eventually(t, "an iBGP session over "+f.name, s.established)
			s.kill()
		}
	})
}

// TCP-MD5 with FRR: one password, another one, and one at one end only.
func TestPasswords(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := newChain(t)
			c.frr(64512, neighbor(f.node, 64512, "password s3cret"))
			right := c.speaker(f.peer, 64512, func(_ *Config, n *Neighbor) { n.Password = "s3cret" })
			eventually(t, "a session", right.established)
			if why := right.neighbor().LastError; why != "" {
				t.Errorf("the error of a session that came up at once is %q", why)
			}
			right.kill()
			for password, want := range map[string]string{
				"other": "cannot connect: no answer, as when the neighbour is down or it has another password",
				"":      "cannot connect: no answer, as when the neighbour is down or it wants a password",
			} {
				s := c.speaker(f.peer, 64512, func(_ *Config, n *Neighbor) { n.Password = password })
				eventually(t, "the status of the password "+password, func() bool { return s.neighbor().LastError == want })
				s.kill()
			}
		})
	}
}

// passive makes a speaker wait for its neighbour at addr.
func passive(addr string) func(*Config, *Neighbor) {
	return func(c *Config, n *Neighbor) {
		n.Passive = true
		c.ListenPort, c.ListenAddresses = 179, []netip.Addr{netip.MustParseAddr(addr)}
	}
}

// TTL security and TCP-MD5 hold for connections that the neighbour opens too.
func TestPassiveIsAsStrict(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		for _, tt := range []struct {
			name, counter string
			frr           []string
			wrong, right  func(*Neighbor)
		}{
			{"TTL", "TCPMinTTLDrop", []string{"ttl-security hops 2", "timers 3 9"}, // a connection left half open ends soon
				func(n *Neighbor) { n.TTLSecurity = 1 }, func(n *Neighbor) { n.TTLSecurity = 2 }},
			{"password", "TCPMD5Failure", []string{"password s3cret", "ebgp-multihop 2"},
				func(n *Neighbor) { n.Password, n.MultihopTTL = "other", 2 }, func(n *Neighbor) { n.Password, n.MultihopTTL = "s3cret", 2 }},
			{"no password", "TCPMD5Unexpected", []string{"password s3cret", "ebgp-multihop 2"},
				func(n *Neighbor) { n.MultihopTTL = 2 }, nil},
		} {
			t.Run(f.name+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				c := newChain(t)
				c.frr(64513, connecting(f.node, 64512, tt.frr...))
				start := func(change func(*Neighbor)) *speaker {
					return c.speaker(f.peer, 64513, func(cfg *Config, n *Neighbor) { passive(f.node)(cfg, n); change(n) })
				}
				s := start(tt.wrong)
				eventually(t, "the kernel drops what FRR sends", func() bool { return c.counter(c.node, tt.counter) != "0" })
				if s.established() {
					t.Error("there is a session all the same")
				}
				s.kill()
				if tt.right != nil {
					s = start(tt.right)
					eventually(t, "a session", s.established)
				}
			})
		}
	}
}

// A speaker that only connects out has no listening socket; one that listens
// does so where it is told, and takes sessions there.
func TestListen(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	// The BGP server's own loopback addresses are no way in from outside.
	listening := func() string {
		return strings.TrimSpace(c.run(c.node, "ss", "-Hltn", "not", "src", "127.179.0.0/16"))
	}
	c.frr(64512, connecting(nodeAddr4, 64512), connecting(nodeAddr6, 64512))
	off := c.speaker(peerAddr4, 64512, nil)
	eventually(t, "a session", off.established)
	if got := listening(); got != "" {
		t.Errorf("listen is off, and there is\n%s", got)
	}
	off.kill()
	for _, f := range families {
		s := c.speaker(f.peer, 64512, passive(f.node))
		eventually(t, "a session that FRR opened over "+f.name, s.established)
		want := netip.AddrPortFrom(netip.MustParseAddr(f.node), 179).String()
		if got := strings.Fields(listening()); len(got) != 5 || got[3] != want {
			t.Errorf("listens on %q, want %s alone", got, want)
		}
		s.kill()
	}
	refused := c.speaker(peerAddr4, 64512, func(_ *Config, n *Neighbor) { n.Port = 9 })
	eventually(t, "a closed port is named", func() bool {
		return refused.neighbor().LastError == "cannot connect: connection refused"
	})
	wrong := c.speaker(peerAddr4, 64512, func(_ *Config, n *Neighbor) { n.LocalAddress = netip.MustParseAddr("198.51.100.99") })
	eventually(t, "an address that is not the node's is named", func() bool {
		return strings.Contains(wrong.neighbor().LastError, "cannot assign requested address")
	})
}
