package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// Error is an answer that is no success.
type Error struct {
	Status int
	Text   string
	// Title, if not empty: the answer has the form of the errors of Octavia's web framework, of which some
	// of its own are.
	Title string
	// Allow are the methods that a path has.
	Allow []string
}

func (e *Error) Error() string { return e.Text }

func fail(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...)}
}

// frameworkError is an error in the form of Octavia's web framework.
func frameworkError(status int, title, text string) *Error {
	return &Error{Status: status, Title: title, Text: text}
}

func invalid(format string, args ...any) *Error {
	return fail(http.StatusBadRequest, "Validation failure: "+format, args...)
}

func unsupported(format string, args ...any) *Error {
	return fail(http.StatusNotImplemented, "Provider 'ovn' does not support a requested option: "+format, args...)
}

func refused(format string, args ...any) *Error {
	return fail(http.StatusInternalServerError, "Provider 'ovn' reports error: "+format, args...)
}

// notFound names a kind of object as its messages do: Load Balancer, Listener, Pool, Member.
func notFound(kind, id string) *Error { return fail(http.StatusNotFound, "%s %s not found.", kind, id) }

// noSuch is notFound for what a body refers to.
func noSuch(kind, id string) *Error { return fail(http.StatusBadRequest, "%s %s not found.", kind, id) }

var (
	errPolicy        = fail(http.StatusForbidden, "Policy does not allow this request to be performed.")
	errNotAcceptable = frameworkError(http.StatusNotAcceptable, "Not Acceptable", "Only content type application/json is accepted.")
	errNoPath        = frameworkError(http.StatusNotFound, "Not Found", "")
)

// noMethod is the error of a path that has only other methods.
func noMethod(allow ...string) *Error {
	return &Error{Status: http.StatusMethodNotAllowed, Title: "Method Not Allowed", Allow: allow}
}

// fault is the body of an error.
type fault struct {
	Code   string  `json:"faultcode"`
	Text   string  `json:"faultstring"`
	Detail *string `json:"debuginfo"`
}

// frameworkFault is the body of an error with a title.
type frameworkFault struct {
	Code        int    `json:"code"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// answerError writes an error. What has no answer of its own is the server's fault: its text stays
// in the log.
func (a *API) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, identity.ErrUnknownToken) {
		identity.Refuse(w)
		return
	}
	e, known := errors.AsType[*Error](err)
	switch {
	case known:
	case errors.Is(err, ovsdb.ErrOutcomeUnknown):
		e = fail(http.StatusGatewayTimeout, "the database has not answered: the change may be committed, or not")
	case errors.Is(err, northbound.ErrUnavailable):
		e = fail(http.StatusServiceUnavailable, "the Northbound database is not available; %s", map[bool]string{true: "try again later", false: "nothing was changed"}[r.Method == http.MethodGet])
	case errors.Is(err, northbound.ErrBusy):
		e = fail(http.StatusServiceUnavailable, "others keep changing the same objects; nothing was changed")
	default:
		a.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		e = fail(http.StatusInternalServerError, "internal error; see the controller's log")
	}
	if !known && e.Status != http.StatusInternalServerError {
		w.Header().Set("Retry-After", "1")
	}
	if len(e.Allow) > 0 {
		w.Header().Set("Allow", strings.Join(e.Allow, ", "))
	}
	if e.Title != "" {
		a.answer(w, e.Status, frameworkFault{e.Status, e.Title, e.Text})
		return
	}
	f := fault{Code: "Client", Text: e.Text}
	if e.Status >= http.StatusInternalServerError {
		f.Code = "Server"
	}
	a.answer(w, e.Status, f)
}

func (a *API) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		a.log.Debug("the client closed its connection", "error", err)
	}
}
