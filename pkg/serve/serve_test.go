package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is how long a test waits for what has to happen.
const bound = 20 * time.Second

var families = map[string]string{"IPv4": "127.0.0.1:0", "IPv6": "[::1]:0"}

// run starts a server; stop ends its context and waits for its end, as the end of the test does.
func run(t *testing.T, s *Server, address string) (at string, stop func()) {
	t.Helper()
	if err := s.c.check(s.tls); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.serve(ctx, l); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

func newServer(c Config) *Server { return New(c, slog.New(slog.DiscardHandler)) }

func text(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, text) }
}

func TestConfigAndNoListener(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir)
	cert, key := dir+"/cert.pem", dir+"/key.pem"
	for want, c := range map[string]Config{
		"webConfig /does/not/exist: ":              {WebConfig: "/does/not/exist"},
		"webConfig and certificate exclude":        {WebConfig: "/does/not/exist", Certificate: cert, Key: key},
		"certificate and key need each other":      {Certificate: cert},
		"clientCA needs certificate and key":       {ClientCA: cert},
		"certificate " + cert + ", key /not/there": {Certificate: cert, Key: "/not/there"},
		"clientCA: ":                    {Certificate: cert, Key: key, ClientCA: "/not/there"},
		"there is no certificate in it": {Certificate: cert, Key: key, ClientCA: key},
		"listen: ":                      {Listen: "192.0.2.1:0"},
	} {
		if c.Listen == "" {
			c.Listen = "127.0.0.1:0"
		}
		if err := newServer(c).Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newServer(Config{}).Run(ctx); err != nil {
		t.Error(err)
	}
}

// held is a handler that goes on until it is let go, or its request's context has ended.
type held struct {
	begun, end chan struct{}
	err        chan error
}

func newHeld() *held {
	return &held{begun: make(chan struct{}), end: make(chan struct{}), err: make(chan error, 1)}
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	close(h.begun)
	select {
	case <-h.end:
	case <-r.Context().Done():
	}
	h.err <- r.Context().Err()
	answer(w, http.StatusOK, "done")
}

type outcome struct {
	code int
	body string
	err  error
}

// ask asks in the background, and waits until the handler runs.
func (h *held) ask(t *testing.T, at string) <-chan outcome {
	t.Helper()
	out := make(chan outcome, 1)
	go func() {
		r, err := http.NewRequest(http.MethodGet, "http://"+at+"/held", nil)
		if err != nil {
			out <- outcome{err: err}
			return
		}
		r.Close = true
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			out <- outcome{err: err}
			return
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		out <- outcome{resp.StatusCode, string(b), err}
	}()
	within(t, h.begun)
	return out
}

func within[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(bound):
		t.Fatalf("nothing happened for %s", bound)
	}
	return v
}

func TestRequestsFinishAfterTheEnd(t *testing.T) {
	for family, address := range families {
		t.Run(family, func(t *testing.T) {
			s, h := newServer(Config{Grace: time.Hour}), newHeld()
			s.Mount("/held", h)
			at, stop := run(t, s, address)
			out := h.ask(t, at)
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			refused(t, at) // the context has ended: nobody listens any more
			close(h.end)
			if err := within(t, h.err); err != nil {
				t.Errorf("the request ended with the server: %v", err)
			}
			if got := within(t, out); got.err != nil || got.code != 200 || got.body != "done" {
				t.Errorf("%+v", got)
			}
			within(t, stopped)
		})
	}
}

// refused waits until nobody listens.
func refused(t *testing.T, at string) {
	t.Helper()
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return
		}
		_ = c.Close()
	}
	t.Fatal("the server still listens")
}

// A request that does not finish is ended: after the grace, or at once where there is none.
func TestRequestsEndWithinTheBound(t *testing.T) {
	for name, grace := range map[string]time.Duration{"grace": 10 * time.Millisecond, "none": 0} {
		t.Run(name, func(t *testing.T) {
			s, h := newServer(Config{Grace: grace}), newHeld()
			s.Mount("/held", h)
			at, stop := run(t, s, "127.0.0.1:0")
			out := h.ask(t, at)
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			within(t, stopped)
			if err := within(t, h.err); err == nil {
				t.Error("the request was not ended")
			}
			// Without a grace the context alone ends, and the answer still comes.
			if got := within(t, out); (got.err != nil) != (grace > 0) {
				t.Errorf("%+v", got)
			}
		})
	}
}
