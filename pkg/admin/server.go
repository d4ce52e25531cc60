package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ovn-sluice/sluice/pkg/graceful"
)

const maxRequest = 1 << 20

// Server answers on the socket.
type Server struct {
	socket string
	log    *slog.Logger
	mux    *http.ServeMux
}

// NewServer makes a server of a program that errors name, for a socket path. Endpoints are attached
// before Run.
func NewServer(program, socket string, log *slog.Logger) *Server {
	s := &Server{socket: socket, log: log, mux: http.NewServeMux()}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, fmt.Errorf("%w: %s has no endpoint %s; %[2]s and sluicectl have to be of one version", ErrNotFound, program, r.URL.Path))
	})
	return s
}

// Handle attaches a function to an endpoint.
func Handle[Req, Resp any](s *Server, e Endpoint[Req, Resp], f func(context.Context, Req) (Resp, error)) {
	s.mux.HandleFunc(e.path, func(w http.ResponseWriter, r *http.Request) {
		req, err := readRequest[Req](r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		ctx, cancel, err := inTime(r.Context(), r.Header) // after the body: it came when the client was asked for it
		if err != nil {
			s.fail(w, r, err)
			return
		}
		defer cancel()
		resp, err := f(ctx, req)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.write(w, http.StatusOK, resp)
	})
}

// HandleStream attaches a function that emits answers until it returns or the
// client goes, which ends the context and makes emit fail. Each answer is one
// line of JSON.
func HandleStream[Req, Resp any](s *Server, e Endpoint[Req, Resp], f func(ctx context.Context, req Req, emit func(Resp) error) error) {
	s.mux.HandleFunc(e.path, func(w http.ResponseWriter, r *http.Request) {
		req, err := readRequest[Req](r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		enc, flush := json.NewEncoder(w), http.NewResponseController(w)
		if err := flush.Flush(); err != nil {
			return
		}
		emit := func(v Resp) error {
			if err := enc.Encode(streamLine[Resp]{Value: &v}); err != nil {
				return err
			}
			return flush.Flush()
		}
		if err := f(r.Context(), req, emit); err != nil && r.Context().Err() == nil {
			// The status line is gone; the error is the last line.
			if err := enc.Encode(failure{err.Error()}); err != nil {
				s.log.Debug("admin client went away", "error", err)
			}
		}
	})
}

type streamLine[T any] struct {
	Value *T     `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

func readRequest[Req any](r *http.Request) (Req, error) {
	var req Req
	b, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return req, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	if len(b) == 0 {
		return req, nil
	}
	if err := json.Unmarshal(b, &req); err != nil {
		return req, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	return req, nil
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := codeOf(err)
	if code == http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("admin request failed", "path", r.URL.Path, "error", err)
	}
	s.write(w, code, failure{err.Error()})
}

func (s *Server) write(w http.ResponseWriter, code int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		s.log.Error("admin answer cannot be written as JSON", "error", err)
		http.Error(w, `{"error":"the answer cannot be written as JSON"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(append(b, '\n')); err != nil {
		s.log.Debug("admin client went away", "error", err)
	}
}

// Run listens and answers until ctx ends. It locks the socket's path first.
func (s *Server) Run(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.socket), 0o700); err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	lock, err := lockFile(s.socket+".lock", "process")
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	defer func() { _ = lock.Release() }()
	l, err := listen(s.socket)
	if err != nil {
		return err
	}
	// The lock is still held, so the socket at the path is this one.
	defer func() { _ = os.Remove(s.socket) }()
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	// Requests end with ctx: a stream would hold up the stop for ever.
	srv := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	err := graceful.Serve(ctx, srv, graceful.Moment, func() error { return srv.Serve(l) })
	if err != nil {
		return fmt.Errorf("admin socket: %w", err)
	}
	return nil
}
