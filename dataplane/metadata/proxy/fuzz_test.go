package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// harness is a proxy that remembers what it told of, for clients and servers that send
// anything at all.
type harness struct {
	server *Server
	addr   string

	mu   sync.Mutex
	seen []Request
	// told are the statuses that the server behind sent, by the number of its answer.
	told    map[string]int
	strange string // what the server behind was asked that no request may ask
}

func newHarness(tb testing.TB, host string, port int) *harness {
	tb.Helper()
	b, err := NewNova(NovaConfig{Hosts: []string{host}, Port: port, Secret: secretIn(tb, secret)})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	h := &harness{addr: l.Addr().String(), told: map[string]int{}}
	h.server = New(Config{Backend: b, MaxConnections: 1 << 20, Observe: func(r Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.seen = append(h.seen, r)
	}})
	var group errgroup.Group
	group.Go(func() error {
		return h.server.Serve(l, func(_, _ netip.AddrPort) (Identity, bool) { return guests[netip.MustParseAddr(red)], true })
	})
	tb.Cleanup(func() {
		_ = l.Close()
		_ = h.server.http.Close()
		if err := group.Wait(); err != nil {
			tb.Error(err)
		}
	})
	return h
}

// ServeHTTP is Nova: it answers with all kinds of status, and takes note of whose request came.
func (h *harness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	id := guests[netip.MustParseAddr(red)]
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, want := range map[string]string{headerInstance: id.Instance, headerProject: id.Project, headerForwardedFor: id.Address.String(), headerSignature: Sign([]byte(secret), id.Instance)} {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
			h.strange = fmt.Sprintf("%s: %q", name, got)
		}
	}
	status := []int{200, 200, 204, 302, 404, 403, 500}[len(r.URL.Path)%7]
	number := fmt.Sprint(len(h.told))
	h.told[number] = status
	w.Header().Set("X-Number", number)
	w.WriteHeader(status)
	if status != 204 {
		fmt.Fprint(w, "answer ", number)
	}
}

// exchange sends bytes in two pieces, closes the sending side, and reads to the end.
func (h *harness) exchange(tb testing.TB, raw []byte, cut int) (got []byte, err error) {
	tb.Helper()
	h.mu.Lock()
	h.seen = nil
	h.mu.Unlock()
	c, err := net.Dial("tcp4", h.addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	cut = min(cut, len(raw))
	for _, piece := range [][]byte{raw[:cut], raw[cut:]} {
		if len(piece) > 0 { // else a reset that has come would be told here, and not to the read
			_, _ = c.Write(piece) // it may be answered, and closed, already
		}
	}
	_ = c.(*net.TCPConn).CloseWrite()
	return io.ReadAll(c)
}

// sane tells what is wrong with what a client got; nil: each request that was told of has
// exactly its one answer, and no other is there.
func (h *harness) sane(raw, got []byte, err error) error {
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.strange != "" {
		return errors.New("Nova was asked with " + h.strange)
	}
	in := bufio.NewReader(bytes.NewReader(got))
	for _, r := range h.seen {
		if r.Status == 0 {
			return fmt.Errorf("no status for %+v", r)
		}
		a, err := nextAnswer(in, r.Method)
		if err != nil || a.StatusCode != r.Status {
			return fmt.Errorf("%+v instead of %+v: %w", a, r, err)
		}
		if number := a.Header.Get("X-Number"); a.StatusCode < 300 && h.told[number] != a.StatusCode {
			return fmt.Errorf("nobody behind has sent %+v", a)
		}
	}
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		return fmt.Errorf("%d are told of, and then there is %q", len(h.seen), rest)
	}
	if len(h.seen) == 0 && len(bytes.Trim(raw, "\r\n")) > 0 {
		return errors.New("it is closed without an answer")
	}
	return nil
}

// nextAnswer reads one with its body, but for those that ask to go on.
func nextAnswer(in *bufio.Reader, method string) (*http.Response, error) {
	for {
		a, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			return a, err
		}
		if a.StatusCode != http.StatusContinue {
			return a, nil
		}
	}
}

// requests are where the fuzzing of clients begins.
var requests = []string{
	"GET / HTTP/1.0\r\n\r\n", "GET /openstack HTTP/1.1\r\nHost: a\r\n\r\nHEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGET /bb HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
	"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
	"PUT /latest/api/token HTTP/1.1\r\nHost: a\r\nX-Instance-ID: other\r\nX-Forwarded-For: 10.0.0.9\r\nX_Tenant_ID: other\r\nContent-Length: 0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/0.9\r\n\r\n", "GET /\r\n", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Instance-ID, close\r\nX-Instance-ID: b\r\n\r\n", "\x16\x03\x01\x02\x00\x01", "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "",
}

// clients is a proxy before a Nova that answers.
func clients(tb testing.TB) (h *harness) {
	tb.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	tb.Cleanup(behind.Close)
	at := netip.MustParseAddrPort(behind.Listener.Addr().String())
	h = newHarness(tb, at.Addr().String(), int(at.Port()))
	return h
}

// Whatever bytes a client sends, each of its requests has one answer, which is well-formed, and
// 2xx if Nova says so; and Nova is asked by no other identity.
func FuzzClient(f *testing.F) {
	for _, r := range requests {
		f.Add([]byte(r), 7)
	}
	h := clients(f)
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		got, err := h.exchange(t, raw, max(cut, 0))
		if err := h.sane(raw, got, err); err != nil {
			t.Errorf("%q: %v\ngot %q", raw, err, got)
		}
	})
}

// The same of requests that are changed at random, always in the same way.
func TestFuzzedClients(t *testing.T) {
	h := clients(t)
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 25))
		raw := mutated(r, requests)
		got, err := h.exchange(t, raw, r.IntN(len(raw)+1))
		if err := h.sane(raw, got, err); err != nil {
			t.Errorf("seed %d: %q: %v\ngot %q", seed, raw, err, got)
		}
	}
}

// mutated is one of the texts, or two, with some bytes changed, left out or doubled.
func mutated(r *rand.Rand, texts []string) []byte {
	raw := []byte(texts[r.IntN(len(texts))])
	if r.IntN(3) == 0 {
		raw = append(raw, texts[r.IntN(len(texts))]...)
	}
	for range r.IntN(4) {
		if len(raw) == 0 {
			break
		}
		i := r.IntN(len(raw))
		switch r.IntN(4) {
		case 0:
			raw[i] = "\x00\r\n :0az/*%\x7f\xff"[r.IntN(13)]
		case 1:
			raw = slices.Delete(raw, i, min(i+1+r.IntN(4), len(raw)))
		case 2:
			raw = slices.Insert(raw, i, raw[i:min(i+8, len(raw))]...)
		case 3:
			raw = raw[:i]
		}
	}
	return raw
}

// answers are where the fuzzing of servers begins.
var answers = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.0 200 OK\r\n\r\nok", "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 500 E\r\nContent-Length: 1\r\n\r\ne",
	"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nxxx", "HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.1 000 Zero\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncut", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
	"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 2000 X\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a", "200 OK\r\n\r\n", "SSH-2.0-x\r\n", "", "HTTP/1.1 200 OK\r\nX\x00: a\r\n\r\n", "HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\n",
}

// servers is a proxy before a server that sends, to each request, what raw says, and closes.
func servers(tb testing.TB) (h *harness, raw *atomic.Pointer[[]byte]) {
	tb.Helper()
	was := log.Writer()
	log.SetOutput(io.Discard) // net/http tells of what comes after an answer
	tb.Cleanup(func() { log.SetOutput(was) })
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	raw = &atomic.Pointer[[]byte]{}
	var group errgroup.Group
	group.Go(func() error {
		for {
			c, err := l.Accept()
			if err != nil {
				return nil // it is closed
			}
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = c.Write(*raw.Load())
			}
			_ = c.Close()
		}
	})
	tb.Cleanup(func() { _ = l.Close(); _ = group.Wait() })
	at := netip.MustParseAddrPort(l.Addr().String())
	return newHarness(tb, at.Addr().String(), int(at.Port())), raw
}

// behaves has a server answer with raw, and tells what is wrong with what the client got.
func (h *harness) behaves(tb testing.TB, raw []byte, request string) error {
	method, _, _ := strings.Cut(request, " ")
	got, err := h.exchange(tb, []byte(request), len(request))
	reset := errors.Is(err, syscall.ECONNRESET)
	if err != nil && !reset {
		return err
	}
	want, wantErr := statusOfServer(raw, method)
	in := bufio.NewReader(bytes.NewReader(got))
	a, err := nextAnswer(in, method)
	if reset {
		// It breaks off where the server's answer does, and not before that has begun.
		if wantErr != nil || a != nil && a.StatusCode != want {
			return fmt.Errorf("it breaks off: %+v, the server says %d %w", a, want, wantErr)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		return fmt.Errorf("after the answer there is %q", rest)
	}
	own := a.StatusCode == http.StatusBadGateway || a.StatusCode == http.StatusGatewayTimeout
	if !own && (wantErr != nil || a.StatusCode != want) {
		return fmt.Errorf("%d, and the server says %d %w", a.StatusCode, want, wantErr)
	}
	return nil
}

// statusOfServer is what a server's bytes say, behind what is informational.
func statusOfServer(raw []byte, method string) (int, error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	for {
		a, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return 0, err
		}
		if a.StatusCode < 100 || a.StatusCode >= 200 || a.StatusCode == http.StatusSwitchingProtocols {
			return a.StatusCode, nil
		}
	}
}

var asks = []string{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"}

// Whatever bytes Nova sends, a client has one answer, which is well-formed, and 2xx if Nova
// says so; or its connection is reset where Nova's answer breaks off.
func FuzzServer(f *testing.F) {
	for i, a := range answers {
		f.Add([]byte(a), byte(i))
	}
	h, raw := servers(f)
	f.Fuzz(func(t *testing.T, text []byte, ask byte) {
		raw.Store(&text)
		request := asks[int(ask)%len(asks)]
		if err := h.behaves(t, text, request); err != nil {
			t.Errorf("%q to %q: %v", text, request, err)
		}
	})
}

// The same of answers that are changed at random, always in the same way.
func TestFuzzedServers(t *testing.T) {
	h, raw := servers(t)
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 26))
		text := mutated(r, answers)
		raw.Store(&text)
		request := asks[r.IntN(len(asks))]
		if err := h.behaves(t, text, request); err != nil {
			t.Errorf("seed %d: %q to %q: %v", seed, text, request, err)
		}
	}
}
