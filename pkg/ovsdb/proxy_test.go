package ovsdb_test

import (
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// proxy forwards connections to a server, can cut them and can lie.
type proxy struct {
	t      testing.TB
	target string
	// answer, if set, sees what clients send; what it returns goes back to the
	// client and the message does not reach the server.
	answer func(json.RawMessage) []byte
	// alter, if set, sees what the server sends and says what goes on.
	alter  func(json.RawMessage) []byte
	listen net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	count int
}

func newProxy(t testing.TB, endpoint string) *proxy {
	t.Helper()
	return newLiar(t, endpoint, nil, nil)
}

func newLiar(t testing.TB, endpoint string, answer, alter func(json.RawMessage) []byte) *proxy {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: strings.TrimPrefix(endpoint, "unix:"), listen: l, answer: answer, alter: alter}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) endpoint() string { return "unix:" + p.listen.Addr().String() }

func (p *proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.Dial("unix", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.count++
		p.mu.Unlock()
		p.wg.Add(2)
		go p.toServer(client, server)
		go p.toClient(client, server)
	}
}

func (p *proxy) toServer(client, server net.Conn) {
	defer p.wg.Done()
	defer closeBoth(client, server)
	if p.answer == nil {
		_, _ = io.Copy(server, client)
		return
	}
	for decoder := json.NewDecoder(client); ; {
		var m json.RawMessage
		if decoder.Decode(&m) != nil {
			return
		}
		to, out := server, []byte(m)
		if reply := p.answer(m); reply != nil {
			to, out = client, reply
		}
		if _, err := to.Write(out); err != nil {
			return
		}
	}
}

func (p *proxy) toClient(client, server net.Conn) {
	defer p.wg.Done()
	defer closeBoth(client, server)
	if p.alter == nil {
		_, _ = io.Copy(client, server)
		return
	}
	for decoder := json.NewDecoder(server); ; {
		var m json.RawMessage
		if decoder.Decode(&m) != nil {
			return
		}
		if _, err := client.Write(p.alter(m)); err != nil {
			return
		}
	}
}

func closeBoth(a, b net.Conn) {
	_ = a.Close()
	_ = b.Close()
}

// turn makes the server behind the proxy another one, as an address does that moves.
func (p *proxy) turn(endpoint string) {
	p.mu.Lock()
	p.target = strings.TrimPrefix(endpoint, "unix:")
	p.mu.Unlock()
	p.cut()
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
