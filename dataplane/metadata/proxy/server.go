package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Config is how a Server treats guests. The zero value of a field is its default.
type Config struct {
	Backend Backend
	Log     *slog.Logger
	// Observe is told of each request, and may be told of several at once; nil: nobody is.
	Observe func(Request)
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
		c.Observe = func(Request) {}
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
	http  *http.Server
	// leaves: see Leave.
	leaves atomic.Bool

	mu   sync.Mutex
	kept []Kept
}

// New makes a server, which listens nowhere yet.
func New(cfg Config) *Server {
	cfg.setDefaults()
	s := &Server{cfg: cfg, ports: newPorts(cfg.MaxConnections, cfg.Rate, cfg.Burst)}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve),
		// It would answer "OPTIONS *" to anybody.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: cfg.HeaderTimeout, IdleTimeout: cfg.IdleTimeout, WriteTimeout: cfg.WriteTimeout,
		// net/http allows 4096 bytes more than it is told.
		MaxHeaderBytes: max(cfg.MaxHeader-4096, 1),
		ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		ConnContext:    func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			if c, ok := c.(*conn); ok && state == http.StateIdle {
				c.waits()
			}
		},
	}
	return s
}

// Serve answers on a listener until it is closed or the server is shut down.
func (s *Server) Serve(l net.Listener, resolve Resolver) error {
	if err := s.http.Serve(counted{l, s, resolve}); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("metadata on %s: %w", l.Addr(), err)
	}
	return nil
}

type connKey struct{}

// Check closes the connections of ports that are no more on this node, or are another
// instance's.
func (s *Server) Check() {
	for _, c := range s.ports.conns() {
		if c.gone() {
			_ = c.Close() // it is closed once more by whoever serves it
		}
	}
	s.ports.sweep()
}

// Drop closes the connections that came in by a listener.
func (s *Server) Drop(l net.Listener) {
	for _, c := range s.ports.conns() {
		if c.on == l {
			_ = c.Close()
		}
	}
}

// Connections is how many are open.
func (s *Server) Connections() int { return s.ports.count() }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	id, ok := Identity{}, false
	c, ours := r.Context().Value(connKey{}).(*conn)
	if ours {
		c.handle()
		id, ok = c.asks()
	}
	rec := &recorder{ResponseWriter: w}
	whole, outcome := false, Broken // so where an answer breaks off, which net/http tells by a panic
	defer func() {
		if ours && !whole {
			c.breakOff()
		}
		s.cfg.Observe(Request{Time: begin, Identity: id, Method: r.Method, Path: r.URL.Path, Status: rec.status, Outcome: outcome, Took: time.Since(begin)})
	}()
	if ok && id.Instance != "" {
		outcome = s.attributed(rec, r, id)
	} else {
		outcome = Unattributed
		rec.Header().Set("Connection", "close")
		answer(rec, http.StatusNotFound, "This address belongs to no instance that is known here.")
	}
	if rec.status == 0 {
		panic(http.ErrAbortHandler) // else net/http would say that all is well
	}
	whole = true
}

// attributed answers a request of a known instance.
func (s *Server) attributed(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	if wait, ok := s.ports.ask(id.Port, time.Now()); !ok {
		return tooOften(w, wait)
	}
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.Header.Get("Upgrade") != "" {
		w.Header().Set("Connection", "close")
		answer(w, http.StatusMethodNotAllowed, "Metadata is read by plain requests.")
		return Refused
	}
	if !hasPath(r) {
		w.Header().Set("Connection", "close")
		answer(w, http.StatusBadRequest, "Metadata is asked for by its path.")
		return Refused
	}
	if r.ContentLength != 0 {
		done, ok := s.ports.body(id.Port)
		if !ok {
			return tooOften(w, time.Second)
		}
		defer done()
	}
	if outcome, ok := s.readBody(w, r); !ok {
		return outcome
	}
	disown(r.Header)
	return s.cfg.Backend.ServeMetadata(w, r, id)
}

func tooOften(w http.ResponseWriter, wait time.Duration) Outcome {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	answer(w, http.StatusTooManyRequests, "This instance asks for metadata too often.")
	return RateLimited
}
