package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/ovn-sluice/sluice/pkg/graceful"
)

// headerTimeout bounds the time to read a header, whatever Config.ReadTimeout is.
const headerTimeout = 5 * time.Second

// Server is the listener.
type Server struct {
	c     Config
	log   *slog.Logger
	mux   *http.ServeMux
	tls   *tlsFiles
	slots chan struct{}
}

// New makes a server. Handlers are mounted before Run.
func New(c Config, log *slog.Logger) *Server {
	s := &Server{c: c, log: log, mux: http.NewServeMux(), tls: &tlsFiles{c: c, log: log}}
	if c.MostRequests > 0 {
		s.slots = make(chan struct{}, c.MostRequests)
	}
	return s
}

// Mount attaches a handler to a path, which is a pattern of http.ServeMux.
func (s *Server) Mount(path string, h http.Handler) { s.mux.Handle(path, s.limited(h)) }

// Check tells whether Run could begin to listen: what the configuration names can be read, and fits.
func (s *Server) Check() error { return s.c.check(s.tls) }

// Run listens until ctx ends. Without an address it just waits.
func (s *Server) Run(ctx context.Context) error {
	if s.c.Listen == "" {
		<-ctx.Done()
		return nil
	}
	if err := s.Check(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	base := ctx
	if s.c.Grace > 0 {
		var end context.CancelFunc
		base, end = context.WithCancel(context.WithoutCancel(ctx))
		defer end()
	}
	srv := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: s.c.LargestHeader,
		ReadTimeout: s.c.ReadTimeout, WriteTimeout: s.c.WriteTimeout, IdleTimeout: s.c.IdleTimeout,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if s.c.ReadTimeout > 0 {
		srv.ReadHeaderTimeout = min(headerTimeout, s.c.ReadTimeout)
	}
	err := graceful.Serve(ctx, srv, cmp.Or(s.c.Grace, graceful.Moment), func() error { return s.listen(l, srv) })
	if err != nil {
		return fmt.Errorf("listen: %w", errors.Join(err, l.Close()))
	}
	return nil
}

func (s *Server) listen(l net.Listener, srv *http.Server) error {
	if s.c.Certificate == "" {
		return web.Serve(l, srv, &web.FlagConfig{WebConfigFile: &s.c.WebConfig}, s.log)
	}
	s.log.Info("Listening on", "address", l.Addr().String())
	s.log.Info("TLS is enabled.", "http2", true, "address", l.Addr().String())
	srv.TLSConfig = s.tls.config()
	return srv.ServeTLS(l, "", "")
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	// A client that has gone needs no answer.
	_, _ = w.Write([]byte(text))
}
