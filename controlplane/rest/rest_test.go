package rest

import (
	"crypto/tls"
	"net/http"
	"testing"
)

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		accept  []string
		content string
		accepts bool
		sends   bool
	}{
		{nil, "", true, true},
		{[]string{"*/*"}, "application/json", true, true},
		{[]string{"application/json;q=0.5, text/html"}, "application/json; charset=utf-8", true, true},
		{[]string{"text/html", "application/*"}, "Application/JSON", true, true},
		{[]string{"text/html"}, "text/plain", false, false},
		{[]string{"application/xml, text/plain"}, "application/x-www-form-urlencoded", false, false},
		{[]string{"application/jsonp"}, "application/json;", false, true},
		{[]string{"text/*"}, ";", false, false},
	} {
		r := &http.Request{Header: http.Header{"Accept": c.accept}}
		if c.content != "" {
			r.Header.Set("Content-Type", c.content)
		}
		if got := AcceptsJSON(r); got != c.accepts {
			t.Errorf("Accept %q: %t", c.accept, got)
		}
		if got := SendsJSON(r); got != c.sends {
			t.Errorf("Content-Type %q: %t", c.content, got)
		}
	}
}

func TestOrigin(t *testing.T) {
	for want, r := range map[string]*http.Request{
		"http://[fd00::1]:9876":      {Host: "[fd00::1]:9876"},
		"https://cloud.example":      {Host: "cloud.example", TLS: &tls.ConnectionState{}},
		"https://cloud.example:9876": {Host: "cloud.example:9876", Header: http.Header{"X-Forwarded-Proto": {"https"}}},
		"http://cloud.example":       {Host: "cloud.example", Header: http.Header{"X-Forwarded-Proto": {"gopher"}}},
	} {
		if got := Origin(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
