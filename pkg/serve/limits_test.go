package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// undeclared is a reader whose length net/http does not know.
type undeclared struct{ io.Reader }

func TestLargestBody(t *testing.T) {
	for family, address := range families {
		t.Run(family, func(t *testing.T) {
			const limit = 1000
			s := newServer(Config{LargestBody: limit})
			s.Mount("POST /echo", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				answer(w, http.StatusOK, string(b))
			}))
			at, _ := run(t, s, address)
			for _, length := range []int{0, limit, limit + 1} {
				sent := strings.Repeat("x", length)
				for name, body := range map[string]io.Reader{"declared": strings.NewReader(sent), "not declared": undeclared{strings.NewReader(sent)}} {
					code, got := do(t, http.MethodPost, "http://"+at+"/echo", body)
					switch {
					case length <= limit && (code != http.StatusOK || got != sent):
						t.Errorf("%d bytes, length %s: %d, %d bytes back", length, name, code, len(got))
					case length > limit && (code != http.StatusRequestEntityTooLarge || !strings.Contains(got, "larger than 1000 bytes")):
						t.Errorf("%d bytes, length %s: %d %q", length, name, code, got)
					}
				}
			}
			// The body is not waited for.
			got := rest(t, dial(t, at, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n"))
			if !strings.HasPrefix(got, "HTTP/1.1 413 ") {
				t.Errorf("%q", got)
			}
		})
	}
}

func do(t *testing.T, method, url string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// A body that breaks off before its length is known to be small enough reaches no handler.
func TestBrokenBody(t *testing.T) {
	s := newServer(Config{LargestBody: 1000})
	s.Mount("/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }))
	at, _ := run(t, s, "127.0.0.1:0")
	c := dial(t, at, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nnot a number\r\n")
	if got := rest(t, c); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("%q", got)
	}
}

func TestMostRequests(t *testing.T) {
	for family, address := range families {
		t.Run(family, func(t *testing.T) {
			s, h := newServer(Config{MostRequests: 1}), newHeld()
			s.Mount("/held", h)
			s.Mount("/other", text("ok"))
			s.Mount("/panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
			s.MountHealth(Health{Alive: func(context.Context) error { return nil }, Metrics: prometheus.NewRegistry()})
			at, _ := run(t, s, address)
			out := h.ask(t, at)
			resp, err := http.Get("http://" + at + "/other")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
				t.Errorf("%d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
			}
			if code, _ := do(t, http.MethodGet, "http://"+at+"/livez", nil); code != http.StatusOK {
				t.Errorf("livez of a busy program: %d", code)
			}
			close(h.end)
			if got := within(t, out); got.err != nil || got.code != http.StatusOK {
				t.Errorf("%+v", got)
			}
			if resp, err := http.Get("http://" + at + "/panic"); err == nil {
				_ = resp.Body.Close()
				t.Errorf("the handler did not panic: %d", resp.StatusCode)
			}
			if code, _ := do(t, http.MethodGet, "http://"+at+"/other", nil); code != http.StatusOK {
				t.Errorf("after the end of the others: %d", code)
			}
		})
	}
}

// Bodies that come slowly, of a declared length and without one, are no requests at once.
func TestSlowBodies(t *testing.T) {
	s := newServer(Config{MostRequests: 1, LargestBody: 1000})
	s.Mount("/", text("ok"))
	at, _ := run(t, s, "127.0.0.1:0")
	for _, begun := range []string{"Content-Length: 10\r\n\r\n1", "Transfer-Encoding: chunked\r\n\r\n5\r\n1"} {
		c := dial(t, at, "POST / HTTP/1.1\r\nHost: a\r\n"+begun)
		defer func() { _ = c.Close() }()
	}
	for range 20 {
		if code, body := do(t, http.MethodGet, "http://"+at+"/", nil); code != http.StatusOK {
			t.Fatalf("beside slow bodies: %d %s", code, body)
		}
	}
}

// A panic of a handler is an error of one request, in its answer and in the log.
func TestPanic(t *testing.T) {
	var log strings.Builder
	s := New(Config{Listen: "127.0.0.1:0"}, slog.New(slog.NewTextHandler(&log, nil)))
	s.Mount("/panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") }))
	s.Mount("/other", text("ok"))
	at, _ := run(t, s, "127.0.0.1:0")
	for path, want := range map[string]int{"/panic": http.StatusInternalServerError, "/other": http.StatusOK} {
		if code, body := do(t, http.MethodGet, "http://"+at+path, nil); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	for _, part := range []string{"level=ERROR", `panic="a fault"`, "path=/panic", "limits_test.go"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("no %q in %s", part, log.String())
		}
	}
}

func TestLargestHeader(t *testing.T) {
	s := newServer(Config{LargestHeader: 1000})
	s.Mount("/", text("ok"))
	at, _ := run(t, s, "127.0.0.1:0")
	for size, want := range map[int]string{900: "HTTP/1.1 200 ", 20000: "HTTP/1.1 431 "} {
		c := dial(t, at, fmt.Sprintf("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: %s\r\n\r\n", strings.Repeat("x", size)))
		if got := rest(t, c); !strings.HasPrefix(got, want) {
			t.Errorf("header of %d bytes: %q, want %q", size, got, want)
		}
	}
}

// A connection that stands still is closed: in the header, in the body, and between two requests.
func TestReadAndIdleTimeouts(t *testing.T) {
	const short = time.Second // a busy machine reads what is there within it
	for name, tc := range map[string]struct {
		c          Config
		sent, want string
	}{
		"header":    {Config{ReadTimeout: short}, "GET / HTTP/1.1\r\nHo", ""},
		"body":      {Config{ReadTimeout: short}, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx", "i/o timeout"},
		"no length": {Config{ReadTimeout: short, LargestBody: 10}, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", "HTTP/1.1 400 "},
		"idle":      {Config{IdleTimeout: short}, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(tc.c)
			s.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				answer(w, http.StatusOK, fmt.Sprint(err))
			}))
			at, _ := run(t, s, "127.0.0.1:0")
			if got := rest(t, dial(t, at, tc.sent)); !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A client that does not read its answer holds no handler for ever.
func TestWriteTimeout(t *testing.T) {
	s, ended := newServer(Config{WriteTimeout: 20 * time.Millisecond}), make(chan error, 1)
	s.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for b := make([]byte, 1<<16); ; {
			if _, err := w.Write(b); err != nil {
				ended <- err
				return
			}
		}
	}))
	at, _ := run(t, s, "127.0.0.1:0")
	dial(t, at, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := within(t, ended); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// dial sends bytes to the server and leaves the connection open.
func dial(t *testing.T, at, sent string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, sent); err != nil {
		t.Fatal(err)
	}
	return c
}

// rest is what comes until the server closes the connection, which it has to do.
func rest(t *testing.T, c net.Conn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(bound)); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection stays open; got %q", b)
	}
	return string(b)
}
