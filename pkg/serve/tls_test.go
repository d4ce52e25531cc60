package serve

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest/pki"
)

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *pki.Authority, name string) pki.Files {
	t.Helper()
	f, err := a.Issue(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func place(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// shows is TLS of a client that shows a certificate, if there is one, whoever is asked for.
func shows(t *testing.T, client *pki.Files) *tls.Config {
	t.Helper()
	c := &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{}, nil
	}}
	if client == nil {
		return c
	}
	pair, err := tls.LoadX509KeyPair(client.Cert, client.Key)
	if err != nil {
		t.Fatal(err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return c
}

// secure asks over a new connection. It returns the name in the server's certificate.
func secure(t *testing.T, at string, client *pki.Files) (server string, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: shows(t, client), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: bound}).Get("https://" + at + "/")
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		return "", fmt.Errorf("%s %s: %w", resp.Proto, resp.Status, err)
	}
	return resp.TLS.PeerCertificates[0].Subject.CommonName, nil
}

// alert is the error by which the server ends the connection of a client that asks for nothing.
func alert(t *testing.T, at string, client *pki.Files) error {
	t.Helper()
	c, err := tls.Dial("tcp", at, shows(t, client))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetReadDeadline(time.Now().Add(bound)); err != nil {
		t.Fatal(err)
	}
	for { // HTTP/2 begins with frames of the server
		if _, err := c.Read(make([]byte, 1024)); err != nil {
			return err
		}
	}
}

func TestClientCA(t *testing.T) {
	ours, others := authority(t), authority(t)
	own, client, stranger := issue(t, ours, "server"), issue(t, ours, "client"), issue(t, others, "client")
	for family, address := range families {
		t.Run(family, func(t *testing.T) {
			ca := filepath.Join(t.TempDir(), "ca.pem")
			place(t, own.CA, ca)
			s := newServer(Config{Certificate: own.Cert, Key: own.Key, ClientCA: ca})
			s.Mount("/", text("ok"))
			at, _ := run(t, s, address)
			refuses := func(c *pki.Files, why string) {
				t.Helper()
				if err := alert(t, at, c); !strings.Contains(err.Error(), why) {
					t.Errorf("got %v, want an alert: %s", err, why)
				}
			}
			answers := func(c *pki.Files) {
				t.Helper()
				if _, err := secure(t, at, c); err != nil {
					t.Error(err)
				}
			}
			refuses(nil, "certificate required")
			refuses(&stranger, "unknown certificate authority")
			answers(&client)
			place(t, stranger.CA, ca) // another authority, without a restart
			refuses(&client, "unknown certificate authority")
			answers(&stranger)
		})
	}
}

// A certificate that has changed is served to the next connection, by both forms of TLS.
func TestChangedCertificate(t *testing.T) {
	a := authority(t)
	for name, config := range map[string]func(dir string) Config{
		"certificate": func(dir string) Config { return Config{Certificate: dir + "/cert.pem", Key: dir + "/key.pem"} },
		"webConfig": func(dir string) Config {
			file := filepath.Join(dir, "web.yaml")
			if err := os.WriteFile(file, []byte("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return Config{WebConfig: file}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := config(dir)
			var at string
			for i, name := range []string{"first", "second"} {
				f := issue(t, a, name)
				place(t, f.Cert, dir+"/cert.pem")
				place(t, f.Key, dir+"/key.pem")
				if i == 0 {
					s := newServer(c)
					s.Mount("/", text("ok"))
					at, _ = run(t, s, "127.0.0.1:0")
				}
				if got, err := secure(t, at, nil); err != nil || got != name {
					t.Errorf("the certificate of %q, %v; want %q", got, err, name)
				}
			}
		})
	}
}

// While the files do not belong together the last ones stay in use, and the log says so once.
func TestHalfChangedCertificate(t *testing.T) {
	a, dir := authority(t), t.TempDir()
	first, second := issue(t, a, "first"), issue(t, a, "second")
	place(t, first.Cert, dir+"/cert.pem")
	place(t, first.Key, dir+"/key.pem")
	var log lockedBuffer
	s := New(Config{Certificate: dir + "/cert.pem", Key: dir + "/key.pem"}, slog.New(slog.NewTextHandler(&log, nil)))
	s.Mount("/", text("ok"))
	at, _ := run(t, s, "127.0.0.1:0")
	place(t, second.Cert, dir+"/cert.pem")
	for range 3 {
		if got, err := secure(t, at, nil); err != nil || got != "first" {
			t.Errorf("the certificate of %q, %v", got, err)
		}
	}
	place(t, second.Key, dir+"/key.pem")
	if got, err := secure(t, at, nil); err != nil || got != "second" {
		t.Errorf("the certificate of %q, %v", got, err)
	}
	for _, line := range []string{"TLS files cannot be read; the last ones stay in use", "TLS files can be read again"} {
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", line, n, log.String())
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
