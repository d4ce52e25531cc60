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
	// used are the placeholders of the URL.
	used []string
}

// NewTemplate reads a URL as ParseTemplate does. timeout 0: 60 s.
func NewTemplate(text string, timeout time.Duration, log *slog.Logger) (*Template, error) {
	parts, err := ParseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("metadata URL: %w", err)
	}
	t := &Template{scheme: parts.Scheme, before: parts.Path}
	for _, name := range placeholders {
		if parts.Has(name) {
			t.used = append(t.used, name)
		}
	}
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
	if err := t.tells(id); err != nil {
		t.warn(string(Forbidden), "a port is not answered: the URL would not name what is its own", "port", id.Port, "error", err)
		answer(w, http.StatusForbidden, "Metadata is refused: "+err.Error()+".")
		return Forbidden
	}
	return t.upstream.ServeMetadata(w, r, id)
}

// tells says why the URL made for a port would not name what is the port's alone. Its owner
// may write its instance, but not its project.
func (t *Template) tells(id Identity) error {
	for _, name := range t.used {
		if err := place(name, value(id, name)); err != nil {
			return err
		}
	}
	switch {
	case slices.Contains(t.used, "instance") && !slices.Contains(t.used, "project") && id.Project != "":
		return errors.New("metadata.template has {instance} without {project}, and the owner of a port may give it another project's instance")
	case slices.Contains(t.used, "address") && !id.Assigned:
		return errors.New("{address} is chosen by the VM")
	}
	return nil
}

// value is what a placeholder stands for.
func value(id Identity, placeholder string) string {
	switch placeholder {
	case "instance":
		return id.Instance
	case "project":
		return id.Project
	case "network":
		return id.Network
	case "port":
		return id.Port
	case "address":
		return id.Address.String()
	}
	return ""
}

func (t *Template) rewrite(p *httputil.ProxyRequest, id Identity) {
	var pairs []string
	for _, name := range t.used {
		pairs = append(pairs, "{"+name+"}", url.PathEscape(value(id, name)))
	}
	prefix := strings.NewReplacer(pairs...).Replace(t.before)
	raw := strings.TrimSuffix(prefix, "/") + p.In.URL.EscapedPath()
	p.Out.URL.Scheme, p.Out.URL.RawPath = t.scheme, raw
	if plain, err := url.PathUnescape(raw); err == nil {
		p.Out.URL.Path = plain
	}
	p.Out.Header.Set(headerForwardedFor, id.Address.String())
}
