package bfd

import (
	"crypto/rand"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// blow sends payloads by UDP from a namespace, with socat's options.
func (c *chain) blow(ns, to string, options string, payloads ...[]byte) {
	c.t.Helper()
	for _, b := range payloads {
		cmd := commandIn(ns, "socat", "-u", "-", to+options)
		cmd.Stdin = strings.NewReader(string(b))
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("socat: %v: %s", err, out)
		}
	}
}

// What strangers and broken neighbours send ends no session and makes none; each
// packet is counted for its reason.
func TestHostilePackets(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	near, far := frrNeighbors(c)
	s := startChild(t, c.node, peersOf()...)
	eventually(t, "all sessions are up", func() bool { return s.all(PathUp) && near.all("up") && far.all("up") })
	before := s.report()

	to4, to6, far4 := "UDP4-SENDTO:"+node4+":3784", "UDP6-SENDTO:["+node6+"]:3784", "UDP4-SENDTO:"+node4+":4784"
	down := Packet{State: Down, Multiplier: 3, Mine: 77, MinTx: time.Second, MinRx: time.Second}
	named := func(i int) []byte {
		p := down
		p.State, p.Yours = AdminDown, before.Sessions[i].Local
		return p.Append(nil)
	}
	auth, err := hex.DecodeString("20440334" + "0000004d00000000" + "000f4240000f424000000000" + "041c0100" + strings.Repeat("00", 24))
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 1200)
	_, _ = rand.Read(noise)
	noise[0] |= 0xe0 // a version of its own: else it may be counted for whatever comes later
	c.blow(c.mid, to4, ",ttl=255", noise[:10], make([]byte, 24), append([]byte{0x20, 0x40, 0, 24}, make([]byte, 20)...), noise)
	c.blow(c.mid, to6, ",setsockopt-int=41:16:255", noise[:30])
	c.blow(c.mid, to4, ",ttl=254", down.Append(nil))                                       // too far away for one hop
	c.blow(c.mid, to4, ",ttl=255,bind="+mid4, named(1))                                    // another neighbour's session
	c.blow(c.mid, to4, ",ttl=255", append(named(3), 0))                                    // a multihop session
	c.blow(c.peer, to4, ",ttl=255", named(0), down.Append(nil))                            // a neighbour's session, and none at all
	c.blow(c.peer, far4, ",ttl=200", named(3))                                             // from too far
	c.blow(c.mid, to4, ",ttl=255", auth)                                                   // authenticated
	c.blow(c.mid, to4, ",ttl=255", Packet{State: Up, Multiplier: 3, Mine: 77}.Append(nil)) // names nobody
	want := map[Drop]uint64{DropTTL: 2, DropSource: 3, DropUnknown: 1, DropAuthentication: 1, DropDiscriminator: 1, DropMultiplier: 1}
	eventually(t, "all is counted", func() bool {
		got := s.report().Drops
		for d, n := range want {
			if got[d] != n {
				return false
			}
		}
		return got[DropVersion]+got[DropLength] >= 3
	})
	if got := s.report(); len(got.Changes) != len(before.Changes) || !s.all(PathUp) {
		t.Errorf("paths changed: %v", got.Changes[len(before.Changes):])
	}
}

// What is in the way of a session is in its status.
func TestProblems(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	far := startBFDD(t, c.peer, " peer "+node4+" multihop local-address "+peer4)
	peers := peersOf()
	strict := peers[3]
	strict.MinTTL = 255
	s := startChild(t, c.node, strict)
	problem := func(want string) {
		t.Helper()
		eventually(t, want, func() bool { return s.report().Sessions[0].Problem == want })
	}
	problem("the neighbour's packets arrive with TTL 254, and at least 255 is required")
	if s.all(PathUp) || far.all("up") {
		t.Error("there is a session all the same")
	}
	s.stop()

	near := startBFDD(t, c.mid, " peer "+node4)
	first := startChild(t, c.node, peers[1])
	eventually(t, "a first speaker", func() bool { return first.report().Sessions[0].Out > 0 })
	// The same sockets a second time: of IPv6 they are taken, of IPv4 free.
	s = startChild(t, c.node, peers[1], peers[0])
	problem("no BFD sessions: listen udp6 [::]:3784: bind: address already in use")
	eventually(t, "the other family works", func() bool { return s.report().Sessions[1].Path == PathUp && near.all("up") })
	first.stop()
	problem("")
	s.stop()

	far.kill() // it has the port there
	late := peers[2]
	late.Neighbor = netip.MustParseAddr("fe80::fe%late0")
	s = startChild(t, c.node, late)
	problem("send: there is no interface late0")
	for range 2 { // another one of the same name has another index
		startLate(c)
		eventually(t, "the session of a late interface", func() bool { return s.all(PathUp) })
		c.ip("-n " + c.node + " link del late0")
		eventually(t, "is lost with it", func() bool { return s.all(PathLost) })
	}
	if got := s.report().Changes; !slices.Equal(got, []string{"fe80::fe%late0 up", "fe80::fe%late0 lost", "fe80::fe%late0 up", "fe80::fe%late0 lost"}) {
		t.Errorf("changes: %v", got)
	}
}

// startLate makes an interface of the node, and a neighbour behind it.
func startLate(c *chain) {
	c.t.Helper()
	for _, line := range []string{
		"-n NODE link add late0 type veth peer name late netns PEER",
		"-n NODE addr add fe80::1/64 dev late0 nodad", "-n PEER addr add fe80::fe/64 dev late nodad",
		"-n NODE link set late0 up", "-n PEER link set late up",
	} {
		c.ip(strings.NewReplacer("NODE", c.node, "PEER", c.peer).Replace(line))
	}
	// The neighbour is a speaker too: it follows an interface that comes and goes.
	if c.late == nil {
		c.late = startChild(c.t, c.peer, Peer{Neighbor: netip.MustParseAddr("fe80::1%late"), Settings: peersOf()[2].Settings})
	}
}
