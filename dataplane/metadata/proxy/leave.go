package proxy

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// Kept is a connection that was open when a server left, and on which no request had
// begun: another server can go on with it.
type Kept struct {
	// On is the listener that it came in by.
	On net.Listener
	// FD is the caller's, and not inherited by others.
	FD int
}

// Leave lets requests under way come to their end, until ctx ends, and closes all
// connections; but those that wait for a request it gives away as they are. The listeners
// are closed already, and their Serve has returned.
func (s *Server) Leave(ctx context.Context) []Kept {
	s.leaves.Store(true)
	s.letGo()
	s.drain(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept
	s.kept = nil
	return kept
}

// Shutdown lets requests under way come to their end, until ctx ends, and closes all
// connections. The listeners are closed already, and their Serve has returned. (That of
// net/http would drop the requests that it reads from then on.)
func (s *Server) Shutdown(ctx context.Context) error {
	s.http.SetKeepAlivesEnabled(false)
	silent := time.AfterFunc(silentTime, s.letGo)
	defer silent.Stop()
	s.drain(ctx)
	return ctx.Err()
}

// silentTime is how long a connection that was just opened has for the beginning of its
// request when the server ends.
const silentTime = time.Second

// letGo closes the connections on which no request has begun.
func (s *Server) letGo() {
	for _, c := range s.ports.conns() {
		c.letGo()
	}
}

// drain waits until there is no connection any more, or ctx ends.
func (s *Server) drain(ctx context.Context) {
	for s.Connections() > 0 && loop.Sleep(ctx, drainLook) {
	}
	_ = s.http.Close() // nothing that can be done is left
}

const drainLook = 5 * time.Millisecond

func (s *Server) keep(c *conn) {
	fd, err := dup(c.Conn)
	if err != nil {
		s.cfg.Log.Warn("a metadata connection cannot be handed over", "port", c.id.Port, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, Kept{On: c.on, FD: fd})
}

// Resume is a listener that first gives connections that were kept from a server before,
// by their descriptors, which it takes.
func Resume(l net.Listener, fds []int) net.Listener { return &resumed{Listener: l, fds: fds} }

type resumed struct {
	net.Listener

	mu  sync.Mutex
	fds []int
}

func (r *resumed) Accept() (net.Conn, error) {
	for {
		fd, ok := r.take()
		if !ok {
			return r.Listener.Accept()
		}
		f := os.NewFile(uintptr(fd), "metadata connection")
		c, err := net.FileConn(f)
		_ = f.Close() // c has one of its own
		if err == nil {
			return c, nil
		}
	}
}

func (r *resumed) take() (fd int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fds) == 0 {
		return -1, false
	}
	fd, r.fds = r.fds[0], r.fds[1:]
	return fd, true
}

// Close closes what was not taken, too.
func (r *resumed) Close() error {
	for {
		fd, ok := r.take()
		if !ok {
			return r.Listener.Close()
		}
		_ = unix.Close(fd)
	}
}
