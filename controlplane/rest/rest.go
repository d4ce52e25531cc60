// Package rest is what the OpenStack APIs share of HTTP: JSON, the only form that they have, and the address
// that a client finds in links.
package rest

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

// Origin is the scheme and host by which a client has reached the APIs, such as https://cloud.example:9876. A
// balancer that ends TLS names the scheme in X-Forwarded-Proto; it is told nobody but that client.
func Origin(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
