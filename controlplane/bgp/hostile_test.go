package bgp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// rawPeer is an iBGP neighbour that sends what a test tells it, byte by byte.
type rawPeer struct {
	t testing.TB
	l net.Listener
	// family is the one that it offers.
	family wire.RouteFamily
	mu     sync.Mutex
	conn   net.Conn
	// connections counts those that came, established those that became sessions.
	connections, established int
	// greeting is sent when a session has begun.
	greeting []byte
	// hold is the hold time that it offers; more are capabilities beside the usual ones.
	hold uint16
	more []wire.ParameterCapabilityInterface
	// got are the UPDATEs received in this session, keepalives the KEEPALIVEs, opens the
	// bodies of all OPENs.
	got, keepalives int
	// ends is how many UPDATEs had been received at each End-of-RIB of EVPN in this session.
	ends  []int
	opens [][]byte
	// notified is the last NOTIFICATION's code and subcode.
	notified [2]byte
}

func startRawPeer(t testing.TB, family wire.RouteFamily) *rawPeer {
	t.Helper()
	return startRawPeerAt(t, "127.0.0.1", family)
}

func startRawPeerAt(t testing.TB, address string, family wire.RouteFamily) *rawPeer {
	t.Helper()
	return startRawPeerOn(t, net.JoinHostPort(address, "0"), family)
}

func startRawPeerOn(t testing.TB, at string, family wire.RouteFamily) *rawPeer {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	p := &rawPeer{t: t, l: l, family: family, hold: 90}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		if p.conn != nil {
			_ = p.conn.Close()
		}
		p.mu.Unlock()
		<-done
	})
	return p
}

func (p *rawPeer) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	p.conn, p.got, p.keepalives, p.ends = c, 0, 0, nil
	hold, more := p.hold, p.more
	p.connections++
	p.mu.Unlock()
	evpn := wire.NewOptionParameterCapability(append([]wire.ParameterCapabilityInterface{
		wire.NewCapMultiProtocol(p.family), wire.NewCapFourOctetASNumber(64512), wire.NewCapRouteRefresh(),
	}, more...))
	open, err := wire.NewBGPOpenMessage(64512, hold, "198.51.100.77", []wire.OptionParameterInterface{evpn}).Serialize()
	if err != nil {
		return
	}
	if _, err := c.Write(open); err != nil {
		return
	}
	keepalive, _ := wire.NewBGPKeepAliveMessage().Serialize()
	head := make([]byte, wire.BGP_HEADER_LENGTH)
	for up := false; ; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		body := make([]byte, int(binary.BigEndian.Uint16(head[16:18]))-len(head))
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		p.mu.Lock()
		switch head[18] {
		case wire.BGP_MSG_OPEN:
			p.opens = append(p.opens, body)
		case wire.BGP_MSG_KEEPALIVE:
			p.keepalives++
		case wire.BGP_MSG_NOTIFICATION:
			p.notified = [2]byte(body)
		}
		p.mu.Unlock()
		switch head[18] {
		case wire.BGP_MSG_OPEN, wire.BGP_MSG_KEEPALIVE:
			if head[18] == wire.BGP_MSG_OPEN || hold > 0 {
				_, _ = c.Write(keepalive)
			}
			if head[18] == wire.BGP_MSG_KEEPALIVE && !up {
				up = true
				p.mu.Lock()
				p.established++
				_, _ = c.Write(p.greeting)
				p.mu.Unlock()
			}
		case wire.BGP_MSG_UPDATE:
			p.mu.Lock()
			p.got++
			if bytes.HasSuffix(body, []byte{15, 3, 0, 25, 70}) {
				p.ends = append(p.ends, p.got)
			}
			p.mu.Unlock()
		case wire.BGP_MSG_NOTIFICATION:
			return
		}
	}
}

func (p *rawPeer) send(kind byte, body []byte) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.conn.Write(message(kind, body)); err != nil {
		p.t.Logf("write: %v", err)
	}
}

// message is one on the wire (RFC 4271 section 4.1).
func message(kind byte, body []byte) []byte {
	msg := slices.Repeat([]byte{0xff}, 16)
	msg = binary.BigEndian.AppendUint16(msg, uint16(wire.BGP_HEADER_LENGTH+len(body)))
	return append(append(msg, kind), body...)
}

// offer is what its next sessions begin with.
func (p *rawPeer) offer(hold uint16, more ...wire.ParameterCapabilityInterface) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold, p.more = hold, more
}

// greet has the next sessions begin with what is given.
func (p *rawPeer) greet(msg []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.greeting = msg
}

func (p *rawPeer) again() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connections > 1
}

// sessions is how many there were.
func (p *rawPeer) sessions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.established
}

func (p *rawPeer) updates() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// update is the body of an UPDATE with these path attributes.
func update(attrs ...[]byte) []byte {
	all := slices.Concat(attrs...)
	return append(binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(all))), all...)
}

// route is a good route's attributes: origin, MP_REACH_NLRI, communities, AS_PATH,
// LOCAL_PREF.
func route(prefix string, index uint16) [][]byte {
	r := type5{routerID: netip.MustParseAddr("192.0.2.7"), index: index, prefix: netip.MustParsePrefix(prefix), label: 1001,
		nextHop: netip.MustParseAddr("192.0.2.7"), routerMAC: intent.MAC{2, 0, 0, 0, 0, 7}, targets: targets("64512:1001")}
	return append(encodeAttributes(r)[:3], attribute(flagTransitive, 2, nil), attribute(flagTransitive, 5, []byte{0, 0, 0, 100}))
}

// reach is an MP_REACH_NLRI for EVPN with any NLRI.
func reach(nlri []byte) []byte {
	return attribute(flagOptional, attrMPReach, append([]byte{0, 25, 70, 4, 192, 0, 2, 7, 0}, nlri...))
}

// TestHostileNeighbor: nothing that a neighbour sends in an UPDATE takes the other
// routes of the node away, or the process down.
func TestHostileNeighbor(t *testing.T) {
	t.Parallel()
	good := route("10.0.0.0/24", 1)
	replaced := func(i int, with []byte) []byte {
		r := route("10.66.0.0/24", 66)
		r[i] = with
		return update(r...)
	}
	nlri := encodeNLRI(type5{routerID: netip.MustParseAddr("192.0.2.7"), index: 66, prefix: netip.MustParsePrefix("10.66.0.0/24"), label: 1001})
	changed := func(at int, to byte) []byte {
		b := slices.Clone(nlri)
		b[at] = to
		return b
	}
	for _, tt := range []struct {
		name string
		body []byte
		// imported: what was sent is a usable route after all.
		imported bool
	}{
		{"good", replaced(0, good[0]), true},
		{"origin of two bytes", replaced(0, attribute(flagTransitive, attrOrigin, []byte{0, 0})), false},
		{"origin 77", replaced(0, attribute(flagTransitive, attrOrigin, []byte{77})), false},
		{"communities of nine bytes", replaced(2, attribute(flagOptional|flagTransitive, attrExtComms, make([]byte, 9))), false},
		{"no communities", replaced(2, attribute(flagOptional|flagTransitive, attrExtComms, nil)), false},
		{"local preference of two bytes", replaced(4, attribute(flagTransitive, 5, []byte{0, 1})), false},
		{"AS path cut short", replaced(3, attribute(flagTransitive, 2, []byte{2, 9, 0, 0})), false},
		{"AS path with our own AS", replaced(3, attribute(flagTransitive, 2, []byte{2, 1, 0, 0, 0xfc, 0})), false},
		{"unknown attribute", update(append(route("10.66.0.0/24", 66), attribute(flagOptional|flagTransitive, 250, make([]byte, 300)))...), true},
		{"prefix length 200", replaced(1, reach(changed(24, 200))), false},
		{"martian prefix", replaced(1, reach(changed(25, 127))), false},
		{"label 0", replaced(1, reach(append(slices.Clone(nlri[:len(nlri)-3]), 0, 0, 0))), false},
		{"route type 9", replaced(1, reach(changed(0, 9))), false},
		{"unknown kind of distinguisher", replaced(1, reach(changed(3, 9))), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startRawPeer(t, wire.RF_EVPN)
			s := startSpeaker(t, nodeConfig(1, p.neighbor()))
			s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.1.0.0/24")}})
			eventually(t, "a session with our route", func() bool { return s.established() && p.updates() > 0 })
			p.send(wire.BGP_MSG_UPDATE, update(good...))
			eventually(t, "the good route", func() bool { return s.hops(key(1001, "10.0.0.0/24")) != nil })
			p.send(wire.BGP_MSG_UPDATE, tt.body)
			p.send(wire.BGP_MSG_UPDATE, update(route("10.2.0.0/24", 2)...))
			eventually(t, "the next good route", func() bool { return s.hops(key(1001, "10.2.0.0/24")) != nil })
			if n := s.neighbor(); n.State != stateEstablished || n.Flaps != 0 || s.hops(key(1001, "10.0.0.0/24")) == nil {
				t.Errorf("the session was lost: %+v", n)
			}
			if got := s.hops(key(1001, "10.66.0.0/24")) != nil; got != tt.imported {
				t.Errorf("imported: %t, status %+v", got, s.neighbor())
			}
			before := p.updates()
			p.send(wire.BGP_MSG_ROUTE_REFRESH, []byte{0, 25, 0, 70})
			eventually(t, "a refresh sends our route again", func() bool { return p.updates() > before })
		})
	}
}

func endOfRIB() []byte { return update(attribute(flagOptional, 15, []byte{0, 25, 70})) }

func (p *rawPeer) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.conn.Close()
}

func (p *rawPeer) neighbor() Neighbor {
	at := p.l.Addr().(*net.TCPAddr).AddrPort()
	return Neighbor{Address: at.Addr().Unmap(), ASN: 64512, Port: at.Port(), ConnectRetry: time.Second}
}

// A session that ends before End-of-RIB does not make the imports complete; what
// it brought stays until the next one is complete, and goes if that has it not.
func TestFlapDuringInitialSync(t *testing.T) {
	t.Parallel() // it mostly waits
	p := startRawPeer(t, wire.RF_EVPN)
	s := startSpeaker(t, nodeConfig(1, p.neighbor()))
	s.do(childCommand{Policies: []childPolicy{red}})
	stays, goes := key(1001, "10.0.0.0/24"), key(1001, "10.9.0.0/24")
	eventually(t, "a session", s.established)
	p.send(wire.BGP_MSG_UPDATE, update(route("10.0.0.0/24", 1)...))
	p.send(wire.BGP_MSG_UPDATE, update(route("10.9.0.0/24", 1)...))
	eventually(t, "both routes", func() bool { return s.hops(stays) != nil && s.hops(goes) != nil })
	p.drop()
	eventually(t, "the next session", func() bool { return p.again() && s.established() && s.neighbor().Flaps == 1 })
	// With another distinguisher, as after a restart without its numbers.
	p.send(wire.BGP_MSG_UPDATE, update(route("10.0.0.0/24", 5)...))
	eventually(t, "the route is there anew", func() bool { return s.neighbor().Received == 1 })
	if s.synced() || s.deletes() != 0 {
		t.Errorf("in sync: %t, %d deletes, before End-of-RIB", s.synced(), s.deletes())
	}
	p.send(wire.BGP_MSG_UPDATE, endOfRIB())
	eventually(t, "the imports are complete", s.synced)
	eventually(t, "what is not announced again goes", func() bool { return s.hops(goes) == nil })
	if s.deletes() != 1 || s.hops(stays) == nil {
		t.Errorf("%d deletes, want one", s.deletes())
	}
}

// A neighbour that has one of two families switched on is told of that one alone.
func TestNeighborWithoutUnicast(t *testing.T) {
	t.Parallel()
	p := startRawPeer(t, wire.RF_EVPN)
	n := p.neighbor()
	n.Families = FamilyEVPN | FamilyIPv4
	s := startSpeaker(t, nodeConfig(1, n))
	s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.1.0.0/24")}})
	eventually(t, "a session", s.established)
	eventually(t, "the route is sent", func() bool { return s.neighbor().Sent == 1 })
	got := s.neighbor()
	if got.Missing != FamilyIPv4 || got.UnicastSent != 0 || !strings.Contains(got.LastError, "ipv4 unicast") {
		t.Errorf("status %+v", got)
	}
	if st := (Status{Neighbors: []NeighborStatus{got}}); !st.Carries(FamilyEVPN) || st.Carries(FamilyIPv4) || st.Carries(FamilyIPv6) {
		t.Errorf("carried are EVPN %t, IPv4 %t, IPv6 %t", st.Carries(FamilyEVPN), st.Carries(FamilyIPv4), st.Carries(FamilyIPv6))
	}
}

// A neighbour that has EVPN not switched on: the session is up, and of no use.
func TestNeighborWithoutEVPN(t *testing.T) {
	t.Parallel()
	p := startRawPeer(t, wire.RF_IPv6_VPN)
	s := startSpeaker(t, nodeConfig(1, p.neighbor()))
	s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{key(1001, "10.1.0.0/24")}})
	eventually(t, "a session", s.established)
	if n := s.neighbor(); n.Missing != FamilyEVPN || n.Sent != 0 || !strings.Contains(n.LastError, "l2vpn evpn") {
		t.Errorf("status %+v", n)
	}
	q := status.Query{VRF: 1001, Src: netip.MustParseAddr("10.1.0.1"), Dst: netip.MustParseAddr("10.2.0.1")}
	if step := s.do(childCommand{Explain: &q}).Steps[1]; step.Found || !strings.Contains(step.Detail, "l2vpn evpn") {
		t.Errorf("explain: %+v", step)
	}
}
