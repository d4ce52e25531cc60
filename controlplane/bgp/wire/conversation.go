package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	bufferSize = 64 << 10
	// sendHold is how long a neighbour may take nothing when there is no hold time (RFC 9687).
	sendHold = 8 * time.Minute
)

// conversation is one connection of the server, and the neighbour's that belongs to it.
type conversation struct {
	p      *peer
	ctx    context.Context
	cancel context.CancelFunc

	local      *net.TCPConn // the server's
	fromServer *bufio.Reader
	opening    []byte // the server's OPEN
	ours       open
	toServer   sync.Mutex // held while local is written

	// committed is closed when what follows is set.
	committed  chan struct{}
	remote     *net.TCPConn
	agreement  Agreement
	asn        uint32
	patience   time.Duration // of writing to the neighbour
	toNeighbor sync.Mutex    // held while remote is written
	// unended are the families of which this end's End-of-RIB is to be sent; send has them.
	unended []Family
	// withheld are the families whose first End-of-RIB, which comes before this node's routes, is
	// still to come; send has them.
	withheld []Family

	mu              sync.Mutex // guards what follows
	confirms        [2]bool    // KEEPALIVE was sent, and received
	ended, released bool
}

func newConversation(p *peer, local *net.TCPConn) *conversation {
	v := &conversation{p: p, local: local, fromServer: bufio.NewReaderSize(local, bufferSize), committed: make(chan struct{})}
	v.ctx, v.cancel = context.WithCancel(p.ctx)
	return v
}

// run holds the conversation until either end is over.
func (v *conversation) run() {
	defer v.cancel()
	defer v.local.Close()
	stop := context.AfterFunc(v.ctx, func() { _ = v.local.Close() })
	defer stop()
	_ = v.local.SetReadDeadline(time.Now().Add(openWait))
	msg, err := readMessage(v.fromServer, make([]byte, maxMessage))
	if err != nil || msg[18] != typeOpen {
		return
	}
	_ = v.local.SetReadDeadline(time.Time{})
	if v.opening = msg; err == nil {
		v.ours, err = parseOpen(msg)
	}
	if err != nil {
		return
	}
	done := make(chan struct{})
	v.p.connections.running.Go(func() { defer close(done); v.send() })
	if c := v.greet(); c != nil {
		v.commit(c)
		v.receive(c.r)
		_ = c.conn.Close()
	}
	v.cancel()
	_ = v.local.Close()
	<-done
	v.p.committed.Store(false)
}

// commit joins the two connections: the server gets the neighbour's OPEN.
func (v *conversation) commit(c *candidate) {
	v.p.committed.Store(true)
	v.p.dropWaiting()
	v.remote, v.asn = c.conn, c.theirs.asn
	_ = c.conn.SetReadDeadline(time.Time{})
	v.agreement = agree(v.ours, c.theirs)
	v.unended = slices.Clone(v.agreement.Families)
	if v.p.unfinished.Load() {
		v.withheld = slices.Clone(v.agreement.Families)
	}
	v.agreement.Local, v.agreement.VTEPs = addrPort(c.conn.LocalAddr()).Addr(), v.p.connections.own.VTEPs
	v.agreement.Loopback = addrPort(c.conn.RemoteAddr()).Addr().IsLoopback()
	hold := c.theirs.hold
	v.patience = time.Duration(min(hold, v.ours.hold)) * time.Second
	if v.agreement.Untimed {
		hold, v.patience = v.ours.hold, sendHold
	}
	v.p.restartCapabilities(&c.theirs)
	context.AfterFunc(v.ctx, func() { _ = c.conn.Close() })
	close(v.committed)
	v.writeServer(c.theirs.message(c.msg, hold))
}

func (v *conversation) writeServer(b []byte) {
	v.toServer.Lock()
	defer v.toServer.Unlock()
	_, _ = v.local.Write(b) // send notices when the server is gone
}

func (v *conversation) writeNeighbor(b []byte) error {
	v.toNeighbor.Lock()
	defer v.toNeighbor.Unlock()
	_ = v.remote.SetWriteDeadline(time.Now().Add(v.patience))
	_, err := v.remote.Write(b)
	return err
}

// receive passes the neighbour's messages to the server.
func (v *conversation) receive(r *bufio.Reader) {
	buf, out := make([]byte, maxMessage), make([]byte, 0, bufferSize)
	others := newDoubles(v.p.connections.own)
	defer func() {
		if len(others.routes) > 0 {
			v.p.tell(Event{Kind: Doubled})
		}
	}()
	for {
		msg, err := readMessage(r, buf)
		if err == nil {
			if all, changed := others.take(v.agreement, msg); changed {
				v.p.tell(Event{Kind: Doubled, Doubles: all})
			}
			switch msg[18] {
			case typeNotification:
				msg = v.notified(msg)
			case typeKeepalive:
				v.confirm(1)
			}
			var what Outcome
			if out, what, err = v.agreement.In(out, msg); what == Ignored {
				v.p.tell(Event{Kind: UpdateIgnored})
			}
		}
		if err != nil || len(out) > bufferSize-2*maxMessage || !another(r) {
			if err != nil {
				v.lost(err)
			}
			v.writeServer(out)
			out = out[:0]
		}
		if f, ok := errors.AsType[*Fault](err); ok {
			_ = v.writeNeighbor(f.Notice.message())
			v.release()
			// The server ends the session, and keeps nothing for a restart.
			v.writeServer(Notice{Code: codeCease, Subcode: subHardReset}.message())
			_, _ = io.Copy(io.Discard, v.remote)
		}
		if err != nil {
			return
		}
	}
}

// notified takes a NOTIFICATION of the neighbour, and returns it as the server gets it. The
// server keeps routes over one if the neighbour has offered so in any session: where it has
// not in this one, a Hard Reset takes its place.
func (v *conversation) notified(msg []byte) []byte {
	n := Notice{msg[headerLen], msg[headerLen+1], append([]byte(nil), msg[headerLen+2:]...)}
	e := v.end(End{Received: &n})
	if e.Graceful || !v.p.everRestarts() || n.hardReset() {
		return msg
	}
	return Notice{codeCease, subHardReset, append([]byte{n.Code, n.Subcode}, n.Data...)}.message() // RFC 8538 section 3.1
}

// lost notes why nothing more comes from the neighbour.
func (v *conversation) lost(err error) {
	if f, ok := errors.AsType[*Fault](err); ok {
		v.end(End{Sent: &f.Notice, Why: f.Why})
		return
	}
	v.end(End{})
}

// release lets the neighbour read what was sent last before the connection is closed.
func (v *conversation) release() {
	v.mu.Lock()
	again := v.released
	v.released = true
	v.mu.Unlock()
	if again {
		return
	}
	_ = v.remote.CloseWrite()
	_ = v.remote.SetReadDeadline(time.Now().Add(lastWords))
}

// send passes the server's messages to the neighbour.
func (v *conversation) send() {
	buf, out := make([]byte, maxMessage), make([]byte, 0, bufferSize)
	for {
		msg, err := readMessage(v.fromServer, buf)
		if !v.isCommitted() {
			v.cancel() // the server has given up
			return
		}
		if err == nil {
			out = v.say(out, msg)
		}
		if len(out) > 0 && (err != nil || len(out) > bufferSize-2*maxMessage || !another(v.fromServer)) {
			if werr := v.writeNeighbor(out); werr != nil {
				// The neighbour's last words are read first: receive finds the reason, and ends this.
				_ = v.remote.SetReadDeadline(time.Now().Add(lastWords))
				_, _ = io.Copy(io.Discard, v.fromServer)
				return
			}
			out = out[:0]
		}
		if err != nil {
			v.end(End{Why: "the session was closed here"})
			v.release()
			return
		}
	}
}

// say appends one message of the server for the neighbour.
func (v *conversation) say(out, msg []byte) []byte {
	switch msg[18] {
	case typeKeepalive:
		if v.agreement.Untimed && v.confirmed(0) {
			// Without a hold time neither end sends any; the server has one.
			v.writeServer(keepalive)
			return out
		}
		v.confirm(0)
	case typeUpdate:
		f, ok := endOf(msg)
		switch {
		case ok && !slices.Contains(v.agreement.Families, f):
			return out // the server sends those of all families that it knows when it sends all once more
		case ok && len(v.withheld) > 0:
			if v.withheld = without(v.withheld, []Family{f}); len(v.withheld) == 0 {
				v.p.tell(Event{Kind: Withheld})
			}
			return out
		case ok && v.p.unfinished.Load():
			return out // of a ROUTE-REFRESH; Withheld is told
		case ok && len(v.unended) > 0:
			if v.unended = without(v.unended, []Family{f}); len(v.unended) == 0 {
				v.p.announced()
			}
		}
	case typeNotification:
		v.end(End{Sent: &Notice{msg[headerLen], msg[headerLen+1], append([]byte(nil), msg[headerLen+2:]...)}})
	}
	return v.agreement.Out(out, msg)
}

func (v *conversation) isCommitted() bool {
	select {
	case <-v.committed:
		return true
	default:
		return false
	}
}

func (v *conversation) confirmed(end int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.confirms[end]
}

// confirm notes a KEEPALIVE of this end, 0, or the other.
func (v *conversation) confirm(end int) {
	v.mu.Lock()
	before := v.confirms
	v.confirms[end] = true
	up := before != v.confirms && v.confirms == [2]bool{true, true} && !v.ended
	v.mu.Unlock()
	if !up {
		return
	}
	v.p.up(v.agreement.Local)
	if !v.agreement.Restart || len(v.agreement.Families) == 0 {
		v.p.announced() // there is no End-of-RIB
	}
}

// end tells why the conversation is over, and returns it in full; the first reason counts.
func (v *conversation) end(e End) End {
	v.mu.Lock()
	again := v.ended
	v.ended = true
	e.Established = v.confirms == [2]bool{true, true}
	v.mu.Unlock()
	e.ASN, e.Graceful = v.asn, e.graceful(v.agreement)
	if !again {
		v.p.committed.Store(false) // the neighbour's next connection may wait
		v.p.tell(Event{Kind: Ended, End: e})
	}
	return e
}
