package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTemplate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	t.Cleanup(server.Close)
	b, err := NewTemplate(server.URL+"/of/{project}/{instance}/", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, Config{Backend: b})
	for path, want := range map[string]string{
		"/":                                "/of/red/inst-red1/",
		"/openstack/latest/meta_data.json": "/of/red/inst-red1/openstack/latest/meta_data.json",
		"/latest/meta-data/?recursive=1":   "/of/red/inst-red1/latest/meta-data/?recursive=1",
		"/a%2fb":                           "/of/red/inst-red1/a%2fb",
	} {
		if code, text, _ := ask(t, n.guest(red), "GET", path, nil, nil); code != 200 || text != want {
			t.Errorf("%s: %d %q, want %q", path, code, text, want)
		}
	}
	for _, path := range []string{"/../inst-blue1/openstack", "/%2e%2e/inst-blue1/openstack", "/x/..%2f..%2finst-blue1", "/x/..%5c..", "/..", "/..;/inst-blue1", "/x/..;a=b%2f..%3b%2finst-blue1"} {
		c := n.conn(red)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || a.StatusCode != 404 {
			t.Fatalf("%s: %+v %v", path, a, err)
		}
		a.Body.Close()
	}
}

// A target that is no path is sent to no server: one would take what is in it for the
// path, and with it another instance's.
func TestTargets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %q", r.RequestURI) }))
	t.Cleanup(server.Close)
	b, err := NewTemplate(server.URL+"/of/{instance}", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, Config{Backend: b})
	targets := []string{"GET a:http://192.0.2.1/of/inst-blue1/openstack", "GET a:of/inst-blue1/openstack", "GET http:of/inst-blue1?a", "GET *", "OPTIONS *"}
	for _, target := range targets {
		c := n.conn(red)
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: a\r\n\r\n", target)
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || a.StatusCode != 400 {
			t.Fatalf("%s: %+v %v", target, a, err)
		}
		a.Body.Close()
	}
	if got := n.count(Refused); got != int64(len(targets)) {
		t.Errorf("%d were refused", got)
	}
}

func TestBadTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "it has to begin with http:// or https:// and a host",
		"ftp://192.0.2.1/":               "it has to begin with http://",
		"ftp://a/{instance}":             "it has to begin with http://",
		"http:///x":                      "and a host",
		"http://:80/{instance}":          "and a host",
		"http://{instance}/":             "the host cannot depend on the instance",
		"http://{instance}.example.org/": "the host cannot depend on the instance",
		"http://192.0.2.1/{name}":        "{name} is none of instance, project, network, port, address",
		"http://[2001:db8::1]/{uuid}":    "{uuid} is none of instance, project, network, port, address",
		"http://192.0.2.1/{instance":     "a brace has no other end",
		"http://192.0.2.1/instance}":     "a brace has no other end",
		"http://a/x}{instance}":          "a brace has no other end",
		"http://a/?i={instance}":         "remove the query, the fragment or the user name",
		"http://user@192.0.2.1/":         "remove the query, the fragment or the user name",
		"http://[2001:db8::1/":           "it is no URL; write one like ",
	} {
		if err := CheckTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if b, err := NewTemplate(text, 0, nil); err == nil || !strings.HasPrefix(err.Error(), "metadata URL: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v %v", text, b, err)
		}
	}
}

func TestParseTemplate(t *testing.T) {
	for text, want := range map[string]TemplateURL{
		"http://192.0.2.1:8080/{project}/{instance}": {"http", "192.0.2.1:8080", "/{project}/{instance}"},
		"https://[2001:db8::1]/{address}/":           {"https", "[2001:db8::1]:443", "/{address}"},
		"http://nova.example.net":                    {"http", "nova.example.net:80", "/"},
	} {
		got, err := ParseTemplate(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		if err := CheckTemplate(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Servers are asked in turn, and one that took no connection last, for a while.
func TestOrderOfServers(t *testing.T) {
	a, b, c := &server{host: "a"}, &server{host: "b"}, &server{host: "c"}
	turn := &inTurn{hosts: []*server{a, b, c}}
	now := time.Now()
	order := func() (out string) {
		for _, s := range turn.order(now) {
			out += s.host
		}
		return out
	}
	if got := order() + " " + order() + " " + order(); got != "bca cab abc" {
		t.Errorf("in turn: %s", got)
	}
	b.failed(now)
	b.failed(now)
	if got := order() + " " + order() + " " + order(); got != "cab cab acb" {
		t.Errorf("after b has failed: %s", got)
	}
	now = now.Add(restTime)
	if got := order(); got != "bca" {
		t.Errorf("later: %s", got)
	}
	b.failed(now)
	if now = now.Add(restTime); !b.rests(now) || b.rests(now.Add(restTime)) {
		t.Error("it does not rest twice as long")
	}
	for range 10 {
		now = now.Add(longestRest)
		b.failed(now)
	}
	if b.rest != longestRest {
		t.Errorf("it rests for %s", b.rest)
	}
	if b.worked(); b.rests(now) {
		t.Error("it rests though it works")
	}
}
