package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// outside are values that could name something outside their place, or nothing.
var outside = []string{
	"", ".", "..", "...", "/", "//", "/etc", "../inst-victim", "../../of/victim/inst-victim", "x/../../victim/inst-victim", "x/../inst-victim", "inst-victim/",
	"%2e%2e", "..%2f..%2fvictim", "a%2fb", "%00", "a?b", "?", "a#b", "a;b", "..;", `..\inst-victim`, `a\b`, "a b", "a\x00b", "a\nb", "a\r\nHost: x", "a\x1b[2Jb", "a\x7fb",
	"ä", "\xff", "a{instance}b", "a&b", "a=b", "a@b", "a+b", strings.Repeat("a", 256),
}

var victim = Identity{Port: "p", Instance: "inst-red1", Project: "red", Network: "net-red", Address: netip.MustParseAddr("10.0.0.5"), Assigned: true}

// A port's owner may write its device_id, and names of other clouds are anybody's: whatever
// they are, nothing is read or asked for that is not the port's own, and the reason is told.
func TestValuesOutsideTheirPlace(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "inst-victim/meta_data.json", `{"uuid": "inst-victim", "project_id": "victim"}`)
	write(t, dir, "meta_data.json", `{"uuid": "all"}`)
	files, err := NewStatic(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	n := startNode(t, Config{Backend: files, MaxConnections: 4096})
	refused := func(n *node, what string, id Identity, path string) {
		t.Helper()
		n.instead.Store(&id)
		before := n.count(Forbidden)
		code, text, _ := ask(t, n.guest(red), "GET", path, nil, nil)
		if code != http.StatusForbidden || !strings.Contains(text, "{"+what+"}") || n.count(Forbidden) != before+1 {
			t.Errorf("%s %+v: %d %q, %d refusals", what, id, code, text, n.count(Forbidden)-before)
		}
	}
	for _, value := range outside[1:] { // without an instance nobody is known
		id := victim
		id.Instance = value
		for _, path := range []string{"/openstack/latest", "/openstack/latest/meta_data.json", "/openstack/content/0000", "/latest/", "/latest/meta-data/instance-id"} {
			refused(n, "instance", id, path)
		}
	}

	var asked atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Store(&r.RequestURI) }))
	t.Cleanup(server.Close)
	for placeholder, set := range map[string]func(*Identity, string){
		"instance": func(id *Identity, v string) { id.Instance = v }, "project": func(id *Identity, v string) { id.Project = v },
		"network": func(id *Identity, v string) { id.Network = v }, "port": func(id *Identity, v string) { id.Port = v },
	} {
		template := server.URL + "/of/{" + placeholder + "}"
		if placeholder == "instance" {
			template = server.URL + "/of/{project}/{instance}"
		}
		b, err := NewTemplate(template, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := startNode(t, Config{Backend: b, MaxConnections: 4096})
		for _, value := range outside {
			id := victim
			if set(&id, value); id.Instance != "" {
				refused(n, placeholder, id, "/openstack")
			}
		}
		if uri := asked.Load(); uri != nil {
			t.Errorf("%s: the server was asked for %s", template, *uri)
		}
	}
}

// The project of a port is what its owner cannot write: by it the instance is checked.
func TestInstanceOfAnotherProject(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "inst-red1/meta_data.json", `{"uuid": "inst-red1", "project_id": "red"}`)
	write(t, dir, "inst-red1/user_data", "red's")
	write(t, dir, "inst-bare/meta_data.json", `{"uuid": "inst-bare"}`)
	write(t, dir, "inst-bare/user_data", "bare")
	write(t, dir, "inst-none/user_data", "none")
	write(t, dir, "inst-broken/meta_data.json", `{"uuid": `)
	write(t, dir, "inst-broken/user_data", "broken")
	if err := os.Symlink("inst-red1", filepath.Join(dir, "inst-link")); err != nil {
		t.Fatal(err)
	}
	var log text
	s, err := NewStatic(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	n := startNode(t, Config{Backend: s, MaxConnections: 4096})
	for _, tt := range []struct {
		instance, project string
		code              int
		outcome           Outcome
		log               string
	}{
		{"inst-red1", "red", 200, Answered, ""},
		{"inst-link", "red", 200, Answered, ""},
		{"inst-red1", "blue", 404, Forbidden, "project_id"},
		{"inst-link", "blue", 404, Forbidden, "project_id"},
		{"inst-red1", "", 404, Forbidden, "project_id"},
		{"inst-bare", "red", 404, Forbidden, "project_id"},
		{"inst-bare", "", 200, Answered, ""}, // a cloud without projects
		{"inst-none", "red", 404, Answered, ""},
		{"inst-none", "", 200, Answered, ""},
		{"inst-broken", "red", 500, Answered, "meta_data.json"},
		{"inst-gone", "red", 404, Answered, ""},
	} {
		n.instead.Store(&Identity{Port: "p", Instance: tt.instance, Project: tt.project, Address: victim.Address})
		for _, path := range []string{"/openstack/latest/user_data", "/latest/user-data", "/openstack/latest"} {
			log.Reset()
			before := n.count(tt.outcome)
			code, body, _ := ask(t, n.guest(red), "GET", path, nil, nil)
			if code != tt.code || n.count(tt.outcome) != before+1 {
				t.Errorf("%s of %q asks for %s: %d %q, %s %d times", tt.instance, tt.project, path, code, body, tt.outcome, n.count(tt.outcome)-before)
			}
			if said := log.String(); tt.log == "" && said != "" || !strings.Contains(said, tt.log) && path == "/openstack/latest/user_data" {
				t.Errorf("%s of %q: the log says %q", tt.instance, tt.project, said)
			}
		}
	}
}

// A URL that names instances has to name their project, where ports have one; and an address
// that a guest has chosen names nobody.
func TestTemplatesThatTellNobody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	t.Cleanup(server.Close)
	without, chosen, six := victim, victim, victim
	without.Project = ""
	six.Address = netip.MustParseAddr("fe80::f816:3eff:fe00:5")
	chosen.Address, chosen.Assigned = netip.MustParseAddr("fe80::1"), false
	for _, tt := range []struct {
		template string
		id       Identity
		code     int
		want     string
	}{
		{"/{project}/{instance}", victim, 200, "/red/inst-red1/x"},
		{"/{instance}", victim, 403, "{project}"},
		{"/{instance}/{port}", victim, 403, "{project}"},
		{"/{instance}", without, 200, "/inst-red1/x"},
		{"/{project}/{instance}", without, 403, "{project}"},
		{"/{port}", victim, 200, "/p/x"},
		{"/all", victim, 200, "/all/x"},
		{"/{network}/{address}", victim, 200, "/net-red/10.0.0.5/x"},
		{"/{network}/{address}", six, 200, "/net-red/fe80::f816:3eff:fe00:5/x"},
		{"/{network}/{address}", chosen, 403, "{address}"},
		{"/{port}", chosen, 200, "/p/x"},
	} {
		b, err := NewTemplate(server.URL+tt.template, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := startNode(t, Config{Backend: b})
		n.instead.Store(&tt.id)
		if code, text, _ := ask(t, n.guest(red), "GET", "/x", nil, nil); code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s for %+v: %d %q, want %d %q", tt.template, tt.id, code, text, tt.code, tt.want)
		}
	}
}
