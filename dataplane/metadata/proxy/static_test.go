package proxy

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	f := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const redData = `{"uuid": "inst-red1", "project_id": "red", "hostname": "red1.example.org", "launch_index": 0, "availability_zone": "az1",
 "public_keys": {"work": "ssh-ed25519 AAAA work", "home": "ssh-ed25519 BBBB home"}, "ec2": {"local-ipv4": "10.0.0.5"}}`

// Both layouts, as cloud-init walks them.
func TestStaticDocuments(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "inst-red1/meta_data.json", redData)
	write(t, dir, "inst-red1/user_data", "#cloud-config\n")
	write(t, dir, "inst-red1/content/0000", "a file\n")
	write(t, dir, "inst-blue1/meta_data.json", `{"uuid": `)
	write(t, dir, "vendor_data.json", "for all")
	if err := os.Symlink("../vendor_data.json", filepath.Join(dir, "inst-red1", "vendor_data.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "inst-red1", "network_data.json")); err != nil {
		t.Fatal(err)
	}
	var log text
	s, err := NewStatic(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	n := startNode(t, Config{Backend: s})
	c := n.guest(red)
	for _, tt := range []struct {
		path string
		code int
		want string
	}{
		{"/", 200, strings.Join(ec2Versions, "\n") + "\nopenstack"},
		{"/openstack", 200, strings.Join(openstackVersions, "\n")},
		{"/openstack/2018-08-27/meta_data.json", 200, redData},
		{"/openstack/latest/user_data", 200, "#cloud-config"},
		{"/openstack/latest/vendor_data2.json", 404, ""},
		{"/openstack/content/0000", 200, "a file"},
		{"/openstack/content/..%2f..%2fvendor_data.json", 404, ""},
		{"/openstack/1999-01-01/meta_data.json", 404, ""},
		{"/openstack/latest/inst-red1", 404, ""},
		{"/latest/", 200, "meta-data/\nuser-data"},
		{"/2009-04-04/user-data", 200, "#cloud-config"},
		{"/2009-04-04/meta-data/", 200, "ami-launch-index\nhostname\ninstance-id\nlocal-hostname\nlocal-ipv4\nplacement/\npublic-hostname\npublic-keys/"},
		{"/2009-04-04/meta-data/instance-id", 200, "inst-red1"},
		{"/2009-04-04/meta-data/local-ipv4", 200, "10.0.0.5"},
		{"/2009-04-04/meta-data/placement/availability-zone", 200, "az1"},
		{"/2009-04-04/meta-data/public-keys/", 200, "0=home\n1=work"},
		{"/2009-04-04/meta-data/public-keys/1/openssh-key", 200, "ssh-ed25519 AAAA work"},
		{"/2009-04-04/meta-data/instance-id/more", 404, ""},
		{"/2009-04-04/dynamic/instance-identity/document", 404, ""},
		{"/..%2f..%2fetc/passwd", 404, ""},
		{"/openstack/content/" + strings.Repeat("a", 4000), 404, ""},
		{"/openstack/content/a%00b", 404, ""},
	} {
		code, text, _ := ask(t, c, "GET", tt.path, nil, nil)
		if code != tt.code || code == 200 && text != tt.want {
			t.Errorf("%s: %d %q, want %d %q", tt.path, code, text, tt.code, tt.want)
		}
	}
	if got := log.String(); got != "" {
		t.Errorf("what guests ask for is in the log: %s", got)
	}
	if code, text, _ := ask(t, c, "GET", "/openstack/latest/vendor_data.json", nil, nil); code != 200 || text != "for all" {
		t.Errorf("a link to what instances share: %d %q", code, text)
	}
	if code, text, _ := ask(t, c, "GET", "/openstack/latest/network_data.json", nil, nil); code != 500 {
		t.Errorf("a link out of the directory: %d %q", code, text)
	}
	if code, _, header := ask(t, c, "POST", "/openstack/latest/password", nil, []byte("x")); code != 405 || header.Get("Allow") == "" {
		t.Errorf("POST: %d", code)
	}
	if code, text, header := ask(t, c, http.MethodHead, "/openstack/latest/meta_data.json", nil, nil); code != 200 || text != "" || header.Get("Content-Type") != "application/json" {
		t.Errorf("HEAD: %d %q %v", code, text, header)
	}
	if code, _, _ := ask(t, n.guest(blue), "GET", "/latest/meta-data/instance-id", nil, nil); code != 500 {
		t.Errorf("a file that is no JSON: %d", code)
	}
	for range 50 {
		ask(t, n.guest(blue), "GET", "/latest/meta-data/instance-id", nil, nil)
	}
	if lines := strings.Count(log.String(), "inst-blue1"); lines == 0 || lines > 20 {
		t.Errorf("51 requests for it are %d lines in the log", lines)
	}
}

// text is what is written, by several at once.
type text struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *text) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}
