package proxy

import (
	"net/http"
	"time"
)

// Request is what is told of a request that has come to its end, of one that could not be
// read, and of a connection that was refused: nothing of its header or its body.
type Request struct {
	Time     time.Time
	Identity Identity
	// Method and Path are empty for what was no request, or was not read. Path has no query, and
	// is as the guest wrote it.
	Method, Path string
	// Status is 0 where nothing was answered.
	Status  int
	Outcome Outcome
	Took    time.Duration
}

// hasPath tells whether what is asked for is a path. Of a target such as "a:http://b/c"
// net/http makes an opaque URL, which would be sent on as it is, in the place of the path
// that a backend chooses; "*" is in the place of a path.
func hasPath(r *http.Request) bool {
	return r.URL.Opaque == "" && (r.URL.Path == "" || r.URL.Path[0] == '/')
}

// recorder takes note of the status. Nothing but a request's one answer is told: what is only
// informational (RFC 9110 section 15.2) has no use here, and some clients take it for the answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
