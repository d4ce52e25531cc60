package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
)

// retryAfter is in seconds.
const retryAfter = "1"

// limited is a handler that runs within the limits of Config alone.
func (s *Server) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A body that comes slowly holds nobody up.
		r, err := s.withBody(w, r)
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			answer(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes\n", s.c.LargestBody))
			return
		}
		if err != nil {
			answer(w, http.StatusBadRequest, "the body cannot be read\n")
			return
		}
		if s.slots != nil {
			select {
			case s.slots <- struct{}{}:
				defer func() { <-s.slots }()
			default:
				w.Header().Set("Retry-After", retryAfter)
				answer(w, http.StatusServiceUnavailable, "too many requests at once; try again\n")
				return
			}
		}
		defer s.caught(w, r)
		next.ServeHTTP(w, r)
	})
}

// caught makes a handler's panic an error of that one request. It is deferred.
func (s *Server) caught(w http.ResponseWriter, r *http.Request) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler: // net/http ends the connection
		panic(p)
	default:
		s.log.Error("a handler panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
		answer(w, http.StatusInternalServerError, "internal error; see the log\n")
	}
}

// withBody is r with a body that is there, and not too large. net/http reads no more of one than the declared
// length; one without would have a handler tell its excess from other errors.
func (s *Server) withBody(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	switch limit := s.c.LargestBody; {
	case limit == 0 || r.ContentLength == 0:
		return r, nil
	case r.ContentLength > limit:
		return nil, &http.MaxBytesError{Limit: limit}
	default:
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if err != nil {
			return nil, err
		}
		r = r.WithContext(r.Context()) // a handler leaves the request that it got as it is
		r.Body = io.NopCloser(bytes.NewReader(b))
		return r, nil
	}
}
