package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/config"
)

// Template passes requests on to an HTTP server that knows instances by its paths, for
// clouds without Nova: what a guest asks for is appended to a URL made for it.
type Template struct {
	*upstream
	scheme, before string
}

// NewTemplate reads a URL as config.ParseMetadataTemplate does. timeout 0: 60 s.
func NewTemplate(text string, timeout time.Duration, log *slog.Logger) (*Template, error) {
	parts, err := config.ParseMetadataTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("metadata URL: %w", err)
	}
	t := &Template{scheme: parts.Scheme, before: parts.Path}
	t.upstream = newUpstream(upstreamConfig{hosts: []string{parts.Host}, timeout: timeout, log: log}, t.rewrite)
	return t, nil
}

// ServeMetadata implements Backend. A path that leads upwards is answered here: what a
// server makes of one, escaped or not, is its own matter, and the instance is in front.
func (t *Template) ServeMetadata(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	parts := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' || c == '\\' })
	upwards := func(part string) bool {
		name, _, _ := strings.Cut(part, ";") // what follows is a parameter to some servers
		return name == ".."
	}
	if slices.ContainsFunc(parts, upwards) {
		answer(w, http.StatusNotFound, "There is no such document.")
		return Answered
	}
	return t.upstream.ServeMetadata(w, r, id)
}

func (t *Template) rewrite(p *httputil.ProxyRequest, id Identity) {
	words := []string{id.Instance, id.Project, id.Network, id.Port, id.Address.String()}
	var pairs []string
	for i, name := range config.MetadataPlaceholders() {
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
