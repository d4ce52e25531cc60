package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// closeWrite has a client say that it sends no more.
func closeWrite(t testing.TB, c net.Conn) {
	t.Helper()
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
}

// A client that closes its sending side after its request gets the answer.
func TestHalfClosed(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	closed := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-closed
		w.WriteHeader(http.StatusNotFound)
		nova.mu.Lock()
		defer nova.mu.Unlock()
		fmt.Fprintf(w, "%s %s", r.Method, nova.body)
	})
	nova.handler.Store(&h)
	for _, tt := range []struct{ request, want string }{
		{"GET /status/404 HTTP/1.0\r\n\r\n", "GET "},
		{"GET /status/404 HTTP/1.1\r\nHost: a\r\n\r\n", "GET "},
		{"GET /status/404 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET "},
		{"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", "POST abc"},
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", "POST abc"},
		{"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "POST abc"},
	} {
		for range 20 {
			closed = make(chan struct{})
			c := n.conn(red)
			fmt.Fprint(c, tt.request)
			closeWrite(t, c)
			close(closed)
			in := bufio.NewReader(c)
			a, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%q: %v", tt.request, err)
			}
			body, err := io.ReadAll(a.Body)
			if err != nil || a.StatusCode != http.StatusNotFound || string(body) != tt.want {
				t.Fatalf("%q: %d %q %v", tt.request, a.StatusCode, body, err)
			}
			if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
				t.Fatalf("%q: after the answer %q %v", tt.request, rest, err)
			}
			_ = c.Close()
		}
	}
	if n.count(Answered) != 120 || n.count(Broken) != 0 {
		t.Errorf("%d answered, %d broken", n.count(Answered), n.count(Broken))
	}
}

// A client that has gone ends its request to Nova, also after it had closed its sending side.
func TestClientThatResets(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	begun, ended := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	nova.handler.Store(&h)
	for i, half := range []bool{false, true} {
		c := n.conn(red)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if half {
			closeWrite(t, c)
		}
		select {
		case <-begun:
		case <-time.After(20 * time.Second):
			t.Fatalf("half-closed %t: Nova was not asked", half)
		}
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_ = c.Close()
		select {
		case <-ended:
			t.Logf("half-closed %t: its request ends %s after the reset", half, time.Since(start))
		case <-time.After(20 * time.Second):
			t.Fatalf("half-closed %t: its request goes on", half)
		}
		until(t, "the request is told of", func() bool { return n.count(Broken) == int64(i+1) })
	}
}

// No body that cannot be read is taken for a request, and its client is told so.
func TestBodiesThatCannotBeRead(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	const chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for i, request := range []string{
		chunked + "zz\r\n", chunked + "\r\n", chunked + "-1\r\n\r\n", chunked + "3\r\nabcd\r\n0\r\n\r\n", chunked + "3\nabc\n0\n\nx", chunked + "fffffffffffffffff\r\n", chunked + "0x3\r\nabc\r\n0\r\n\r\n",
		chunked + "3\r\nabc", chunked + "3\r\nabc\r\n", chunked + "0\r\nx", chunked, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc", "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nabc",
	} {
		c := n.conn(red)
		fmt.Fprint(c, request)
		closeWrite(t, c)
		in := bufio.NewReader(c)
		a, err := http.ReadResponse(in, nil)
		if err != nil || a.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %+v %v", request, a, err)
			continue
		}
		_, _ = io.Copy(io.Discard, a.Body)
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("%q: after the answer %q %v", request, rest, err)
		}
		if got := n.count(Malformed); got != int64(i+1) {
			t.Errorf("%q: %d are malformed", request, got)
		}
	}
	if nova.asked.Load() != 0 {
		t.Errorf("Nova was asked %d times", nova.asked.Load())
	}
}
