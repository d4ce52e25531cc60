package ovsdbtest

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Proxy stands between clients and a server. It passes message by message, and what watches it
// says of each one what becomes of it.
type Proxy struct {
	listen net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	target string
	watch  func(*Message) Verdict
	conns  []net.Conn
}

// Message is one that a client or a server sends.
type Message struct {
	// ToServer: a client sends it.
	ToServer bool
	// Method is that of a request or notification; of a reply that of the request which it answers.
	Method string
	// Params are those of the same request or notification.
	Params json.RawMessage
	// Reply: it answers the request that Method and Params are of.
	Reply bool
	// Raw is what goes on. Who watches may replace it.
	Raw []byte
}

// Operation is one of a transaction, RFC 7047 section 5.2.
type Operation struct{ Op, Table, Lock string }

// Operations are those of a transact request, or of the one that a reply answers.
func (m *Message) Operations() (out []Operation) {
	var params []json.RawMessage
	if m.Method != "transact" || json.Unmarshal(m.Params, &params) != nil || len(params) < 2 {
		return nil
	}
	for _, raw := range params[1:] {
		var o Operation
		if json.Unmarshal(raw, &o) == nil {
			out = append(out, o)
		}
	}
	return out
}

// Writes tells whether it is a transaction, or the reply to one, that inserts, changes or deletes rows.
func (m *Message) Writes() bool {
	return slices.ContainsFunc(m.Operations(), func(o Operation) bool {
		return slices.Contains([]string{"insert", "update", "mutate", "delete"}, o.Op)
	})
}

// Verdict is what becomes of a message.
type Verdict int

const (
	// Pass sends it on.
	Pass Verdict = iota
	// Lose ends the connection in its place.
	Lose
	// Tear sends one half of it on, and ends the connection.
	Tear
	// Answer sends Raw back to the one who has sent the message, which is lost.
	Answer
)

// NewProxy makes a proxy of an endpoint that is a unix socket, until the test ends. All passes at first.
func NewProxy(t testing.TB, endpoint string) *Proxy {
	t.Helper()
	// Not t.TempDir: a unix socket's path has at most 107 bytes.
	dir, err := os.MkdirTemp("", "ovsdb")
	if err != nil {
		t.Fatalf("temporary directory: %v", err)
	}
	p := &Proxy{target: strings.TrimPrefix(endpoint, "unix:")}
	if p.listen, err = net.Listen("unix", filepath.Join(dir, "p")); err != nil {
		t.Fatalf("proxy: %v", err)
	}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listen.Close()
		p.Cut()
		p.wg.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return p
}

// Endpoint is the proxy's unix socket, as a client's endpoint.
func (p *Proxy) Endpoint() string { return "unix:" + p.listen.Addr().String() }

// Watch has f say what becomes of each message from now on; nil: all pass. f is called by the
// goroutine that passes a connection's messages of one direction: while it does not return, no
// other one passes there. It may be called by several ones at once.
func (p *Proxy) Watch(f func(*Message) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = f
}

// Turn makes the server behind the proxy another one, as an address does that moves.
func (p *Proxy) Turn(endpoint string) {
	p.mu.Lock()
	p.target = strings.TrimPrefix(endpoint, "unix:")
	p.mu.Unlock()
	p.Cut()
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *Proxy) accept() {
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
		p.mu.Unlock()
		c := &proxied{requests: map[string]*Message{}}
		p.wg.Go(func() { p.pass(c, client, server, true) })
		p.wg.Go(func() { p.pass(c, server, client, false) })
	}
}

// proxied is one connection's requests without a reply, by their IDs.
type proxied struct {
	mu       sync.Mutex
	requests map[string]*Message
}

func (p *Proxy) pass(c *proxied, from, to net.Conn, toServer bool) {
	defer func() { _, _ = from.Close(), to.Close() }()
	for decoder := json.NewDecoder(from); ; {
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return
		}
		m := c.message(raw, toServer)
		p.mu.Lock()
		watch := p.watch
		p.mu.Unlock()
		verdict, next := Pass, to
		if watch != nil {
			verdict = watch(m)
		}
		switch verdict {
		case Answer:
			next = from
		case Lose:
			return
		case Tear:
			_, _ = to.Write(m.Raw[:len(m.Raw)/2]) // the connection ends, whatever came of it
			return
		}
		if _, err := next.Write(m.Raw); err != nil {
			return
		}
	}
}

// message finds out what a message is. What is not JSON-RPC passes without a method.
func (c *proxied) message(raw json.RawMessage, toServer bool) *Message {
	m := &Message{ToServer: toServer, Raw: raw}
	var head struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	_ = json.Unmarshal(raw, &head)
	m.Method, m.Params = head.Method, head.Params
	c.mu.Lock()
	defer c.mu.Unlock()
	// Each side has IDs of its own.
	key := string(head.ID)
	switch {
	case m.Method != "" && toServer:
		c.requests[key] = m
	case m.Method == "" && !toServer:
		if request := c.requests[key]; request != nil {
			m.Method, m.Params, m.Reply = request.Method, request.Params, true
			delete(c.requests, key)
		}
	}
	return m
}
