package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowly answers after a moment, so that requests are under way at all times.
type slowly struct{ time.Duration }

func (s slowly) ServeMetadata(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	time.Sleep(s.Duration)
	_, _ = io.WriteString(w, id.Instance+r.URL.Path)
	return Answered
}

func anybody(_, remote netip.AddrPort) (Identity, bool) {
	return Identity{Port: remote.Addr().String(), Instance: "inst"}, true
}

// One server after the other goes on where the last one left, on the same socket: no
// connection is refused, and no request breaks off, on connections that stay open or not.
func TestOneServerAfterTheOther(t *testing.T) {
	first, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := first.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var asked atomic.Int64
	for i := range 16 {
		group.Go(func() {
			from := fmt.Sprintf("127.0.1.%d", i+1)
			for ctx.Err() == nil {
				requests := 1 + i%2*1000 // every other one keeps its connection
				if err := converse(ctx, from, at, requests, &asked); err != nil {
					t.Errorf("%s: %v", from, err)
					return
				}
			}
		})
	}
	l, kept := first, []int(nil)
	moved := 0
	for range 20 {
		l, kept = serveFor(t, l, kept, 50*time.Millisecond)
		moved += len(kept)
	}
	cancel() // the guests end; the last server answers those that are under way
	l, kept = serveFor(t, l, kept, 100*time.Millisecond)
	group.Wait()
	_ = Resume(l, kept).Close()
	if asked.Load() < 1000 || moved < 20 {
		t.Errorf("%d requests, %d connections were handed over", asked.Load(), moved)
	}
}

// converse makes requests one after the other on one connection.
func converse(ctx context.Context, from, at string, requests int, asked *atomic.Int64) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp4", at)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for i := 0; i < requests && ctx.Err() == nil; i++ {
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i); err != nil {
			return err
		}
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil || a.StatusCode != 200 || string(text) != fmt.Sprintf("inst/%d", i) {
			return fmt.Errorf("request %d: %d %q %w", i, a.StatusCode, text, err)
		}
		asked.Add(1)
	}
	return nil
}

// serveFor answers for a while, and leaves; the socket and the connections go on.
func serveFor(t *testing.T, l net.Listener, fds []int, d time.Duration) (net.Listener, []int) {
	t.Helper()
	s := New(Config{Backend: slowly{time.Millisecond}})
	on := Resume(l, fds)
	done := make(chan error, 1)
	go func() { done <- s.Serve(on, anybody) }()
	time.Sleep(d)
	fd, err := dup(l)
	if err != nil {
		t.Fatal(err)
	}
	_ = on.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var kept []int
	for _, k := range s.Leave(ctx) {
		if k.On != on {
			t.Error("a connection of another listener")
		}
		kept = append(kept, k.FD)
	}
	if ctx.Err() != nil || s.Connections() != 0 {
		t.Errorf("%d connections are left", s.Connections())
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	next, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	return next, kept
}

// holding is a server that answers nothing before release is closed, on a listener. done is
// how it ended to be served.
func holding(t *testing.T) (s *Server, l net.Listener, release chan struct{}, done chan error) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	release, done = make(chan struct{}), make(chan error, 1)
	s = New(Config{Backend: hold(release)})
	go func() { done <- s.Serve(l, anybody) }()
	return s, l, release, done
}

// A request that takes too long is broken off, and so is one whose header does not come to
// its end; a connection that waits is kept meanwhile.
func TestLeaveIsBounded(t *testing.T) {
	s, l, release, done := holding(t)
	conns := map[string]net.Conn{}
	for what, text := range map[string]string{"under way": "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "half a header": "GET / HT", "silent": ""} {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, text)
		conns[what] = c
	}
	for s.Connections() != 3 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // what was sent has been read
	_ = l.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	kept := s.Leave(ctx)
	close(release)
	if len(kept) != 1 {
		t.Fatalf("%d connections are kept", len(kept))
	}
	go func() {
		done <- New(Config{Backend: slowly{}}).Serve(Resume(closedListener{}, []int{kept[0].FD}), anybody)
	}()
	c := conns["silent"]
	fmt.Fprint(c, "GET /later HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || a.StatusCode != 200 {
		t.Fatalf("on the connection that was kept: %v %v", a, err)
	}
	_ = a.Body.Close()
	for _, what := range []string{"under way", "half a header"} {
		_ = conns[what].SetDeadline(time.Now().Add(10 * time.Second))
		if b, err := io.ReadAll(conns[what]); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %q %v", what, b, err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The first byte of a request that was read while the one before was answered is not lost
// when the server leaves then: it answers that request, too.
func TestLeaveWithAByteOfTheNextRequest(t *testing.T) {
	s, l, release, done := holding(t)
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(c, "GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
	until(t, "the request has come", func() bool { all := s.ports.conns(); return len(all) == 1 && all[0].state() == "busy" })
	fmt.Fprint(c, "G")
	until(t, "the next one has begun", func() bool { return s.ports.conns()[0].state() == "ahead" })
	_ = l.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	left := make(chan []Kept, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		left <- s.Leave(ctx)
	}()
	until(t, "it leaves", s.leaves.Load)
	close(release)
	r := bufio.NewReader(c)
	for _, rest := range []string{"", "ET /second HTTP/1.1\r\nHost: a\r\n\r\n"} {
		fmt.Fprint(c, rest)
		a, err := http.ReadResponse(r, nil)
		if err != nil || a.StatusCode != 200 {
			t.Fatalf("after %q: %v %v", rest, a, err)
		}
		_ = a.Body.Close()
	}
	kept := <-left
	if len(kept) != 1 {
		t.Fatalf("%d connections are kept", len(kept))
	}
	_ = Resume(closedListener{}, []int{kept[0].FD}).Close()
}

// state is what a connection does.
func (c *conn) state() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ahead:
		return "ahead"
	case c.busy:
		return "busy"
	}
	return "waits"
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so that %s", what)
		}
	}
}

// A server that ends answers what has begun, also a request that comes on a connection
// that was just opened; it closes connections that wait, and silent ones after a moment.
func TestShutdown(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Backend: slowly{300 * time.Millisecond}})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l, anybody) }()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	ask := func(c net.Conn) { fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
	answered := func(what string, c net.Conn) {
		t.Helper()
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || a.StatusCode != 200 {
			t.Errorf("%s: %v %v", what, a, err)
			return
		}
		_ = a.Body.Close()
	}
	waits, underWay, fresh, silent := dial(), dial(), dial(), dial()
	ask(waits)
	answered("the first one", waits)
	ask(underWay)
	for s.Connections() != 4 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	_ = l.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	begin := time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		ended <- s.Shutdown(ctx)
	}()
	time.Sleep(50 * time.Millisecond)
	ask(fresh)
	answered("under way", underWay)
	answered("begun afterwards", fresh)
	for what, c := range map[string]net.Conn{"waits": waits, "silent": silent} {
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("%s: %q %v", what, b, err)
		}
	}
	if err := <-ended; err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

type hold chan struct{}

func (h hold) ServeMetadata(w http.ResponseWriter, _ *http.Request, _ Identity) Outcome {
	<-h
	w.WriteHeader(http.StatusOK)
	return Answered
}

type closedListener struct{ net.Listener }

func (closedListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (closedListener) Close() error              { return nil }
func (closedListener) Addr() net.Addr            { return &net.TCPAddr{} }
