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

// recorder takes note of the status.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
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
