package metadataproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// What guests do, well or badly, and what they get.
func TestGuests(t *testing.T) {
	w := newWorld(t)
	p := w.start(nil)
	red := w.guest(atRed)
	for from, want := range map[string]string{atRed: "200 inst-red red 10.0.0.5 0", atBlue: "200 inst-blue blue 10.0.0.5 0", atBlue6: "200 inst-blue blue fe80::f816:3eff:fe00:5 0", atNobody: "404 This address belongs to no instance that is known here."} {
		if got := w.ask(w.guest(from), "GET", "/openstack", nil, nil); got != want {
			t.Errorf("%s: %s", from, got)
		}
	}
	forged := http.Header{}
	for _, name := range []string{"X-Forwarded-For", "X-Instance-ID", "X-Tenant-ID", "X-Instance-ID-Signature", "X-OVN-Network-ID", "X_Instance_ID", "Forwarded"} {
		forged[name] = []string{"inst-blue", "evil"}
	}
	if got := w.ask(red, "GET", "/openstack", forged, nil); got != "200 inst-red red 10.0.0.5 0" {
		t.Errorf("forged headers: %s", got)
	}
	if got := w.ask(red, "POST", "/openstack/latest/password", nil, make([]byte, 1<<20)); got != "200 inst-red red 10.0.0.5 1048576" {
		t.Errorf("a large body: %s", got)
	}
	if got := w.ask(w.guest(atRed), "POST", "/openstack/latest/password", nil, make([]byte, 1<<20+1)); !strings.HasPrefix(got, "413 ") {
		t.Errorf("a body that is too large: %s", got)
	}
	// In pieces, byte by byte.
	c := w.steered(atRed)
	for _, b := range []byte("POST /openstack/latest/password HTTP/1.1\r\nHost: 169.254.169.254\r\nContent-Length: 5\r\n\r\nhello") {
		_, _ = c.Write([]byte{b})
	}
	if got := answer(t, c); got != "200 inst-red red 10.0.0.5 5" {
		t.Errorf("in pieces: %s", got)
	}
	var requests []status.MetadataRequest
	if err := w.admin("/v1/metadata/requests", &requests); err != nil || len(requests) < 7 {
		t.Errorf("%+v %v", requests, err)
	}
	first := requests[0]
	if first.Method != "GET" || first.Path != "/openstack" || first.Took <= 0 {
		t.Errorf("%+v", first)
	}
	s, err := p.status()
	if err != nil || s.Ports != 2 || len(s.Listeners) != 2 {
		t.Errorf("%+v %v", s, err)
	}
	w.metrics(`sluice_metadata_requests_total{outcome="answered"} 6`, `sluice_metadata_requests_total{outcome="too-large"} 1`, `sluice_metadata_requests_total{outcome="unattributed"} 1`,
		`sluice_metadata_listeners{state="serving"} 2`, `sluice_metadata_identities{kind="port"} 2`, "sluice_metadata_request_seconds_count 8")
	for _, secret := range []string{"horse", "evil", "hello"} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %s:\n%s", secret, w.log)
		}
	}
	if lines := strings.Count(w.log.String(), "msg=\"metadata request\""); lines != 2 {
		t.Errorf("%d lines of requests, want the first of each port", lines)
	}
}

// metrics wants lines of /metrics, and health.
func (w *world) metrics(want ...string) {
	w.t.Helper()
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		a, err := http.Get("http://" + w.health + path)
		if err != nil {
			w.t.Error(err)
			continue
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil || a.StatusCode != 200 {
			w.t.Errorf("%s: %d %s %v", path, a.StatusCode, text, err)
		}
		for _, line := range want {
			if path == "/metrics" && !strings.Contains(string(text), line+"\n") {
				w.t.Errorf("no %s in\n%s", line, text)
			}
		}
	}
}

func answer(t *testing.T, c net.Conn) string {
	t.Helper()
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error()
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", a.StatusCode, strings.TrimSpace(string(text)))
}

// One VM takes all the connections that it may have and says nothing on them; another
// one is answered.
func TestSilentGuest(t *testing.T) {
	w := newWorld(t)
	w.start(nil)
	for range 64 {
		fmt.Fprint(w.steered(atRed), "GET / HTTP/1.1\r\nX-Slow: ")
	}
	time.Sleep(200 * time.Millisecond)
	begin := time.Now()
	if got := w.ask(w.guest(atBlue), "GET", "/", nil, nil); !strings.HasPrefix(got, "200 inst-blue") || time.Since(begin) > 5*time.Second {
		t.Errorf("the other VM: %s after %s", got, time.Since(begin))
	}
	if got := w.ask(w.guest(atRed), "GET", "/", nil, nil); strings.HasPrefix(got, "200") {
		t.Errorf("the 65th connection: %s", got)
	}
	// Its header has 10 seconds.
	eventually(t, "it may ask again", func() bool { return strings.HasPrefix(w.ask(w.guest(atRed), "GET", "/", nil, nil), "200 inst-red") })
}

// The limit of one VM is not another's.
func TestRate(t *testing.T) {
	w := newWorld(t)
	host := netip.MustParseAddrPort(w.nova.Listener.Addr().String())
	w.configure(fmt.Sprintf("backend: nova, nova: {hosts: [%s], port: %d, secretFile: %s/secret}, limits: {rate: 1, burst: 5}", host.Addr(), host.Port(), w.dir))
	w.start(nil)
	limited := 0
	c := w.guest(atRed)
	for range 12 {
		if strings.HasPrefix(w.ask(c, "GET", "/", nil, nil), "429 ") {
			limited++
		}
	}
	if limited < 4 {
		t.Errorf("%d of 12 were limited", limited)
	}
	if got := w.ask(w.guest(atBlue), "GET", "/", nil, nil); !strings.HasPrefix(got, "200 ") {
		t.Error(got)
	}
}

// Nova that is not there, hangs, or has another secret; and one of several that is dead.
func TestNovas(t *testing.T) {
	w := newWorld(t)
	host := netip.MustParseAddrPort(w.nova.Listener.Addr().String())
	hung, err := net.Listen("tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), host.Port()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	for name, tc := range map[string]struct {
		hosts, want string
		most        time.Duration
	}{
		"one is dead":          {"127.0.0.2, 127.0.0.1", "200 inst-red", 30 * time.Second},
		"there is no way":      {"198.51.100.254, 127.0.0.1", "200 inst-red", 30 * time.Second},
		"all are dead":         {"127.0.0.2", "503 The metadata service is temporarily unavailable.", 10 * time.Second},
		"it hangs":             {"127.0.0.3", "504 The metadata service did not answer in time.", 20 * time.Second},
		"it has no such name":  {"nova.invalid", "503 ", 20 * time.Second},
		"its IPv6 has no host": {"\"::1\"", "503 ", 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w.configure(fmt.Sprintf("backend: nova, nova: {hosts: [%s], port: %d, secretFile: %s/secret, connectTimeout: 300ms, timeout: 2s}", tc.hosts, host.Port(), w.dir))
			p := w.start(nil)
			defer func() { _ = p.end(15) }()
			c := w.guest(atRed)
			for range 4 {
				begin := time.Now()
				if got := w.ask(c, "GET", "/", nil, nil); !strings.HasPrefix(got, tc.want) || time.Since(begin) > tc.most {
					t.Errorf("%s after %s", got, time.Since(begin))
				}
			}
		})
	}
}

// The secret is read anew when its file changes, as others replace files: by a rename.
func TestSecretChanges(t *testing.T) {
	w := newWorld(t)
	w.start(nil)
	c := w.guest(atRed)
	if got := w.ask(c, "GET", "/", nil, nil); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	w.nova.secret.Store("battery staple")
	if got := w.ask(c, "GET", "/", nil, nil); !strings.HasPrefix(got, "403 ") {
		t.Errorf("with another secret: %s", got)
	}
	next := filepath.Join(w.dir, "next")
	if err := os.WriteFile(next, []byte("battery staple\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(w.dir, "secret")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new secret is used", func() bool { return strings.HasPrefix(w.ask(c, "GET", "/", nil, nil), "200 ") })
	if log := w.log.String(); strings.Contains(log, "staple") || strings.Contains(log, "horse") || !strings.Contains(log, "metadata_proxy_shared_secret") {
		t.Error("the log has a secret, or does not tell of the difference")
	}
}

// Clouds without Nova.
func TestOtherBackends(t *testing.T) {
	w := newWorld(t)
	docs := filepath.Join(w.dir, "docs", "inst-red")
	if err := os.MkdirAll(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "meta_data.json"), []byte(`{"uuid": "inst-red", "project_id": "red", "hostname": "red1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.URL.Path) }), ReadHeaderTimeout: time.Second}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	for section, asks := range map[string]map[string]string{
		"backend: files, files: " + w.dir + "/docs": {
			"/openstack/latest/meta_data.json": `200 {"uuid": "inst-red", "project_id": "red", "hostname": "red1"}`, "/2009-04-04/meta-data/hostname": "200 red1", "/openstack/latest/../../inst-blue/x": "404 There is no such document.",
		},
		"backend: template, template: 'http://" + l.Addr().String() + "/{project}/{instance}'": {"/openstack": "200 /red/inst-red/openstack"},
	} {
		w.configure(section)
		p := w.start(nil)
		for path, want := range asks {
			if got := w.ask(w.guest(atRed), "GET", path, nil, nil); got != want {
				t.Errorf("%s: %s: %s, want %s", section, path, got, want)
			}
		}
		if err := p.end(15); err != nil {
			t.Error(err)
		}
	}
}
