package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Template passes requests on to an HTTP server that knows instances by its paths, for
// clouds without Nova: what a guest asks for is appended to a URL made for it.
type Template struct {
	*upstream
	scheme, before string
}

// placeholders are the words that a template may have in braces.
var placeholders = []string{"instance", "project", "network", "port", "address"}

// NewTemplate reads a URL such as http://192.0.2.1:8080/nodes/{instance}, with any of
// {instance}, {project}, {network}, {port} and {address} in its path. timeout 0: 60 s.
func NewTemplate(text string, timeout time.Duration, log *slog.Logger) (*Template, error) {
	// Braces are no characters of a URL's path; it is looked at without them.
	u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("metadata URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("metadata URL: it has to begin with http:// or https:// and a host")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, errors.New("metadata URL: a query, a fragment or a user name has no place in it")
	}
	_, rest, _ := strings.Cut(text, "://")
	host, before, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(host, "{}") {
		return nil, errors.New("metadata URL: the host cannot depend on the instance")
	}
	for part := range strings.SplitSeq(before, "{") {
		word, after, closed := strings.Cut(part, "}")
		if closed && (!slices.Contains(placeholders, word) || strings.Contains(after, "}")) {
			return nil, fmt.Errorf("metadata URL: {%s} is none of %s", word, strings.Join(placeholders, ", "))
		}
	}
	if strings.Count(before, "{") != strings.Count(before, "}") {
		return nil, errors.New("metadata URL: a brace has no other end")
	}
	if u.Port() == "" {
		host += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	t := &Template{scheme: u.Scheme, before: "/" + strings.TrimSuffix(before, "/")}
	t.upstream = newUpstream(upstreamConfig{hosts: []string{host}, timeout: timeout, log: log}, t.rewrite)
	return t, nil
}

// ServeMetadata implements Backend. A path that leads upwards is answered here: what a
// server makes of one, escaped or not, is its own matter, and the instance is in front.
func (t *Template) ServeMetadata(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	if slices.Contains(strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' || c == '\\' }), "..") {
		answer(w, http.StatusNotFound, "There is no such document.")
		return Answered
	}
	return t.upstream.ServeMetadata(w, r, id)
}

func (t *Template) rewrite(p *httputil.ProxyRequest, id Identity) {
	words := []string{id.Instance, id.Project, id.Network, id.Port, id.Address.String()}
	var pairs []string
	for i, name := range placeholders {
		pairs = append(pairs, "{"+name+"}", url.PathEscape(words[i]))
	}
	prefix := strings.NewReplacer(pairs...).Replace(t.before)
	raw := strings.TrimSuffix(prefix, "/") + p.In.URL.EscapedPath()
	p.Out.URL.Scheme, p.Out.URL.RawPath = t.scheme, raw
	if plain, err := url.PathUnescape(raw); err == nil {
		p.Out.URL.Path = plain
	}
	p.Out.Header.Set(headerForwardedFor, id.Address.String())
}
