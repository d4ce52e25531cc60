// Package mediatype tells whether requests of the OpenStack APIs take and send JSON, the only form
// that these have.
package mediatype

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// JSON is what the APIs take and answer.
const JSON = "application/json"

// AcceptsJSON tells whether a client takes JSON: by its Accept header, which may be missing.
func AcceptsJSON(r *http.Request) bool {
	for _, kind := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		name, _, _ := strings.Cut(kind, ";")
		if slices.Contains([]string{"", "*/*", "application/*", JSON}, strings.ToLower(strings.TrimSpace(name))) {
			return true
		}
	}
	return false
}

// SendsJSON tells whether a request's body says that it is JSON, or says nothing.
func SendsJSON(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	name, _, err := mime.ParseMediaType(kind)
	return kind == "" || err == nil && name == JSON
}
