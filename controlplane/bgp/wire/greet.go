package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"
)

const (
	// openWait is the longest wait for the server's OPEN, and for this end's to be taken.
	openWait = time.Minute
	// answerWait is how long a connection waits for the neighbour's OPEN before there is
	// another: a neighbour that is not ready for it may take a connection and say nothing.
	answerWait = 20 * time.Second
	// firstRetry is the wait after the first attempt to connect; each further one is twice as long.
	firstRetry = 100 * time.Millisecond
)

// candidate is a connection on which this end's OPEN has been sent.
type candidate struct {
	conn *net.TCPConn
	r    *bufio.Reader
	// msg is the neighbour's OPEN, theirs what is in it; err is why there is none.
	msg    []byte
	theirs open
	err    error
}

var (
	errNoOpen   = errors.New("the neighbour has closed the connection before its OPEN")
	errNoAnswer = fmt.Errorf("the neighbour has sent no OPEN for %s", answerWait)
)

// hear reads the first message.
func (c *candidate) hear() {
	_ = c.conn.SetReadDeadline(time.Now().Add(answerWait))
	msg, err := readMessage(c.r, make([]byte, maxMessage))
	switch {
	case err != nil:
		c.err = errNoOpen
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.err = errNoAnswer
		}
		if f, wrong := errors.AsType[*Fault](err); wrong {
			c.err = f
		}
	case msg[18] == typeNotification:
		c.err = received{Notice{msg[headerLen], msg[headerLen+1], msg[headerLen+2:]}}
	case msg[18] != typeOpen:
		c.err = fault(codeFSM, 1, nil, "a message of type %d before OPEN", msg[18])
	default:
		c.msg = msg
		c.theirs, c.err = parseOpen(msg)
	}
}

// received is a NOTIFICATION in the place of an OPEN.
type received struct{ Notice }

func (r received) Error() string { return fmt.Sprintf("NOTIFICATION %d/%d", r.Code, r.Subcode) }

// greeting finds the connection of a conversation.
type greeting struct {
	v       *conversation
	p       *peer
	ctx     context.Context
	heard   chan *candidate
	dialed  chan dialing
	dials   bool
	retry   *time.Timer
	wait    time.Duration // until the next attempt
	out, in *candidate    // opened by this end, and by the neighbour
}

type dialing struct {
	conn *net.TCPConn
	err  error
}

// greet waits for the neighbour's OPEN, on whichever connection there is. nil: the server
// has given up, or the neighbour is removed.
func (v *conversation) greet() *candidate {
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	g := &greeting{v: v, p: v.p, ctx: ctx, heard: make(chan *candidate), dialed: make(chan dialing), retry: time.NewTimer(0), wait: firstRetry}
	defer g.retry.Stop()
	g.arrived()
	for {
		g.p.connected.Store(g.out != nil || g.in != nil)
		select {
		case <-ctx.Done():
			g.drop(&g.out, nil)
			g.drop(&g.in, nil)
			return nil
		case <-g.p.wake:
			g.arrived()
		case <-g.retry.C:
			g.dial()
		case d := <-g.dialed:
			g.connected(d)
		case c := <-g.heard:
			if best := g.answered(c); best != nil {
				return best
			}
		}
	}
}

// arrived takes the connection that the neighbour has opened, or lets all go.
func (g *greeting) arrived() {
	c, held := g.p.taken()
	if held {
		g.drop(&g.out, nil)
		g.drop(&g.in, nil)
		return
	}
	if c != nil {
		g.drop(&g.in, nil)
		g.in = g.open(c)
	}
	if g.out == nil && g.in == nil && !g.dials {
		g.retry.Reset(0)
	}
}

func (g *greeting) dial() {
	if g.p.config.Passive || g.dials || g.out != nil || g.in != nil || g.p.isHeld() {
		return
	}
	g.dials = true
	g.p.connections.running.Go(func() {
		c, err := g.p.config.dial(g.ctx)
		select {
		case g.dialed <- dialing{c, err}:
		case <-g.ctx.Done():
			if c != nil {
				_ = c.Close()
			}
		}
	})
}

func (g *greeting) connected(d dialing) {
	g.dials = false
	switch {
	case d.err != nil:
		g.p.tell(Event{Kind: ConnectFailed, Err: d.err})
		g.again()
	case g.p.isHeld():
		_ = d.conn.Close()
	default:
		g.out = g.open(d.conn)
	}
}

// again has the next attempt made when it is time: ConnectRetry after the last one (RFC 4271
// section 10, with its jitter), the first ones sooner. A neighbour that has just lost a
// session refuses connections for a second or so.
func (g *greeting) again() {
	if g.out == nil && g.in == nil {
		wait := min(g.wait, g.p.config.ConnectRetry)
		g.wait = 2 * wait
		g.retry.Reset(wait - rand.N(wait/4+1))
	}
}

// open sends OPEN and waits for the neighbour's.
func (g *greeting) open(c *net.TCPConn) *candidate {
	g.p.tell(Event{Kind: Connected})
	o := &candidate{conn: c, r: bufio.NewReaderSize(c, bufferSize)}
	g.p.connections.running.Go(func() {
		_ = c.SetWriteDeadline(time.Now().Add(openWait))
		if _, err := c.Write(g.p.opening(g.v.opening)); err != nil {
			o.err = errNoOpen
		} else {
			o.hear()
		}
		select {
		case g.heard <- o:
		case <-g.ctx.Done():
		}
	})
	return o
}

// drop closes a connection, with a NOTIFICATION if there is one.
func (g *greeting) drop(c **candidate, n *Notice) {
	if *c == nil {
		return
	}
	if n != nil {
		_ = (*c).conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = (*c).conn.Write(n.message())
	}
	_ = (*c).conn.Close()
	*c = nil
}

// answered takes what has been read on a connection; it returns the one to use.
func (g *greeting) answered(c *candidate) *candidate {
	which, other := &g.out, &g.in
	switch c {
	case g.out:
	case g.in:
		which, other = &g.in, &g.out
	default:
		return nil // it was dropped meanwhile
	}
	if c.err != nil {
		g.refused(which)
		g.again()
		return nil
	}
	if *other == nil {
		return c
	}
	// RFC 4271 section 6.8: that of the end with the higher identifier stays.
	loser := &g.out
	if g.v.ours.id > c.theirs.id {
		loser = &g.in
	}
	if loser == which {
		which = nil
	}
	g.drop(loser, &Notice{Code: codeCease, Subcode: subCollision})
	if which == nil {
		return nil // the other one has not answered yet
	}
	return c
}

// refused drops a connection on which there is no OPEN, and tells why.
func (g *greeting) refused(which **candidate) {
	err := (*which).err
	if f, ok := errors.AsType[*Fault](err); ok {
		g.p.tell(Event{Kind: Ended, End: End{Sent: &f.Notice, Why: f.Why}})
		g.drop(which, &f.Notice)
		return
	}
	g.drop(which, nil)
	if r, ok := errors.AsType[received](err); ok {
		g.p.tell(Event{Kind: Ended, End: End{Received: &r.Notice}})
		return
	}
	if g.out == nil && g.in == nil {
		g.p.tell(Event{Kind: ConnectFailed, Err: err})
	}
}
