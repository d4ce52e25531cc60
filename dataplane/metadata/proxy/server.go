package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Config is how a Server treats guests. The zero value of a field is its default.
type Config struct {
	Backend Backend
	Log     *slog.Logger
	// Observe is told of each request; nil: nobody is.
	Observe func(Outcome, time.Duration)
	// MaxConnections of one port at a time: 64.
	MaxConnections int
	// Rate is how many requests a second one port may make in the long run, Burst how
	// many at once. A boot with cloud-init makes about 30. Rate 0: no limit.
	Rate  rate.Limit
	Burst int
	// HeaderTimeout (10 s) and BodyTimeout (30 s) bound how long a request may take to
	// arrive, IdleTimeout (30 s) how long a connection waits for the next one, and
	// WriteTimeout (2 min) how long the answer may take, the backend's time included.
	HeaderTimeout, BodyTimeout, IdleTimeout, WriteTimeout time.Duration
	// MaxHeader (16 KiB) and MaxBody (1 MiB) are in bytes.
	MaxHeader, MaxBody int
}

func (c *Config) setDefaults() {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.HeaderTimeout, 10*time.Second)
	def(&c.BodyTimeout, 30*time.Second)
	def(&c.IdleTimeout, 30*time.Second)
	def(&c.WriteTimeout, 2*time.Minute)
	number := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	number(&c.MaxConnections, 64)
	number(&c.MaxHeader, 16<<10)
	number(&c.MaxBody, 1<<20)
	number(&c.Burst, int(math.Ceil(float64(c.Rate))))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(Outcome, time.Duration) {}
	}
}

// Backend answers requests of known instances, whose bodies are read and whose headers
// claim nothing. It says what became of a request.
type Backend interface {
	ServeMetadata(w http.ResponseWriter, r *http.Request, id Identity) Outcome
}

// Server answers on any number of listeners. It is safe for concurrent use.
type Server struct {
	cfg   Config
	ports *ports

	mu      sync.Mutex
	servers map[*http.Server]struct{}
}

// New makes a server, which listens nowhere yet.
func New(cfg Config) *Server {
	cfg.setDefaults()
	return &Server{cfg: cfg, ports: newPorts(cfg.MaxConnections, cfg.Rate, cfg.Burst), servers: map[*http.Server]struct{}{}}
}

// Serve answers on a listener until it is closed or the server is shut down.
func (s *Server) Serve(l net.Listener, resolve Resolver) error {
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, resolve) }),
		ReadHeaderTimeout: s.cfg.HeaderTimeout, IdleTimeout: s.cfg.IdleTimeout, WriteTimeout: s.cfg.WriteTimeout,
		// net/http allows 4096 bytes more than it is told.
		MaxHeaderBytes: max(s.cfg.MaxHeader-4096, 1),
		ErrorLog:       slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
		ConnContext:    func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	s.mu.Lock()
	s.servers[server] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.servers, server)
		s.mu.Unlock()
	}()
	if err := server.Serve(counted{l, s, resolve}); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("metadata on %s: %w", l.Addr(), err)
	}
	return nil
}

type connKey struct{}

// Shutdown lets requests under way come to their end, and takes no more.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	var all []*http.Server
	for one := range s.servers {
		all = append(all, one)
	}
	s.mu.Unlock()
	var errs []error
	for _, one := range all {
		errs = append(errs, one.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// Gone closes the connections of a port that is no more on this node, or is another's.
func (s *Server) Gone(port string) { s.ports.drop(port) }

// counted counts the connections of each port.
type counted struct {
	net.Listener
	s       *Server
	resolve Resolver
}

func (l counted) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		id, ok := l.resolve(addrPort(c.LocalAddr()), addrPort(c.RemoteAddr()))
		if !ok {
			return c, nil // its requests are answered by 404
		}
		if !l.s.ports.open(id.Port, c) {
			l.s.cfg.Observe(RateLimited, 0)
			_ = c.Close()
			continue
		}
		return &portConn{Conn: c, port: id.Port, closed: sync.OnceFunc(func() { l.s.ports.closed(id.Port, c) })}, nil
	}
}

// portConn is a connection of a port that was known when it began.
type portConn struct {
	net.Conn
	port   string
	closed func()
}

func (c *portConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, resolve Resolver) {
	begin := time.Now()
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	id, ok := Identity{}, false
	if c != nil {
		id, ok = resolve(addrPort(c.LocalAddr()), addrPort(c.RemoteAddr()))
		// Whoever has the address now, the connection is another's.
		if p, counted := c.(*portConn); counted && p.port != id.Port {
			id, ok = Identity{}, false
		}
	}
	outcome := Broken // also where an answer breaks off, which net/http tells by a panic
	defer func() {
		took := time.Since(begin)
		s.cfg.Observe(outcome, took)
		s.cfg.Log.Debug("metadata request", "port", id.Port, "instance", id.Instance, "method", r.Method, "path", r.URL.Path, "outcome", string(outcome), "took", took)
	}()
	if ok && id.Instance != "" {
		outcome = s.attributed(w, r, id)
		return
	}
	outcome = Unattributed
	w.Header().Set("Connection", "close")
	answer(w, http.StatusNotFound, "This address belongs to no instance that is known here.")
}

// attributed answers a request of a known instance.
func (s *Server) attributed(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	if wait, ok := s.ports.ask(id.Port, time.Now()); !ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		answer(w, http.StatusTooManyRequests, "This instance asks for metadata too often.")
		return RateLimited
	}
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.Header.Get("Upgrade") != "" {
		w.Header().Set("Connection", "close")
		answer(w, http.StatusMethodNotAllowed, "Metadata is read by plain requests.")
		return Refused
	}
	if outcome, ok := s.readBody(w, r); !ok {
		return outcome
	}
	disown(r.Header)
	return s.cfg.Backend.ServeMetadata(w, r, id)
}

// readBody has the whole body in memory: a guest that sends it slowly costs a backend
// nothing, and it can be sent again.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (Outcome, bool) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout)); err != nil {
		return Broken, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.cfg.MaxBody)))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		w.Header().Set("Connection", "close")
		answer(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("The body has more than %d bytes.", s.cfg.MaxBody))
		return TooLarge, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		answer(w, http.StatusRequestTimeout, "The body did not arrive in time.")
		return Slow, false
	case err != nil:
		return Broken, false
	}
	// The connection waits for its next request by IdleTimeout again.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return Broken, false
	}
	r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = http.NoBody, int64(len(body)), nil, nil
	if len(body) > 0 {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
	}
	return Answered, true
}
