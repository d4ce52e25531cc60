package ovsdb

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// message is a JSON-RPC 1.0 message of either direction.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

type request struct {
	ID     uint64 `json:"id"`
	Method string `json:"method"`
	Params []any  `json:"params"`
}

type echoReply struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *string         `json:"error"`
}

// rpcError is the error member of a reply: the server did not take the request.
type rpcError struct {
	method string
	Name   string `json:"error"`
	Detail string `json:"details"`
	raw    string
}

func (e *rpcError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %s", e.method, e.raw)
	}
	if e.Detail == "" {
		return fmt.Sprintf("%s: %s", e.method, e.Name)
	}
	return fmt.Sprintf("%s: %s: %s", e.method, e.Name, e.Detail)
}

func newRPCError(method string, raw json.RawMessage) *rpcError {
	e := &rpcError{method: method, raw: string(raw)}
	if json.Unmarshal(raw, e) != nil {
		e.Name = ""
		_ = json.Unmarshal(raw, &e.Name) // a bare string, or raw it stays
	}
	return e
}

// call is a request that waits for its reply.
type call struct {
	method string
	reply  chan message // buffered; whoever takes it from the queue sends on it, if queued
	// queued: the reply goes into the queue, in order with notifications.
	queued bool
	lock   string // what a lock or steal asks for
}

// conn is one connection: it answers the server's echo requests, matches replies
// with requests, queues notifications, and probes.
type conn struct {
	net    net.Conn
	probe  time.Duration
	lastRx atomic.Int64 // Unix nanoseconds

	mu     sync.Mutex
	nextID uint64
	calls  map[uint64]call
	queue  []queued
	// out is what is to be written, by a goroutine of its own: ovsdb-server reads
	// nothing while it has something to send, so whoever reads here, or has a
	// deadline, must not wait for a write.
	out     [][]byte
	filled  loop.Signal // out has something
	err     error       // why it ended
	ready   loop.Signal
	done    chan struct{}
	closing sync.Once
}

// queued is a notification, or the reply to a call.
type queued struct {
	message
	call    call
	isReply bool
}

const (
	// writeTimeout bounds how long a server may refuse to read.
	writeTimeout = 30 * time.Second
	writeChunk   = 64 << 10
	// maxWaiting bounds what may wait when an echo request is answered. A server
	// that asks on without reading gets no more answers.
	maxWaiting = 64
)

func newConn(nc net.Conn, probe time.Duration) *conn {
	c := &conn{
		net:   nc,
		probe: probe,
		calls: make(map[uint64]call),
		ready: loop.NewSignal(),
		done:  make(chan struct{}),

		filled: loop.NewSignal(),
	}
	c.lastRx.Store(time.Now().UnixNano())
	return c
}

// Read counts every byte as a sign of life: a reply of gigabytes is not silence.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.net.Read(p)
	if n > 0 {
		c.lastRx.Store(time.Now().UnixNano())
	}
	return n, err
}

// readLoop runs until the connection ends and returns why.
func (c *conn) readLoop() error {
	frames := newFramer(c)
	for {
		raw, err := frames.next()
		if err == nil {
			err = c.dispatch(raw)
		}
		if err != nil {
			c.close(err)
			return err
		}
	}
}

func (c *conn) dispatch(raw []byte) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return protocolError("%w", err)
	}
	if m.Method == "echo" && len(m.ID) > 0 {
		reply, err := json.Marshal(echoReply{ID: m.ID, Result: m.Params})
		if err != nil {
			return protocolError("echo: %w", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.out) < maxWaiting {
			c.put(reply)
		}
		return nil
	}
	if m.Method != "" {
		c.push(queued{message: m})
		return nil
	}
	id, err := strconv.ParseUint(string(m.ID), 10, 64)
	if err != nil {
		return protocolError("a reply with the id %.40q, which no request had", m.ID)
	}
	c.mu.Lock()
	waiting, ok := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	switch {
	case !ok: // its caller stopped waiting
	case waiting.queued:
		c.push(queued{message: m, call: waiting, isReply: true})
	default:
		waiting.reply <- m
	}
	return nil
}

func (c *conn) push(q queued) {
	c.mu.Lock()
	c.queue = append(c.queue, q)
	c.mu.Unlock()
	c.ready.Send()
}

// drain takes all that is queued.
func (c *conn) drain() []queued {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queue
	c.queue = nil
	return q
}

// probeLoop asks for a sign of life when there was none, and gives up when there
// is none still.
func (c *conn) probeLoop() error {
	if c.probe < 0 {
		return nil
	}
	ticker := beat.New(lookAfter(c.probe))
	defer ticker.Stop()
	var asked time.Time
	for {
		select {
		case <-c.done:
			return nil
		case <-ticker.C:
		}
		last := time.Unix(0, c.lastRx.Load())
		switch idle := time.Since(last); {
		case idle > 2*c.probe && asked.After(last):
			err := fmt.Errorf("no answer for %s (inactivity probe)", idle.Round(time.Millisecond))
			c.close(err)
			return err
		case idle > c.probe && !asked.After(last):
			asked = time.Now()
			if err := c.start(call{method: "echo", reply: make(chan message, 1)}); err != nil {
				c.close(err)
				return err
			}
		}
	}
}

// lookAfter is how often it is looked for a sign of life: four times in a probe, in whole seconds
// where that is more than one, as all else that looks.
func lookAfter(probe time.Duration) time.Duration {
	every := max(probe/4, time.Millisecond)
	if every > time.Second {
		every = every.Truncate(time.Second)
	}
	return every
}

// close ends the connection with a reason; the first one counts.
func (c *conn) close(reason error) {
	c.closing.Do(func() {
		c.mu.Lock()
		c.err = reason
		c.mu.Unlock()
		close(c.done)
		_ = c.net.Close() // nothing is lost: what was not answered is unknown anyway
	})
}

// reason is why the connection ended, valid after done.
func (c *conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// put queues a message for writing; mu is held.
func (c *conn) put(raw []byte) {
	c.out = append(c.out, raw)
	c.filled.Send()
}

// writeLoop writes what is put.
func (c *conn) writeLoop() error {
	for {
		select {
		case <-c.done:
			return nil
		case <-c.filled:
		}
		c.mu.Lock()
		out := c.out
		c.out = nil
		c.mu.Unlock()
		for _, raw := range out {
			if err := c.write(raw); err != nil {
				c.close(err)
				return err
			}
		}
	}
}

// write sends a message. A large one may take long, as long as the server reads.
func (c *conn) write(raw []byte) error {
	for chunk := range slices.Chunk(raw, writeChunk) {
		if err := c.net.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := c.net.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// start sends a request whose reply goes where w says; that it could not be
// written ends the connection. A request that cannot be encoded leaves it as good
// as before.
func (c *conn) start(w call, params ...any) error {
	if params == nil {
		params = []any{}
	}
	c.mu.Lock()
	c.nextID++
	id := c.nextID
	c.mu.Unlock()
	raw, err := json.Marshal(request{ID: id, Method: w.method, Params: params})
	if err != nil {
		return fmt.Errorf("encode %s: %w", w.method, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return ErrNotConnected
	}
	c.calls[id] = w
	c.put(raw)
	return nil
}

// request sends a request and waits for the reply's result.
func (c *conn) request(ctx context.Context, method string, params ...any) (json.RawMessage, error) {
	return c.await(ctx, call{method: method, reply: make(chan message, 1)}, params...)
}

func (c *conn) await(ctx context.Context, w call, params ...any) (json.RawMessage, error) {
	if err := c.start(w, params...); err != nil {
		return nil, err
	}
	select {
	case m := <-w.reply:
		return m.result(w.method)
	case <-c.done:
		select {
		case m := <-w.reply: // it came just before the end
			return m.result(w.method)
		default:
		}
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, c.reason())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m message) result(method string) (json.RawMessage, error) {
	if len(m.Error) > 0 && string(m.Error) != "null" {
		return nil, newRPCError(method, m.Error)
	}
	return m.Result, nil
}
