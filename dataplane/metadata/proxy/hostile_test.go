package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

// One port has so many bodies in memory and no more; what has none is answered meanwhile.
func TestBodiesAtATime(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	begun := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab"
	var open []net.Conn
	for range mostBodies {
		c := n.conn(red)
		fmt.Fprint(c, begun)
		open = append(open, c)
	}
	until(t, "all have begun", func() bool {
		n.server.ports.mu.Lock()
		defer n.server.ports.mu.Unlock()
		p := n.server.ports.all["port-red"]
		return p != nil && p.bodies == mostBodies
	})
	if code, _, header := ask(t, n.guest(red), "POST", "/", nil, []byte("abc")); code != 429 || header.Get("Retry-After") != "1" {
		t.Errorf("one more: %d %v", code, header)
	}
	if code, _, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 200 {
		t.Errorf("without a body: %d", code)
	}
	if code, _, _ := ask(t, n.guest(blue), "POST", "/", nil, []byte("abc")); code != 200 {
		t.Errorf("the other port: %d", code)
	}
	for _, c := range open {
		fmt.Fprint(c, "c")
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || a.StatusCode != 200 || string(nova.body) != "abc" {
			t.Fatalf("%+v %v", a, err)
		}
		a.Body.Close()
	}
	if code, _, _ := ask(t, n.guest(red), "POST", "/", nil, []byte("abc")); code != 200 {
		t.Errorf("after these: %d", code)
	}
}

// A connection that began before anybody was known stays the first one's who was.
func TestConnectionBeforeItsPort(t *testing.T) {
	n, _ := withNova(t, Config{}, nil)
	id := Identity{}
	n.instead.Store(&id)
	c := n.conn(red)
	until(t, "the connection is open", func() bool { return n.server.Connections() == 1 })
	get := func(want int) {
		t.Helper()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || a.StatusCode != want {
			t.Fatalf("%v %v", a, err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
	}
	n.instead.Store(nil)
	get(200)
	other := guests[netip.MustParseAddr(blue)]
	n.instead.Store(&other)
	n.server.Check()
	if b, err := io.ReadAll(c); len(b) != 0 {
		t.Errorf("the port has gone: %q %v", b, err)
	}
	// The request itself is another's, too, until the next look.
	n.instead.Store(&id)
	c = n.conn(red)
	until(t, "the connection is open", func() bool { return n.server.Connections() == 1 })
	n.instead.Store(nil)
	get(200)
	n.instead.Store(&other)
	get(404)
	// So is the same instance of another project.
	project := guests[netip.MustParseAddr(red)]
	project.Project = "blue"
	n.instead.Store(nil)
	c = n.conn(red)
	get(200)
	n.instead.Store(&project)
	get(404)
}

// A request that cannot be made, as of an instance whose name is none, is no failure of the
// server's: it is not asked last for it.
func TestRequestThatCannotBeMade(t *testing.T) {
	n, nova := withNova(t, Config{}, nil)
	id := Identity{Port: "p", Instance: "inst\n1", Project: "red", Address: netip.MustParseAddr("10.0.0.5")}
	n.instead.Store(&id)
	if code, _, _ := ask(t, n.guest(red), "GET", "/", nil, nil); code != 502 || nova.asked.Load() != 0 {
		t.Errorf("%d, Nova was asked %d times", code, nova.asked.Load())
	}
	servers, ok := n.server.cfg.Backend.(*Nova).proxy.Transport.(*inTurn)
	if !ok || servers.hosts[0].rests(time.Now()) {
		t.Errorf("Nova rests: %+v", servers)
	}
}
