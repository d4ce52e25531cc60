package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nova is a stand-in that checks what Nova checks: the signature, and that a header is
// there once.
type nova struct {
	*httptest.Server
	secret  string
	asked   atomic.Int64
	handler atomic.Pointer[http.HandlerFunc]

	mu   sync.Mutex
	last *http.Request
	body []byte
}

func startNova(t *testing.T, secret string) *nova {
	t.Helper()
	n := &nova{secret: secret}
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Close)
	return n
}

func (n *nova) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.asked.Add(1)
	body, _ := io.ReadAll(r.Body)
	n.mu.Lock()
	n.last, n.body = r, body
	n.mu.Unlock()
	if h := n.handler.Load(); h != nil {
		(*h)(w, r)
		return
	}
	for _, name := range []string{headerInstance, headerProject, headerSignature, headerForwardedFor} {
		if len(r.Header.Values(name)) != 1 {
			http.Error(w, name, http.StatusBadRequest)
			return
		}
	}
	if r.Header.Get(headerSignature) != Sign([]byte(n.secret), r.Header.Get(headerInstance)) {
		http.Error(w, "signature", http.StatusForbidden)
		return
	}
	fmt.Fprint(w, r.Header.Get(headerInstance))
}

func (n *nova) port(t *testing.T) (string, int) {
	t.Helper()
	p := netip.MustParseAddrPort(n.Listener.Addr().String())
	return p.Addr().String(), int(p.Port())
}

// node is a proxy on loopback, whose guests are told apart by the address that they
// connect from.
type node struct {
	t        *testing.T
	server   *Server
	addr     string
	outcomes sync.Map                 // Outcome to *atomic.Int64
	instead  atomic.Pointer[Identity] // of whoever asks
	without  atomic.Pointer[string]   // an address that is nobody's
}

var guests = map[netip.Addr]Identity{
	netip.MustParseAddr("127.0.0.11"): {Port: "port-red", Instance: "inst-red1", Project: "red", Network: "net-red", Address: netip.MustParseAddr("10.0.0.5")},
	netip.MustParseAddr("127.0.0.12"): {Port: "port-blue", Instance: "inst-blue1", Project: "blue", Network: "net-blue", Address: netip.MustParseAddr("10.0.0.5")},
	netip.MustParseAddr("127.0.0.13"): {Port: "port-new", Address: netip.MustParseAddr("10.0.0.6")},
}

func startNode(t *testing.T, cfg Config) *node {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, addr: l.Addr().String()}
	observe := cfg.Observe
	cfg.Observe = func(r Request) {
		if observe != nil {
			observe(r)
		}
		v, _ := n.outcomes.LoadOrStore(r.Outcome, new(atomic.Int64))
		v.(*atomic.Int64).Add(1)
	}
	n.server = New(cfg)
	done := make(chan error, 1)
	go func() {
		done <- n.server.Serve(l, func(_, remote netip.AddrPort) (Identity, bool) {
			if id := n.instead.Load(); id != nil {
				return *id, true
			}
			id, ok := guests[remote.Addr()]
			if a := n.without.Load(); a != nil && *a == remote.Addr().String() {
				return Identity{}, false
			}
			return id, ok
		})
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := n.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *node) count(o Outcome) int64 {
	v, ok := n.outcomes.Load(o)
	if !ok {
		return 0
	}
	return v.(*atomic.Int64).Load()
}

// guest is an HTTP client that connects from an address.
func (n *node) guest(from string) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		return d.DialContext(ctx, network, n.addr)
	}}
	n.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (n *node) conn(from string) net.Conn {
	n.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp4", n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func ask(t *testing.T, c *http.Client, method, path string, header http.Header, body []byte) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(method, "http://169.254.169.254"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, strings.TrimSpace(string(text)), a.Header
}

var red, blue, fresh, nobody = "127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14"

const secret = "correct horse"

func secretIn(t testing.TB, text string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// withNova is a node in front of a Nova.
func withNova(t *testing.T, cfg Config, change func(*NovaConfig)) (*node, *nova) {
	t.Helper()
	n := startNova(t, secret)
	host, port := n.port(t)
	nc := NovaConfig{Hosts: []string{host}, Port: port, Secret: secretIn(t, secret+"\n")}
	if change != nil {
		change(&nc)
	}
	b, err := NewNova(nc)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Backend = b
	return startNode(t, cfg), n
}

func TestEachGuestGetsItsOwn(t *testing.T) {
	n, _ := withNova(t, Config{}, nil)
	var group sync.WaitGroup
	for from, want := range map[string]string{red: "inst-red1", blue: "inst-blue1"} {
		for range 8 {
			group.Go(func() {
				c := n.guest(from)
				for range 50 {
					if code, text, _ := ask(t, c, "GET", "/openstack", nil, nil); code != 200 || text != want {
						t.Errorf("%s got %d %q", from, code, text)
					}
				}
			})
		}
	}
	group.Wait()
	for _, from := range []string{nobody, fresh} {
		if code, _, _ := ask(t, n.guest(from), "GET", "/openstack", nil, nil); code != 404 {
			t.Errorf("%s got %d", from, code)
		}
	}
	if got, none := n.count(Answered), n.count(Unattributed); got != 800 || none != 2 {
		t.Errorf("%d answered, %d unattributed", got, none)
	}
}

// Whatever a guest says of itself does not arrive, also in the spellings that a WSGI
// server takes for the same.
func TestForgedHeaders(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	forged := http.Header{"Metadata-Token": {"kept"}, "Accept": {"text/plain"}, "Connection": {"X-Instance-ID, keep-alive"}}
	for _, name := range []string{
		"X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Host", "X_Forwarded_For", "Forwarded", "X-OVN-Network-ID", "X-Ovn_Network-Id", "X-Neutron-Router-ID",
		"X-Instance-ID", "x_instance_id", "X-Instance-ID-Signature", "X-Instance_ID-Signature", "X-Tenant-ID", "X_TENANT_ID", "X-Metadata-Provider", "X-Metadata-Provider-Signature", "X-Real-IP",
	} {
		forged[name] = []string{"inst-blue1", "evil"}
	}
	code, text, _ := ask(t, n.guest(red), "GET", "/latest/meta-data/?a=1;b=%zz", forged, nil)
	if code != 200 || text != "inst-red1" {
		t.Errorf("got %d %q", code, text)
	}
	nova.mu.Lock()
	defer nova.mu.Unlock()
	for name, values := range nova.last.Header {
		for _, v := range values {
			if v == "evil" || v == "inst-blue1" {
				t.Errorf("%s: %q arrived", name, v)
			}
		}
	}
	if h := nova.last.Header; h.Get("Metadata-Token") != "kept" || h.Get("X-Forwarded-For") != "10.0.0.5" || h.Get("X-Tenant-ID") != "red" {
		t.Errorf("header %v", h)
	}
	if q := nova.last.URL.RawQuery; q != "a=1;b=%zz" {
		t.Errorf("query %q", q)
	}
}

func TestStatusOfNovaIsPassedOn(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	for _, code := range []int{200, 301, 400, 401, 403, 404, 405, 409, 413, 429, 500, 502, 503, 504} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://192.0.2.1/")
			w.Header().Set("X-Of-Nova", "yes")
			w.WriteHeader(code)
			fmt.Fprintf(w, "it is %d", code)
		})
		nova.handler.Store(&h)
		got, text, header := ask(t, n.guest(red), "GET", "/openstack", nil, nil)
		if got != code || text != fmt.Sprintf("it is %d", code) || header.Get("X-Of-Nova") != "yes" {
			t.Errorf("Nova's %d came as %d %q", code, got, text)
		}
	}
}

func TestBodies(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	body := make([]byte, 1<<20)
	_, _ = rand.Read(body)
	if code, _, _ := ask(t, n.guest(red), "POST", "/openstack/latest/password", nil, body); code != 200 || !bytes.Equal(nova.body, body) {
		t.Errorf("got %d, %d bytes arrived", code, len(nova.body))
	}
	if code, _, _ := ask(t, n.guest(red), "POST", "/openstack/latest/password", nil, append(body, 0)); code != 413 || n.count(TooLarge) != 1 {
		t.Errorf("one byte more: %d", code)
	}
	// In pieces, as a slow guest sends it.
	c := n.conn(red)
	for _, piece := range []string{"POST /openstack/latest/pass", "word HTTP/1.1\r\nHost: 169.254.169.254\r\nTransfer-Enc", "oding: chunked\r\n\r\n5\r\nhel", "lo\r\n0\r\nX-Instance-ID: inst-blue1\r\n\r\n"} {
		fmt.Fprint(c, piece)
		time.Sleep(5 * time.Millisecond)
	}
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if string(nova.body) != "hello" || a.StatusCode != 200 {
		t.Errorf("got %d, %q arrived", a.StatusCode, nova.body)
	}
}

func TestLargeAnswerIsWhole(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	want := make([]byte, 4<<20)
	_, _ = rand.Read(want)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) })
	nova.handler.Store(&h)
	a, err := n.guest(blue).Get("http://169.254.169.254/openstack/latest/user_data")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if got, err := io.ReadAll(a.Body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A guest that sends its header or its body byte by byte is let go; others are answered
// meanwhile.
func TestSlowGuests(t *testing.T) {
	n, nova := withNova(t, Config{HeaderTimeout: 200 * time.Millisecond, BodyTimeout: 200 * time.Millisecond, MaxConnections: 8}, nil)
	header, body := n.conn(red), n.conn(red)
	fmt.Fprint(header, "GET / HTTP/1.1\r\nX-Slow: ")
	fmt.Fprint(body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
	if code, text, _ := ask(t, n.guest(blue), "GET", "/", nil, nil); code != 200 || text != "inst-blue1" {
		t.Errorf("meanwhile: %d %q", code, text)
	}
	a, err := http.ReadResponse(bufio.NewReader(body), nil)
	if err != nil || a.StatusCode != 408 {
		t.Fatalf("slow body: %v %v", a, err)
	}
	a.Body.Close()
	rest, err := io.ReadAll(header)
	if err != nil || strings.Contains(string(rest), "200 OK") {
		t.Errorf("slow header: %q %v", rest, err)
	}
	if n := nova.asked.Load(); n != 1 {
		t.Errorf("Nova was asked %d times", n)
	}
}

func TestLargeHeader(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	if code, _, _ := ask(t, n.guest(red), "GET", "/", http.Header{"X-Fits": {strings.Repeat("a", 12<<10)}}, nil); code != 200 {
		t.Errorf("12 KiB: %d", code)
	}
	// A guest that still writes when the server has had enough may see a reset.
	c := n.conn(red)
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Large: %s\r\n\r\n", strings.Repeat("a", 17<<10))
	if a, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && a.StatusCode != 431 {
		t.Errorf("17 KiB: %d", a.StatusCode)
	}
	if nova.asked.Load() != 1 || n.count(TooLarge) != 1 || n.count(Answered) != 1 {
		t.Errorf("Nova was asked %d times; too large %d, answered %d", nova.asked.Load(), n.count(TooLarge), n.count(Answered))
	}
}

func TestMethods(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	for _, m := range []string{"TRACE", "CONNECT"} {
		c := n.conn(red)
		fmt.Fprintf(c, "%s 192.0.2.1:80 HTTP/1.1\r\nHost: 192.0.2.1:80\r\n\r\n", m)
		a, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: m})
		if err != nil || a.StatusCode != 405 && a.StatusCode != 400 {
			t.Fatalf("%s: %+v %v", m, a, err)
		}
		a.Body.Close()
	}
	if code, _, _ := ask(t, n.guest(red), "GET", "/", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, nil); code != 405 {
		t.Errorf("upgrade: %d", code)
	}
	if nova.asked.Load() != 0 {
		t.Error("Nova was asked")
	}
	// The absolute form names no other server.
	c := n.conn(red)
	fmt.Fprint(c, "GET http://192.0.2.1/openstack HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n")
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || a.StatusCode != 200 {
		t.Fatalf("absolute form: %+v %v", a, err)
	}
	a.Body.Close()
}

func TestRateOfAPort(t *testing.T) {
	n, _ := withNova(t, Config{Rate: 0.1, Burst: 5}, nil)
	limited := 0
	for range 8 {
		code, _, header := ask(t, n.guest(red), "GET", "/", nil, nil)
		if code == 429 {
			limited++
			if header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	if limited != 3 {
		t.Errorf("%d of 8 were limited, want 3", limited)
	}
	if code, _, _ := ask(t, n.guest(blue), "GET", "/", nil, nil); code != 200 {
		t.Errorf("the other port: %d", code)
	}
}

// One port has so many connections and no more; those of a port that goes are closed.
func TestConnectionsOfAPort(t *testing.T) {
	n, _ := withNova(t, Config{MaxConnections: 4}, nil)
	var open []net.Conn
	for range 4 {
		c := n.conn(red)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || a.StatusCode != 200 {
			t.Fatalf("%v %v", a, err)
		}
		a.Body.Close()
		open = append(open, c)
	}
	c := n.conn(red)
	if b, err := io.ReadAll(c); len(b) != 0 {
		t.Errorf("the fifth got %q %v", b, err)
	}
	if code, _, _ := ask(t, n.guest(blue), "GET", "/", nil, nil); code != 200 {
		t.Errorf("the other port: %d", code)
	}
	n.without.Store(&red)
	n.server.Check()
	for _, c := range open {
		if b, err := io.ReadAll(c); len(b) != 0 {
			t.Errorf("after the port has gone: %q %v", b, err)
		}
	}
	if got := n.server.Connections(); got != 1 { // blue's
		t.Errorf("%d connections are open", got)
	}
	n.without.Store(nil)
	if code, _, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 200 {
		t.Errorf("a port that is back: %d", code)
	}
}

// An address that becomes another port's gives that port's data to no connection of
// the one before.
func TestAddressOfAnotherPort(t *testing.T) {
	n, _ := withNova(t, Config{}, nil)
	c := n.guest(red)
	if code, text, _ := ask(t, c, "GET", "/", nil, nil); code != 200 || text != "inst-red1" {
		t.Fatalf("%d %q", code, text)
	}
	id := guests[netip.MustParseAddr(blue)]
	n.instead.Store(&id)
	if code, text, _ := ask(t, c, "GET", "/", nil, nil); code != 404 {
		t.Errorf("on the connection of before: %d %q", code, text)
	}
	if code, text, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 200 || text != "inst-blue1" {
		t.Errorf("on a new one: %d %q", code, text)
	}
}

// A Nova that takes no connection, one that never answers, one that breaks off; and
// another one that does.
func TestBrokenNova(t *testing.T) {
	closed, err := net.Listen("tcp4", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(closed.Addr().String()).Port()
	_ = closed.Close()
	n, _ := withNova(t, Config{}, func(c *NovaConfig) { c.Hosts, c.Port = []string{"127.0.0.2"}, int(port) })
	if code, _, header := ask(t, n.guest(red), "GET", "/", nil, nil); code != 503 || n.count(Unreachable) != 1 || header.Get("Retry-After") == "" {
		t.Errorf("refused: %d", code)
	}

	// One of two takes no connection: every request is answered, with its body.
	n, nova := withNova(t, Config{}, func(c *NovaConfig) { c.Hosts = append(c.Hosts, "127.0.0.2") })
	for range 6 {
		if code, _, _ := ask(t, n.guest(red), "POST", "/", nil, []byte("body")); code != 200 || string(nova.body) != "body" {
			t.Errorf("with another host: %d, body %q", code, nova.body)
		}
	}

	n, nova = withNova(t, Config{}, func(c *NovaConfig) { c.Timeout = 200 * time.Millisecond })
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	nova.handler.Store(&hang)
	if code, _, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 504 || n.count(TimedOut) != 1 {
		t.Errorf("black hole: %d", code)
	}
	cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	})
	nova.handler.Store(&cut)
	if code, _, _ := ask(t, n.guest(red), "POST", "/", nil, []byte("x")); code != 502 {
		t.Errorf("broken off: %d", code)
	}
}

// An answer that breaks off in its middle breaks off at the guest, too, and is counted.
func TestAnswerThatBreaksOff(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "the beginning")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	nova.handler.Store(&h)
	a, err := n.guest(red).Get("http://169.254.169.254/openstack")
	if err == nil {
		_, err = io.ReadAll(a.Body)
		a.Body.Close()
	}
	if err == nil {
		t.Error("the guest took a part for the whole")
	}
	deadline := time.Now().Add(10 * time.Second)
	for n.count(Broken) == 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if n.count(Broken) != 1 || n.count(Answered) != 0 {
		t.Errorf("%d broken, %d answered", n.count(Broken), n.count(Answered))
	}
}

// The secret is another one as soon as its file has it, and the last one while the file
// has none.
func TestSecretChanges(t *testing.T) {
	file := secretIn(t, secret)
	n, nova := withNova(t, Config{}, func(c *NovaConfig) { c.Secret = file })
	c := n.guest(red)
	if code, _, _ := ask(t, c, "GET", "/", nil, nil); code != 200 {
		t.Fatalf("at first: %d", code)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(secretLook + 50*time.Millisecond)
	if code, _, _ := ask(t, c, "GET", "/", nil, nil); code != 200 {
		t.Errorf("with an empty file: %d", code)
	}
	nova.secret = "another"
	if err := os.WriteFile(file, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		if code, _, _ := ask(t, c, "GET", "/", nil, nil); code == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new secret is not in use")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := NewNova(NovaConfig{Hosts: []string{"192.0.2.1"}, Secret: file + "-not"}); err == nil || !strings.Contains(err.Error(), "metadata_proxy_shared_secret") {
		t.Errorf("without a file: %v", err)
	}
}

func TestSignature(t *testing.T) {
	// python3 -c "import hmac; print(hmac.new(b'secret', b'inst-1', 'sha256').hexdigest())"
	if got := Sign([]byte("secret"), "inst-1"); got != "c8db3fe0ee6a24afcf7e404db67d2a88461947560b539077483c8a8d2d1a0683" {
		t.Errorf("signature %s", got)
	}
}
