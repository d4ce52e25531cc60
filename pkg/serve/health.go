package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// Health is what a program tells of itself.
type Health struct {
	Metrics prometheus.Gatherer
	Status  *status.Registry
	// Alive returns an error when the program is stuck.
	Alive func(context.Context) error
	// PProf serves Go's profiles.
	PProf bool
}

// MountHealth attaches /metrics, /livez, /readyz and, with PProf, /debug/pprof/. They do not count
// as requests at once: a program that is busy is alive.
func (s *Server) MountHealth(h Health) {
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(h.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError,
	}))
	s.mux.HandleFunc("GET /livez", h.livez)
	s.mux.HandleFunc("GET /readyz", h.readyz)
	if h.PProf {
		s.mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		s.mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		s.mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		s.mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		s.mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
}

func (h Health) livez(w http.ResponseWriter, r *http.Request) {
	if err := h.Alive(r.Context()); err != nil {
		answer(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	answer(w, http.StatusOK, "ok\n")
}

func (h Health) readyz(w http.ResponseWriter, _ *http.Request) {
	ready, missing := h.Status.Ready()
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

// Run serves metrics and health alone, until ctx ends.
func Run(ctx context.Context, c Config, h Health, log *slog.Logger) error {
	s := New(c, log)
	s.MountHealth(h)
	if err := s.Run(ctx); err != nil {
		return fmt.Errorf("http.%w", err)
	}
	return nil
}
