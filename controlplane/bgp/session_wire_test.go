package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// loopbacks are the address of a neighbour, of each family.
var loopbacks = []string{"127.0.0.1", "::1"}

// evpnRoute is an EVPN route of a type that Sluice does not use.
func evpnRoute(kind byte, size int) []byte {
	return append([]byte{kind, byte(size)}, make([]byte, size)...)
}

// sampleNLRI is a Type-5 route of the node that route() has.
func sampleNLRI(prefix string, index uint16) []byte {
	s := sample(prefix, "192.0.2.7")
	s.routerID, s.index, s.label = s.nextHop, index, 1001
	return encodeNLRI(s)
}

func unreach(nlri ...[]byte) []byte {
	return update(attribute(flagOptional, 15, slices.Concat(append([][]byte{{0, 25, 70}}, nlri...)...)))
}

// E1: routes of types that GoBGP does not know, withdrawn and announced together with ours,
// leave ours as they are meant.
func TestOtherRouteTypes(t *testing.T) {
	t.Parallel()
	for _, address := range loopbacks {
		for _, prefix := range []string{"10.70.0.0/16", "2001:db8:70::/48"} {
			t.Run(address+" "+prefix, func(t *testing.T) {
				t.Parallel()
				p := startRawPeerAt(t, address, gobgp.RF_EVPN)
				s := startSpeaker(t, nodeConfig(1, p.neighbor()))
				s.do(childCommand{Policies: []childPolicy{red}})
				eventually(t, "a session", s.established)
				k, marker := key(1001, prefix), 0
				// A marker comes behind: what stands before it has been read.
				mark := func() {
					marker++
					m := fmt.Sprintf("10.99.%d.0/24", marker)
					p.send(gobgp.BGP_MSG_UPDATE, update(route(m, 99)...))
					eventually(t, "marker", func() bool { return s.hops(key(1001, m)) != nil })
				}
				for kind := byte(6); kind < 12; kind++ {
					attrs := route(prefix, 1)
					attrs[1] = reach(slices.Concat(evpnRoute(kind, 40), sampleNLRI(prefix, 1), evpnRoute(3, 17)))
					p.send(gobgp.BGP_MSG_UPDATE, update(attrs...))
					mark()
					if s.hops(k) == nil {
						t.Errorf("type %d: the route beside it was not learned", kind)
					}
					p.send(gobgp.BGP_MSG_UPDATE, unreach(evpnRoute(kind, 40), sampleNLRI(prefix, 1)))
					mark()
					eventually(t, fmt.Sprintf("type %d: the route beside it is withdrawn", kind), func() bool { return s.hops(k) == nil })
				}
				if n := s.neighbor(); n.Ignored != 0 || n.Flaps != 0 || n.LastError != "" || n.Missing != 0 {
					t.Errorf("status %+v", n)
				}
			})
		}
	}
}

// E2: a route stays one, with what it says to us, whatever communities it carries beside.
func TestOtherCommunities(t *testing.T) {
	t.Parallel()
	p := startRawPeer(t, gobgp.RF_EVPN)
	s := startSpeaker(t, nodeConfig(1, p.neighbor()))
	s.do(childCommand{Policies: []childPolicy{red}})
	eventually(t, "a session", s.established)
	want := []childHop{{"192.0.2.7", 1001, "02:00:00:00:00:07"}}
	n := 0
	for _, kind := range []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0c, 0x40, 0x41, 0x42, 0x43, 0x46, 0x80, 0x81, 0x82, 0x85, 0x90, 0xff} {
		prefixes := make([]string, 0, 64)
		for _, subtype := range []byte{0, 1, 3, 4, 5, 8, 9, 0x0a, 0x0b, 0x0d, 0x10, 0x13, 0x15, 0x20, 0xff} {
			if kind == 6 && subtype == 3 {
				continue // the router MAC
			}
			prefixes = append(prefixes, fmt.Sprintf("10.%d.%d.0/24", kind, subtype))
			attrs := route(prefixes[len(prefixes)-1], 1)
			other := []byte{kind, subtype, 0, 1, 0xff, 0xff, 0xff, 0xfe}
			attrs[2] = attribute(flagOptional|flagTransitive, attrExtComms, slices.Concat(other, attrs[2][4:], other))
			p.send(gobgp.BGP_MSG_UPDATE, update(attrs...))
			n++
		}
		for _, prefix := range prefixes {
			eventually(t, "the route "+prefix, func() bool { return slices.Equal(s.hops(key(1001, prefix)), want) })
		}
	}
	if got := s.neighbor(); got.Flaps != 0 || got.Received != n || got.RejectedTotal[ReasonUnreadable] != 0 {
		t.Errorf("%d sent, status %+v", n, got)
	}
}

// restartBits are the R bit and the F bit of EVPN in the body of an OPEN.
func restartBits(t *testing.T, open []byte) (r, f bool) {
	t.Helper()
	var m gobgp.BGPOpen
	if err := m.DecodeFromBytes(open); err != nil {
		t.Fatal(err)
	}
	for _, p := range m.OptParams {
		for _, c := range p.(*gobgp.OptionParameterCapability).Capability {
			if g, ok := c.(*gobgp.CapGracefulRestart); ok {
				for _, tuple := range g.Tuples {
					f = f || tuple.AFI == gobgp.AFI_L2VPN && tuple.Flags&0x80 != 0
				}
				r = r || g.Flags&0x08 != 0
			}
		}
	}
	return r, f
}

// E5: every neighbour is told of the restart, however late it comes, until its session is up;
// that forwarding went on also over the loss of a session.
func TestEachNeighborIsToldOfARestart(t *testing.T) {
	t.Parallel()
	var peers []*rawPeer
	var neighbors []Neighbor
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		p := startRawPeerAt(t, address, gobgp.RF_EVPN)
		peers, neighbors = append(peers, p), append(neighbors, p.neighbor())
	}
	last := Neighbor{Address: netip.MustParseAddr("127.0.0.3"), ASN: 64512, Port: freePort(t, "127.0.0.3"), ConnectRetry: time.Second}
	cfg := nodeConfig(1, append(neighbors, last)...)
	cfg.Restarting = true
	s := startSpeaker(t, cfg)
	s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.1.0.0/24")}, Ready: true})
	for _, p := range peers {
		eventually(t, "a session with our route", func() bool { return p.sessions() == 1 && p.updates() > 0 })
	}
	late := startRawPeerOn(t, fmt.Sprintf("127.0.0.3:%d", last.Port), gobgp.RF_EVPN)
	eventually(t, "the late one's session", func() bool { return late.sessions() == 1 && late.updates() > 0 })
	late.drop()
	eventually(t, "its next session", func() bool { return late.sessions() == 2 })
	for i, p := range append(peers, late) {
		p.mu.Lock()
		for j, open := range p.opens {
			if r, f := restartBits(t, open); r != (j == 0) || !f {
				t.Errorf("neighbour %d, OPEN %d: R %t, F %t", i, j, r, f)
			}
		}
		p.mu.Unlock()
	}
}

// E7: a neighbour with a hold time of 0 sends no keepalives and gets none; its session lasts.
func TestHoldTimeZero(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, address := range loopbacks {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			p := startRawPeerAt(t, address, gobgp.RF_EVPN)
			p.offer(0)
			n := p.neighbor()
			n.HoldTime = 3 * time.Second
			s := startSpeaker(t, nodeConfig(1, n))
			s.do(childCommand{Policies: []childPolicy{red}})
			eventually(t, "a session", s.established)
			// Longer than twice our own hold time, with a route each way each second.
			for i := range 8 {
				ours, theirs := key(1001, fmt.Sprintf("10.1.%d.0/24", i)), fmt.Sprintf("10.2.%d.0/24", i)
				before := p.updates()
				s.do(childCommand{Upserts: []intent.RouteKey{ours}})
				p.send(gobgp.BGP_MSG_UPDATE, update(route(theirs, 1)...))
				eventually(t, "routes each way", func() bool { return p.updates() > before && s.hops(key(1001, theirs)) != nil })
				time.Sleep(time.Second)
			}
			p.mu.Lock()
			keepalives, sessions := p.keepalives, p.established
			p.mu.Unlock()
			if got := s.neighbor(); got.Flaps != 0 || got.State != stateEstablished || sessions != 1 || keepalives != 1 {
				t.Errorf("%d sessions, %d keepalives, status %+v", sessions, keepalives, got)
			}
		})
	}
}

// E6: routes of a neighbour are kept as its latest OPEN says, whatever an earlier one said.
func TestRestartThatIsNotOfferedAnyMore(t *testing.T) {
	t.Parallel()
	restart := func(notices bool, seconds uint16, families ...gobgp.RouteFamily) gobgp.ParameterCapabilityInterface {
		var tuples []*gobgp.CapGracefulRestartTuple
		for _, f := range families {
			tuples = append(tuples, gobgp.NewCapGracefulRestartTuple(f, true))
		}
		return gobgp.NewCapGracefulRestart(false, notices, seconds, tuples)
	}
	// GoBGP writes into what it encodes: each session has capabilities of its own.
	long := func() gobgp.ParameterCapabilityInterface {
		return gobgp.NewCapLongLivedGracefulRestart([]*gobgp.CapLongLivedGracefulRestartTuple{gobgp.NewCapLongLivedGracefulRestartTuple(gobgp.RF_EVPN, true, 3600)})
	}
	for i, tt := range []struct {
		name   string
		offers []gobgp.ParameterCapabilityInterface // in the second session
		said   []byte                               // before it goes
	}{
		{"neither, the connection is lost", nil, nil},
		{"neither, a NOTIFICATION", nil, []byte{6, 2}},
		{"no N bit, a NOTIFICATION", []gobgp.ParameterCapabilityInterface{restart(false, 600, gobgp.RF_EVPN), long()}, []byte{6, 2}},
		{"not EVPN, the connection is lost", []gobgp.ParameterCapabilityInterface{restart(true, 600)}, nil},
		{"no long-lived one, the connection is lost", []gobgp.ParameterCapabilityInterface{restart(true, 1, gobgp.RF_EVPN)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startRawPeerAt(t, fmt.Sprintf("127.0.0.%d", 21+i), gobgp.RF_EVPN)
			p.offer(90, restart(true, 600, gobgp.RF_EVPN), long())
			cfg := nodeConfig(1, p.neighbor())
			cfg.PeerLinger, cfg.LongLivedTime = -1, time.Hour
			s := startSpeaker(t, cfg)
			s.do(childCommand{Policies: []childPolicy{red}})
			eventually(t, "a session", s.established)
			p.offer(90, tt.offers...)
			p.drop()
			eventually(t, "the next session", func() bool { return p.sessions() == 2 && s.established() })
			k := key(1001, "10.0.0.0/24")
			p.send(gobgp.BGP_MSG_UPDATE, update(route("10.0.0.0/24", 1)...))
			eventually(t, "its route", func() bool { return s.hops(k) != nil })
			_ = p.l.Close()
			if tt.said != nil {
				p.send(gobgp.BGP_MSG_NOTIFICATION, tt.said)
			}
			p.drop()
			eventually(t, "the route goes with the session", func() bool { return s.hops(k) == nil })
			if n := s.neighbor(); n.Received != 0 || n.PeerRestarting {
				t.Errorf("status %+v", n)
			}
		})
	}
}

// What ends a session is told to the neighbour and in the status, and ends no other; an
// UPDATE that cannot be read is left out.
func TestMessagesThatEndASession(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		msg  []byte
		want string
		code [2]byte
	}{
		{message(77, nil), "unknown type 77", [2]byte{1, 3}},
		{make([]byte, 19), "marker", [2]byte{1, 1}},
		{message(gobgp.BGP_MSG_UPDATE, make([]byte, 5000)), "5019 bytes", [2]byte{1, 2}},
		{message(gobgp.BGP_MSG_UPDATE, []byte{0, 0, 255, 255}), "attributes are longer", [2]byte{3, 1}},
		{message(gobgp.BGP_MSG_OPEN, make([]byte, 10)), "second OPEN", [2]byte{5, 3}},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			good, p := startRawPeer(t, gobgp.RF_EVPN), startRawPeerAt(t, fmt.Sprintf("127.0.0.%d", 2+i), gobgp.RF_EVPN)
			s := startSpeaker(t, nodeConfig(1, good.neighbor(), p.neighbor()))
			s.do(childCommand{Policies: []childPolicy{red}})
			status := func() NeighborStatus { return s.do(childCommand{Status: true}).Status.Neighbors[1] }
			eventually(t, "a session", func() bool { return status().State == stateEstablished })
			p.send(gobgp.BGP_MSG_UPDATE, update(route("10.3.0.0/24", 3)...))
			eventually(t, "its route", func() bool { return s.hops(key(1001, "10.3.0.0/24")) != nil })
			p.greet(tt.msg) // all its sessions from now on
			p.drop()
			eventually(t, "the status says why", func() bool { return strings.Contains(status().LastError, tt.want) })
			eventually(t, "the neighbour is told", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.notified == tt.code
			})
			eventually(t, "it is so again", func() bool { return status().Flaps > 1 })
			p.greet(nil)
			eventually(t, "it comes back", func() bool { return status().State == stateEstablished && p.sessions() > 2 })
			if n := s.do(childCommand{Status: true}).Status.Neighbors[0]; n.State != stateEstablished || n.Flaps != 0 {
				t.Errorf("the other neighbour: %+v", n)
			}
		})
	}
}
