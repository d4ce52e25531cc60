package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 30 * time.Second // of reads that are answered at once

// stage is the Connections with one neighbour, both ends of which are the test's.
type stage struct {
	t           *testing.T
	connections *Connections
	neighbor    Neighbor
	handle      netip.AddrPort
	listens     netip.AddrPort // where the Connections listen
	far         *net.TCPListener
	news        chan Event
	log         *logged
}

func newStage(t *testing.T, address string, change func(*Neighbor)) *stage {
	t.Helper()
	s := &stage{t: t, news: make(chan Event, 100), log: &logged{}}
	s.connections = New(slog.New(slog.NewTextHandler(s.log, nil)), Own{}, func(e Event) { s.news <- e })
	t.Cleanup(func() { s.connections.Close(0) })
	a := netip.MustParseAddr(address)
	own := netip.MustParseAddr("127.0.0.7")
	if a.Is6() {
		own = a // ::1 is the only loopback address
	}
	s.listens = free(t, own)
	if err := s.connections.Listen(t.Context(), s.listens); err != nil {
		t.Fatal(err)
	}
	far, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	s.far = far
	s.neighbor = Neighbor{Address: a, Port: addrPort(far.Addr()).Port(), ConnectRetry: time.Second, HoldTime: 90 * time.Second}
	if change != nil {
		change(&s.neighbor)
	}
	if s.handle, err = s.connections.Add(s.neighbor); err != nil {
		t.Fatal(err)
	}
	return s
}

func free(t *testing.T, a netip.Addr) netip.AddrPort {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return addrPort(l.Addr())
}

// end is one end of a connection.
type end struct {
	t *testing.T
	c *net.TCPConn
	r *bufio.Reader
}

func (s *stage) end(c net.Conn, err error) end {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return end{s.t, c.(*net.TCPConn), bufio.NewReader(c)}
}

// server opens the BGP server's connection, and sends its OPEN.
func (s *stage) server(open []byte) end {
	s.t.Helper()
	e := s.end(net.DialTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(Self, 0)), net.TCPAddrFromAddrPort(s.handle)))
	e.send(open)
	return e
}

// taken is the connection that the Connections open, arrives one that the neighbour opens.
func (s *stage) taken() end {
	s.t.Helper()
	_ = s.far.SetDeadline(time.Now().Add(patience))
	c, err := s.far.AcceptTCP()
	return s.end(c, err)
}

func (s *stage) arrives() end {
	s.t.Helper()
	return s.end(net.DialTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.neighbor.Address, 0)), net.TCPAddrFromAddrPort(s.listens)))
}

func (e end) send(msg []byte) {
	e.t.Helper()
	if _, err := e.c.Write(msg); err != nil {
		e.t.Fatal(err)
	}
}

// read is the next message's type, or the error.
func (e end) read() string {
	_ = e.c.SetReadDeadline(time.Now().Add(patience))
	msg, err := readMessage(e.r, make([]byte, maxMessage))
	if err != nil {
		return err.Error()
	}
	if msg[18] == typeNotification {
		return fmt.Sprintf("notification %d/%d", msg[headerLen], msg[headerLen+1])
	}
	return map[byte]string{typeOpen: "open", typeKeepalive: "keepalive", typeUpdate: "update"}[msg[18]]
}

func (e end) wants(what ...string) {
	e.t.Helper()
	for _, w := range what {
		if got := e.read(); got != w {
			e.t.Fatalf("got %s, want %s", got, w)
		}
	}
}

// openBy is an OPEN with an identifier.
func openBy(id byte) []byte {
	msg := openOf(90, mpEVPN)
	msg[headerLen+8] = id
	return msg
}

// Of two connections that stays which the end with the higher identifier has opened (RFC 4271
// section 6.8), whichever the neighbour answers on first.
func TestCollision(t *testing.T) {
	for _, address := range []string{"127.0.0.8", "::1"} {
		for _, higher := range []bool{false, true} {
			for _, first := range []string{"ours", "theirs"} {
				t.Run(fmt.Sprintf("%s neighbour higher %t, %s first", address, higher, first), func(t *testing.T) {
					s := newStage(t, address, nil)
					server := s.server(openBy(100))
					ours := s.taken()
					ours.wants("open")
					theirs := s.arrives()
					theirs.wants("open")
					id := byte(50)
					if higher {
						id = 200
					}
					kept, lost := ours, theirs
					if higher {
						kept, lost = theirs, ours
					}
					if first == "ours" {
						ours.send(openBy(id))
					} else {
						theirs.send(openBy(id))
					}
					lost.wants("notification 6/7")
					if (first == "ours") == higher {
						kept.send(openBy(id))
					}
					server.wants("open")
					server.send(keepalive)
					kept.wants("keepalive")
					kept.send(keepalive)
					server.wants("keepalive")
					// Another one while there is a session is closed.
					if got := s.arrives().read(); got == "open" {
						t.Errorf("a third connection gets %s", got)
					}
					kept.send(messageOf(typeUpdate, body(nil, nil, unreachOf(evpn, five4(1)))))
					server.wants("update")
				})
			}
		}
	}
}

// A passive neighbour's connection waits for the server, and one that is held gets none.
func TestPassiveAndHeld(t *testing.T) {
	for _, address := range []string{"127.0.0.8", "::1"} {
		s := newStage(t, address, func(n *Neighbor) { n.Passive = true })
		early := s.arrives()
		server := s.server(openBy(100))
		early.wants("open")
		early.send(openBy(1))
		server.wants("open")
		s.connections.Hold(s.neighbor.Address, true) // what is there stays
		server.send(keepalive)
		early.wants("keepalive")
		_ = server.c.Close()
		early.wants("EOF")
		_ = early.c.Close()
		server = s.server(openBy(100))
		if got := s.arrives().read(); got == "open" {
			t.Error("one that is held has a connection")
		}
		s.connections.Hold(s.neighbor.Address, false)
		again := s.arrives()
		again.wants("open")
		again.send(openBy(1))
		server.wants("open")
	}
}

// A connection on which the neighbour says something else than OPEN, or nothing more, is
// followed by another, and the server notices none of that.
func TestConnectionsWithoutOpen(t *testing.T) {
	s := newStage(t, "127.0.0.8", nil)
	server := s.server(openBy(100))
	c := s.taken()
	_ = c.c.Close()
	c = s.taken()
	c.wants("open")
	c.send(keepalive)
	c.wants("notification 5/1")
	c = s.taken()
	c.wants("open")
	c.send(messageOf(typeNotification, []byte{6, 5}))
	c.wants("EOF")
	c = s.taken()
	c.wants("open")
	c.send(openBy(1))
	server.wants("open")
}

// The end of each side is the end of the other, with what was said before.
func TestEnds(t *testing.T) {
	for name, do := range map[string]func(s *stage, server, far end){
		"the neighbour goes": func(_ *stage, server, far end) {
			far.send(messageOf(typeNotification, []byte{6, 4}))
			_ = far.c.Close()
			server.wants("notification 6/4", "EOF")
		},
		"the server goes": func(_ *stage, server, far end) {
			server.send(messageOf(typeNotification, []byte{6, 2}))
			_ = server.c.Close()
			far.wants("notification 6/2", "EOF")
		},
		"the neighbour is removed": func(s *stage, server, far end) {
			s.connections.Remove(s.neighbor.Address)
			server.send(messageOf(typeNotification, []byte{6, 3}))
			_ = server.c.Close()
			far.wants("notification 6/3", "EOF")
		},
		"a wrong message": func(_ *stage, server, far end) {
			far.send(messageOf(99, nil))
			far.wants("notification 1/3")
			server.wants("notification 6/9", "EOF")
		},
		"a stop without a word": func(s *stage, _, far end) {
			s.connections.Close(0)
			far.wants("EOF")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "127.0.0.8", nil)
			server := s.server(openBy(100))
			far := s.taken()
			far.wants("open")
			far.send(openBy(1))
			server.wants("open")
			server.send(keepalive)
			far.wants("keepalive")
			far.send(keepalive)
			server.wants("keepalive")
			do(s, server, far)
			for e := range s.news {
				if e.Kind == Ended {
					if !e.End.Established || e.End.ASN != 64512 {
						t.Errorf("told %+v", e.End)
					}
					break
				}
			}
		})
	}
}

// logged is a log that is read while it is written.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Another process of the node cannot speak for the BGP server.
func TestStranger(t *testing.T) {
	s := newStage(t, "127.0.0.8", nil)
	for _, source := range []string{"127.0.0.1", Self.String()} {
		out, err := exec.Command("socat", "-u", fmt.Sprintf("TCP4:%s,bind=%s", s.handle, source), "STDOUT").CombinedOutput()
		if len(out) > 0 || err != nil {
			t.Errorf("from %s it gets %q, %v", source, out, err)
		}
	}
	server := s.server(openBy(100))
	far := s.taken()
	far.wants("open")
	far.send(openBy(1))
	server.wants("open")
	// While the server is connected, strangers are refused at once, with few lines in the log.
	for range 200 {
		c, err := net.DialTimeout("tcp", s.handle.String(), patience)
		s.end(c, err).wants("EOF")
		_ = c.Close()
	}
	if lines := strings.Count(s.log.String(), "another process"); lines < 1 || lines > 15 {
		t.Errorf("%d lines in the log", lines)
	}
	_ = server.c.Close()
	server = s.server(openBy(100))
	far = s.taken()
	far.wants("open")
}

// A neighbour is told of the restart until it has all routes of this node, and from its first
// session on that this node has gone on forwarding over the loss of one (RFC 4724 section 4).
func TestRestartBits(t *testing.T) {
	for name, tt := range map[string]struct {
		restarted bool
		want      []byte // the first octet of the capability, that of the family: of each OPEN
	}{
		"restarted": {true, []byte{0xc0, 0x80, 0xc0, 0x80, 0x40, 0x80}},
		"started":   {false, []byte{0x40, 0, 0x40, 0x80, 0x40, 0x80}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "127.0.0.8", func(n *Neighbor) {
				if tt.restarted {
					n.Restarted = time.Now().Add(time.Hour)
				}
			})
			open := openOf(90, mpEVPN, capBytes(capRestart, 0x40, 120, 0, 25, 70, 0))
			var got []byte
			for ends := range 3 { // of which the second has End-of-RIB
				server, far := s.server(open), s.taken()
				msg, err := readMessage(far.r, make([]byte, maxMessage))
				if err != nil {
					t.Fatal(err)
				}
				caps, err := capabilities(msg[headerLen+9:])
				if err != nil || len(caps) != 2 {
					t.Fatal(caps, err)
				}
				got = append(got, caps[1].value[0], caps[1].value[5])
				far.send(open)
				server.wants("open")
				server.send(keepalive)
				far.wants("keepalive")
				far.send(keepalive)
				server.wants("keepalive")
				server.send(messageOf(typeUpdate, body(nil, nil, origin, path, pref, reachOf(evpn, hop4, five4(1)))))
				far.wants("update")
				if ends == 1 {
					server.send(messageOf(typeUpdate, body(nil, nil, unreachOf(evpn))))
					far.wants("update")
				}
				_ = far.c.Close()
				server.wants("EOF")
				_ = server.c.Close()
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %x, want %x", got, tt.want)
			}
		})
	}
}
