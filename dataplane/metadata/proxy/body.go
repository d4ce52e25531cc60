package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

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
		w.Header().Set("Connection", "close")
		answer(w, http.StatusBadRequest, "The body is not as its header says, or did not come to its end.")
		return Malformed, false
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
