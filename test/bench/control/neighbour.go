package control

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/lab"
)

const (
	bgpPort  = "179"
	holdTime = 90
)

// neighbour is the other end of sluiced's session. It takes one session at a time.
type neighbour struct {
	asn    uint32
	id     netip.Addr
	listen net.Listener
	ended  sync.WaitGroup

	mu      sync.Mutex
	conn    net.Conn
	session time.Time // when it came up; zero: there is none
	routes  map[intent.RouteKey]time.Time
	known   map[route]intent.RouteKey
	failed  error
	changed chan struct{} // closed by what changes any of these
}

// listenAt waits for sessions at an address of a namespace.
func listenAt(ns netns.Namespace, address netip.Addr, asn uint32) (*neighbour, error) {
	var listen net.Listener
	err := ns.Do(func() (err error) {
		listen, err = net.Listen("tcp", net.JoinHostPort(address.String(), bgpPort))
		return err
	})
	if err != nil {
		return nil, err
	}
	return newNeighbour(listen, asn, address), nil
}

func newNeighbour(listen net.Listener, asn uint32, id netip.Addr) *neighbour {
	n := &neighbour{asn: asn, id: id, listen: listen, changed: make(chan struct{})}
	n.forget()
	n.ended.Go(n.accept)
	return n
}

// stop ends the sessions, and returns when nothing of the neighbour runs.
func (n *neighbour) stop() error {
	err := n.listen.Close()
	n.mu.Lock()
	if n.conn != nil {
		_ = n.conn.Close()
	}
	n.mu.Unlock()
	n.ended.Wait()
	return err
}

func (n *neighbour) accept() {
	for {
		c, err := n.listen.Accept()
		if err != nil {
			return
		}
		n.change(func() { n.conn = c })
		err = n.serve(c)
		_ = c.Close()
		n.change(func() {
			n.conn = nil
			n.forget()
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				n.failed = err
			}
		})
	}
}

// forget is what the end of a session without graceful restart means.
func (n *neighbour) forget() {
	n.session = time.Time{}
	n.routes, n.known = map[intent.RouteKey]time.Time{}, map[route]intent.RouteKey{}
}

func (n *neighbour) change(do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do()
	close(n.changed)
	n.changed = make(chan struct{})
}

// serve is one session. Every keepalive is answered with one.
func (n *neighbour) serve(c net.Conn) error {
	if _, err := c.Write(open(n.asn, holdTime, n.id)); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for {
		kind, body, err := read(in)
		at := time.Now()
		if err != nil {
			return err
		}
		switch kind {
		case messageOpen, messageKeepalive:
			answer := frame(messageKeepalive, nil)
			if kind == messageKeepalive && n.began(at) {
				answer = append(answer, frame(messageUpdate, endOfRIB)...)
			}
			if _, err := c.Write(answer); err != nil {
				return err
			}
		case messageUpdate:
			reach, unreach, err := update(body)
			if err != nil {
				return err
			}
			n.change(func() { n.take(at, reach, unreach) })
		default: // a NOTIFICATION: the connection ends after it
		}
	}
}

// began notes the first keepalive: the session is up.
func (n *neighbour) began(at time.Time) (first bool) {
	n.change(func() {
		if first = n.session.IsZero(); first {
			n.session = at
		}
	})
	return first
}

func read(in io.Reader) (kind byte, body []byte, err error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	size := int(binary.BigEndian.Uint16(head[16:]))
	if size < headerSize {
		return 0, nil, fmt.Errorf("a BGP message of %d bytes", size)
	}
	body = make([]byte, size-headerSize)
	_, err = io.ReadFull(in, body)
	return head[18], body, err
}

func (n *neighbour) take(at time.Time, reach, unreach []announced) {
	for _, r := range unreach {
		delete(n.routes, n.known[r.route])
		delete(n.known, r.route)
	}
	for _, r := range reach {
		k := intent.NewRouteKey(r.vni, r.prefix)
		n.known[r.route] = k
		if _, there := n.routes[k]; !there {
			n.routes[k] = at
		}
	}
}

// await waits until done tells a moment, with the neighbour locked.
func (n *neighbour) await(ctx context.Context, what string, done func() (time.Time, bool)) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lab.Patience(), errors.New("it does not come"))
	defer cancel()
	for {
		n.mu.Lock()
		at, yes := done()
		changed, failed := n.changed, n.failed
		n.mu.Unlock()
		if yes {
			return at, nil
		}
		if failed != nil {
			return at, fmt.Errorf("waiting for %s: the session failed: %w", what, failed)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return at, fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

func (n *neighbour) awaitSession(ctx context.Context) (time.Time, error) {
	return n.await(ctx, "the session", func() (time.Time, bool) { return n.session, !n.session.IsZero() })
}

func (n *neighbour) awaitEnd(ctx context.Context) error {
	_, err := n.await(ctx, "the session's end", func() (time.Time, bool) { return time.Time{}, n.conn == nil })
	return err
}

// awaitAll waits for all routes, and tells when the last one came.
func (n *neighbour) awaitAll(ctx context.Context, keys []intent.RouteKey) (time.Time, error) {
	return n.await(ctx, fmt.Sprintf("%d routes", len(keys)), func() (last time.Time, all bool) {
		for _, k := range keys {
			at, there := n.routes[k]
			if !there {
				return last, false
			}
			if at.After(last) {
				last = at
			}
		}
		return last, true
	})
}

// awaitGone waits until no route is left of a VRF.
func (n *neighbour) awaitGone(ctx context.Context, gone func(intent.RouteKey) bool) error {
	_, err := n.await(ctx, "withdrawals", func() (time.Time, bool) {
		for k := range n.routes {
			if gone(k) {
				return time.Time{}, false
			}
		}
		return time.Time{}, true
	})
	return err
}
