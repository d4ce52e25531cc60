package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// counted is a listener whose connections are counted for who they are of.
type counted struct {
	net.Listener
	s       *Server
	resolve Resolver
}

func (l counted) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, s: l.s, on: l.Listener, resolve: l.resolve}
		c.id, _ = c.asks()
		if l.s.ports.open(c) {
			return c, nil
		}
		l.s.cfg.Observe(Request{Time: time.Now(), Identity: c.id, Outcome: TooManyConnections})
		_ = inner.Close()
	}
}

// conn is a connection that began as somebody's.
type conn struct {
	net.Conn
	s       *Server
	on      net.Listener
	resolve Resolver
	// id is whose it was when it began. The zero value: nobody's that was known.
	id Identity

	mu sync.Mutex
	// was is whose it was when that was first known.
	was Identity
	// busy: a request has begun to arrive, and its answer has not come to its end.
	busy bool
	// handled: the request has come to Server.serve, whose answer it gets.
	handled bool
	// ahead: net/http has the first byte of the next request. While it answers one it
	// reads a single byte, to see whether the guest goes.
	ahead bool
	// leaving: whoever serves it is to let go of it, as it waits for a request.
	leaving, closed bool
	// breaks: an answer breaks off, which the client sees by a reset. Without, the end of the
	// connection could be that of the answer.
	breaks bool
}

// now is whose it is at this moment.
func (c *conn) now() (Identity, bool) {
	return c.resolve(addrPort(c.LocalAddr()), addrPort(c.RemoteAddr()))
}

// asks is who asks on it at this moment: nobody, where the address has become another's.
func (c *conn) asks() (Identity, bool) {
	id, ok := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.was.Port != "" && (id.Port != c.was.Port || c.was.Instance != "" && (id.Instance != c.was.Instance || id.Project != c.was.Project)) {
		return Identity{}, false
	}
	c.was = id
	return id, ok
}

// gone tells whether it was somebody's who is not there any more.
func (c *conn) gone() bool {
	_, ok := c.asks()
	c.mu.Lock()
	defer c.mu.Unlock()
	return !ok && c.was.Port != ""
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.begins(len(b) == 1)
	}
	return n, c.half(len(b) == 1, n, err)
}

// begins takes note that a request arrives. One that came when the connection was about to
// be let go is answered here.
func (c *conn) begins(ahead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.ahead = true, ahead
	if c.leaving {
		c.leaving = false
		_ = c.Conn.SetReadDeadline(time.Now().Add(c.s.cfg.HeaderTimeout))
	}
}

// waits takes note that it waits for its next request.
func (c *conn) waits() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.handled = c.ahead, false
	if !c.busy && c.s.leaves.Load() {
		c.leave()
	}
}

// handle takes note that a request has come to Server.serve; first: it had not before.
func (c *conn) handle() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first = !c.handled
	c.handled = true
	return first
}

// Write tells of answers that net/http gives of its own: to what is no request of HTTP,
// and to too large a header.
func (c *conn) Write(b []byte) (int, error) {
	if c.handle() {
		if status := statusOf(b); status >= http.StatusBadRequest {
			id, _ := c.asks()
			outcome := Malformed
			if status == http.StatusRequestHeaderFieldsTooLarge {
				outcome = TooLarge
			}
			c.s.cfg.Observe(Request{Time: time.Now(), Identity: id, Status: status, Outcome: outcome})
		}
	}
	return c.Conn.Write(b)
}

// statusOf reads the status of an answer's first line; 0: there is none.
func statusOf(b []byte) int {
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return 0
	}
	status, _ := strconv.Atoi(string(fields[1]))
	return status
}

// letGo ends its wait for a request, if it does wait.
func (c *conn) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy && !c.closed {
		c.leave()
	}
}

func (c *conn) leave() {
	c.leaving = true
	_ = c.Conn.SetReadDeadline(past)
}

// past has a read end at once, before it takes anything from the socket.
var past = time.Unix(1, 0)

// SetReadDeadline is what net/http sets; it cannot have a connection wait that is let go.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		t = past
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) Close() error {
	c.mu.Lock()
	if !c.closed && c.leaving && c.s.leaves.Load() {
		c.s.keep(c)
	}
	if l, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok && c.breaks {
		_ = l.SetLinger(0) // it has ended otherwise
	}
	c.closed = true
	c.mu.Unlock()
	c.s.ports.closed(c)
	return c.Conn.Close()
}

// breakOff has the client see that its answer does not come, or not to its end.
func (c *conn) breakOff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breaks = true
}

// dup is a descriptor of the same socket, which is not inherited by others.
func dup(c any) (fd int, err error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("%T has no descriptor", c)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return -1, err
	}
	outer := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(outer, err)
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}
