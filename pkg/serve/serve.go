package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/graceful"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Options are what the listener serves.
type Options struct {
	Config  config.HTTP
	Metrics prometheus.Gatherer
	Status  *status.Registry
	// Alive returns an error when the daemon is stuck.
	Alive func(context.Context) error
	Log   *slog.Logger
}

// Server is the listener.
type Server struct{ o Options }

// New makes a listener.
func New(o Options) *Server { return &Server{o: o} }

// Run listens until ctx ends. Without an address it just waits.
func (s *Server) Run(ctx context.Context) error {
	if s.o.Config.Listen == "" {
		<-ctx.Done()
		return nil
	}
	if err := web.Validate(s.o.Config.WebConfig); err != nil {
		return fmt.Errorf("http.webConfig %s: %w", s.o.Config.WebConfig, err)
	}
	l, err := net.Listen("tcp", s.o.Config.Listen)
	if err != nil {
		return fmt.Errorf("http.listen: %w", err)
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	flags := &web.FlagConfig{WebConfigFile: &s.o.Config.WebConfig}
	err := graceful.Serve(ctx, srv, func() error { return web.Serve(l, srv, flags, s.o.Log) })
	if err != nil {
		return fmt.Errorf("http.listen: %w", errors.Join(err, l.Close()))
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	if s.o.Config.PProf {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func (s *Server) livez(w http.ResponseWriter, r *http.Request) {
	if err := s.o.Alive(r.Context()); err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	answer(w, http.StatusOK, "ok\n")
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	ready, missing := s.o.Status.Ready()
	if ready {
		answer(w, http.StatusOK, "ok\n")
		return
	}
	text := ""
	for _, c := range missing {
		text += fmt.Sprintf("%s: %s %s\n", c.Name, c.Reason, c.Detail)
	}
	answer(w, http.StatusServiceUnavailable, text)
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	// A client that has gone needs no answer.
	_, _ = w.Write([]byte(text))
}
