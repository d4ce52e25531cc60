package admin

import (
	"errors"
	"net/http"
)

var (
	// ErrLocked is wrapped when another daemon holds the lock.
	ErrLocked = errors.New("another process is running")
	// ErrNotRunning is wrapped by the client when nobody answers on the socket.
	ErrNotRunning = errors.New("not running")
	// ErrSilent is wrapped by the client when a daemon is there that does not answer: it
	// is stopped, or hangs.
	ErrSilent = errors.New("does not answer")
	// ErrNotFound is wrapped by a handler when what was asked for does not
	// exist, and comes out of the client again.
	ErrNotFound = errors.New("not found")
	// ErrBadRequest is wrapped by a handler when the question makes no sense.
	ErrBadRequest = errors.New("bad request")
	// ErrUnavailable is wrapped by a handler when the daemon cannot answer yet.
	ErrUnavailable = errors.New("not available")
	// ErrLate is wrapped when a request reached the daemon after its deadline: it is not
	// carried out.
	ErrLate = errors.New("the request came too late and is not carried out")
	// ErrUnknown is wrapped when a change was asked for, and whether it is carried out is not
	// known.
	ErrUnknown = errors.New("the outcome is not known")
)

// statuses are the errors that keep their meaning over the socket.
var statuses = []struct {
	err  error
	code int
}{
	{ErrNotFound, http.StatusNotFound},
	{ErrBadRequest, http.StatusBadRequest},
	{ErrUnavailable, http.StatusServiceUnavailable},
	{ErrLate, http.StatusRequestTimeout},
	{ErrUnknown, http.StatusGatewayTimeout},
}

func codeOf(err error) int {
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	return http.StatusInternalServerError
}

// remoteError is an error as the daemon worded it.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

func errorOf(code int, text string) error {
	e := &remoteError{text: text}
	for _, s := range statuses {
		if code == s.code {
			e.kind = s.err
		}
	}
	return e
}

// failure is the body of an answer that is an error, and the last line of a
// stream that failed.
type failure struct {
	Error string `json:"error"`
}
