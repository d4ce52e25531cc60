package proxy

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	var der []byte
	a.key, der = a.make(&x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true})
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.file = a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) make(c *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, der
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes a certificate and its key.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (cert, key string) {
	a.t.Helper()
	k, der := a.make(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage}})
	private, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "EC PRIVATE KEY", private)
}

// logged is a log that can be read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestNovaOverTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	cert, key := a.issue("nova", x509.ExtKeyUsageServerAuth)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	n := &nova{secret: secret}
	n.Server = httptest.NewUnstartedServer(n)
	n.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	n.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	n.StartTLS()
	t.Cleanup(n.Close)
	host, port := n.port(t)
	clientCert, clientKey := a.issue("node", x509.ExtKeyUsageClientAuth)
	strangerCert, strangerKey := other.issue("stranger", x509.ExtKeyUsageClientAuth)
	for name, tc := range map[string]struct {
		change func(*NovaConfig)
		status int
		log    string
	}{
		"all is right":             {func(*NovaConfig) {}, 200, ""},
		"insecure":                 {func(c *NovaConfig) { c.CA, c.Insecure = "", true }, 200, ""},
		"the wrong authority":      {func(c *NovaConfig) { c.CA = other.file }, 503, "certificate signed by unknown authority"},
		"the system's authorities": {func(c *NovaConfig) { c.CA = "" }, 503, "certificate signed by unknown authority"},
		"without a certificate":    {func(c *NovaConfig) { c.Certificate, c.Key = "", "" }, 0, "certificate required"},
		"a stranger's certificate": {func(c *NovaConfig) { c.Certificate, c.Key = strangerCert, strangerKey }, 0, "tls"},
		"without TLS":              {func(c *NovaConfig) { c.HTTPS = false }, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logged{}
			cfg := NovaConfig{Hosts: []string{host}, Port: port, HTTPS: true, CA: a.file, Certificate: clientCert, Key: clientKey, Secret: secretIn(t, secret), Log: slog.New(slog.NewTextHandler(log, nil))}
			tc.change(&cfg)
			b, err := NewNova(cfg)
			if err != nil {
				t.Fatal(err)
			}
			node := startNode(t, Config{Backend: b})
			code, text, _ := ask(t, node.guest(red), "GET", "/openstack", nil, nil)
			// TLS 1.3 refuses a client's certificate behind the handshake, so it is seen as
			// no answer or as no connection.
			if code != tc.status && (tc.status != 0 || code != 502 && code != 503) {
				t.Errorf("%d %q, want %d\n%s", code, text, tc.status, log)
			}
			if !strings.Contains(log.String(), tc.log) || tc.log == "" && log.String() != "" {
				t.Errorf("the log has %s", log)
			}
			if strings.Contains(text+log.String(), secret) {
				t.Error("the secret is told")
			}
		})
	}
	for name, change := range map[string]func(*NovaConfig){
		"no such authority": func(c *NovaConfig) { c.CA += "-none" },
		"no certificate":    func(c *NovaConfig) { c.CA = clientKey },
		"half a pair":       func(c *NovaConfig) { c.Key = "" },
		"another's key":     func(c *NovaConfig) { c.Key = strangerKey },
	} {
		cfg := NovaConfig{Hosts: []string{host}, HTTPS: true, CA: a.file, Certificate: clientCert, Key: clientKey, Secret: secretIn(t, secret)}
		change(&cfg)
		if _, err := NewNova(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A Nova that takes the connection and says nothing has taken none, as long as there is a
// TLS handshake to come; the next one is asked, and it is asked last from then on.
func TestNovaThatNeverShakesHands(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("nova", x509.ExtKeyUsageServerAuth)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	n := &nova{secret: secret}
	n.Server = httptest.NewUnstartedServer(n)
	n.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	n.StartTLS()
	t.Cleanup(n.Close)
	host, port := n.port(t)
	hung, err := net.Listen("tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), uint16(port)).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hung.Close() })
	b, err := NewNova(NovaConfig{Hosts: []string{host, "127.0.0.2"}, Port: port, HTTPS: true, CA: a.file, Secret: secretIn(t, secret), ConnectTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	node := startNode(t, Config{Backend: b})
	begin := time.Now()
	for range 10 {
		c := node.guest(red)
		if code, text, _ := ask(t, c, "POST", "/", nil, []byte("x")); code != 200 {
			t.Errorf("%d %q", code, text)
		}
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// An address to which there is no way costs a request the time of one connection, and is
// asked last from then on.
func TestNovaWithoutAWay(t *testing.T) {
	n, _ := withNova(t, Config{}, func(c *NovaConfig) {
		c.Hosts, c.ConnectTimeout = append(c.Hosts, "192.0.2.254"), 200*time.Millisecond
	})
	begin := time.Now()
	for range 20 {
		if code, _, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 200 {
			t.Errorf("%d", code)
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Different secrets are said in the log, without either.
func TestDifferentSecrets(t *testing.T) {
	log := &logged{}
	n, nova := withNova(t, Config{}, func(c *NovaConfig) { c.Log = slog.New(slog.NewTextHandler(log, nil)) })
	nova.secret = "another horse"
	if code, _, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 403 {
		t.Errorf("%d", code)
	}
	if got := n.count(Forbidden); got != 1 {
		t.Errorf("%d are forbidden", got)
	}
	if s := log.String(); !strings.Contains(s, "metadata_proxy_shared_secret") || strings.Contains(s, "horse") || strings.Count(s, "\n") != 1 {
		t.Errorf("the log has %s", s)
	}
	c := n.guest(red)
	for range 100 {
		ask(t, c, "GET", "/", nil, nil)
	}
	if lines := strings.Count(log.String(), "\n"); lines > 11 {
		t.Errorf("%d lines", lines)
	}
}

// What is told of a request.
func TestObserved(t *testing.T) {
	var mu sync.Mutex
	var told []Request
	n, nova := withNova(t, Config{Observe: func(r Request) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, r)
	}}, nil)
	teapot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	nova.handler.Store(&teapot)
	ask(t, n.guest(blue), "POST", "/openstack/latest/password?token=x", http.Header{"X-Token": {"y"}}, []byte("z"))
	ask(t, n.guest(nobody), "GET", "/a", nil, nil)
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 2 {
		t.Fatalf("%+v", told)
	}
	r := told[0]
	if r.Identity.Instance != "inst-blue1" || r.Method != "POST" || r.Path != "/openstack/latest/password" || r.Status != 418 || r.Outcome != Answered || r.Took <= 0 || time.Since(r.Time) > time.Minute {
		t.Errorf("%+v", r)
	}
	if r := told[1]; r.Identity != (Identity{}) || r.Status != 404 || r.Outcome != Unattributed {
		t.Errorf("%+v", r)
	}
}

// A Nova that has no shared secret is asked with the signature of an empty one, and the log
// says what that means.
func TestNovaWithoutSecret(t *testing.T) {
	behind := startNova(t, "")
	host, port := behind.port(t)
	var log text
	b, err := NewNova(NovaConfig{Hosts: []string{host}, Port: port, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t, Config{Backend: b})
	if code, body, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 200 || body != "inst-red1" {
		t.Errorf("%d %q", code, body)
	}
	if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "no shared secret") {
		t.Errorf("the log says %q", got)
	}
}

// What Nova sends behind its answer to one request is the answer to no other.
func TestAnswersOnOneConnection(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.Go(func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return nil // it is closed
			}
			group.Go(func() error {
				defer c.Close()
				in := bufio.NewReader(c)
				for before := 0; ; before++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						return nil
					}
					body := "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret"
					fmt.Fprintf(c, "HTTP/1.1 404 Not Found\r\nX-Before: %d\r\nContent-Length: %d\r\n\r\n", before, len(body))
					if r.Method == http.MethodHead {
						fmt.Fprint(c, body) // it does not know HEAD
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); _ = group.Wait() })
	h := newHarness(t, "127.0.0.1", l.Addr().(*net.TCPAddr).Port)
	for i := range 200 {
		got, err := h.exchange(t, []byte("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 0)
		if err != nil || !bytes.Contains(got, []byte(" 404 ")) || !bytes.Contains(got, []byte("X-Before: 0\r\n")) {
			t.Fatalf("request %d: %q, %v", i, got, err)
		}
	}
}
