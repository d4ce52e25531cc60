package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/metrics/controllermetrics"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// look is how often the state of the session is told.
const look = time.Second

// health says whether the databases are followed: the components of the program.
type health struct{ registry *status.Registry }

func observe(store *northbound.Store, log *slog.Logger) (*controllermetrics.Metrics, health) {
	h := health{status.NewRegistry(log)}
	h.registry.Require("nb")
	m := controllermetrics.New(version, metrics.LogFailures(log), h.registry, func() controllermetrics.Store {
		s := store.Stats()
		return controllermetrics.Store{Commits: s.Commits, Conflicts: s.Conflicts, Repeats: s.Repeats, Leads: store.Leads()}
	})
	return m, h
}

// watch tells of sessions, by component, until ctx ends.
func (h health) watch(ctx context.Context, sessions map[string]func() ovsdb.Status) error {
	return loop.Every(ctx, look, nil, func() {
		for name, session := range sessions {
			h.tell(name, session())
		}
	})
}

func (h health) tell(name string, s ovsdb.Status) {
	switch {
	case s.InSync:
		h.registry.SetCondition(name, true, reason.InSync, s.Endpoint)
	case s.Connected:
		h.registry.SetCondition(name, false, reason.Syncing, s.Endpoint)
	case s.LastError != nil:
		h.registry.SetCondition(name, false, reason.Disconnected, s.LastError.Error())
	default:
		h.registry.SetCondition(name, false, reason.Disconnected, "")
	}
}

// bounded gives each request a time limit and an ID, counts it, and logs client, path and status.
// Tokens are not logged.
func bounded(h http.Handler, timeout time.Duration, m *controllermetrics.Metrics, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		id := requestID()
		w.Header().Set("X-Openstack-Request-Id", id)
		seen := &answered{ResponseWriter: w, code: http.StatusInternalServerError} // of a handler that panics
		defer func() {
			took := time.Since(begun)
			m.Answered(known(r.Method), seen.code, took)
			log.Info("request", "method", r.Method, "path", r.URL.Path, "status", seen.code, "seconds", took.Seconds(), "client", r.RemoteAddr, "id", id)
		}()
		h.ServeHTTP(seen, r.WithContext(ctx))
	})
}

// known keeps what clients make up out of the labels of a metric.
func known(method string) string {
	if slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, method) {
		return method
	}
	return "other"
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "req-" + hex.EncodeToString(b[:])
}

// answered knows the status of an answer.
type answered struct {
	http.ResponseWriter
	code  int
	begun bool
}

func (a *answered) Write(b []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(b)
}

func (a *answered) WriteHeader(code int) {
	a.begun = true
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}
