package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

const (
	// lastWords is how long a connection goes on whose neighbour is removed, or that has been
	// closed at one end.
	lastWords = 2 * time.Second
	// arrivalWait is how long a connection that a neighbour has opened waits for the server,
	// which pauses for some seconds between two sessions.
	arrivalWait = 15 * time.Second
)

// peer is a neighbour: its connections and the server's, one after the other.
type peer struct {
	connections *Connections
	config      Neighbor
	l           *net.TCPListener // the handle's
	ctx         context.Context
	cancel      context.CancelFunc

	connected, committed atomic.Bool
	// unfinished: as in Neighbor.
	unfinished atomic.Bool
	// wake has greet look at held and waiting.
	wake loop.Signal

	mu      sync.Mutex // guards what follows
	held    bool
	waiting *net.TCPConn // opened by the neighbour
	// restarted is until when the neighbour is told of the restart; forwards: there was a
	// session, over whose loss this node forwards on.
	restarted time.Time
	forwards  bool
	// restarts: the neighbour has offered graceful restart, in any of its sessions; keeps and
	// longLived are the families, the latter of long-lived graceful restart.
	restarts         bool
	keeps, longLived []Family
}

func newPeer(f *Connections, n Neighbor, l *net.TCPListener) *peer {
	ctx, cancel := context.WithCancel(context.Background())
	p := &peer{connections: f, config: n, l: l, ctx: ctx, cancel: cancel, wake: loop.NewSignal(), held: n.Held, restarted: n.Restarted}
	p.unfinished.Store(n.Unfinished)
	return p
}

func (p *peer) tell(e Event) {
	e.Neighbor = p.config.Address
	p.connections.tell(e)
}

// run holds the server's conversations, one at a time.
func (p *peer) run() {
	defer p.cancel()
	stop := context.AfterFunc(p.ctx, func() { _ = p.l.Close() })
	defer stop()
	defer p.dropWaiting()
	server := make(chan *net.TCPConn, 1)
	p.connections.running.Go(func() { p.accept(server) })
	for c := range server {
		newConversation(p, c).run()
		p.connected.Store(false)
	}
}

// accept takes connections to the handle until it is closed, whatever goes on, so that nobody
// on the node fills its queue. The server's latest is handed on.
func (p *peer) accept(server chan *net.TCPConn) {
	dropOld := func() {
		select {
		case old := <-server:
			_ = old.Close()
		default:
		}
	}
	defer close(server)
	defer dropOld()
	neighbor := p.config.Address.String()
	for {
		c, err := p.l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			p.connections.note(slog.LevelWarn, "cannot accept the BGP server's connection", neighbor, slog.Any("error", err))
			time.Sleep(100 * time.Millisecond)
		case !ours(c):
			p.connections.note(slog.LevelWarn, "refused a connection of another process to the BGP server", neighbor, slog.String("source", c.RemoteAddr().String()))
			_ = c.Close()
		default:
			dropOld()
			server <- c // it has room: nobody else sends
		}
	}
}

// arrived takes a connection that the neighbour has opened.
func (p *peer) arrived(c *net.TCPConn) {
	err := p.config.localAddress(c)
	if err == nil {
		o := p.config.options()
		o.password = "" // the listening socket's
		err = control(c, func(fd int) error { return o.set(fd, p.config.Address) })
	}
	p.mu.Lock()
	if err != nil || p.held || p.committed.Load() || p.ctx.Err() != nil {
		p.mu.Unlock()
		_ = c.Close()
		if err != nil {
			p.connections.note(slog.LevelInfo, "refused a BGP connection", p.config.Address.String(), slog.Any("error", err))
		}
		return
	}
	old := p.waiting
	p.waiting = c
	p.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	time.AfterFunc(arrivalWait, func() { p.dropWaiting(c) })
	p.wake.Send()
}

// dropWaiting closes the connection that waits, if it is that one.
func (p *peer) dropWaiting(which ...*net.TCPConn) {
	p.mu.Lock()
	c := p.waiting
	if c == nil || len(which) > 0 && c != which[0] {
		p.mu.Unlock()
		return
	}
	p.waiting = nil
	p.mu.Unlock()
	_ = c.Close()
}

// taken is the connection that waits, if there is one, and whether none may be.
func (p *peer) taken() (c *net.TCPConn, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, p.waiting = p.waiting, nil
	return c, p.held
}

func (p *peer) hold(held bool) {
	p.mu.Lock()
	p.held = held
	p.mu.Unlock()
	if held {
		p.dropWaiting()
	}
	p.wake.Send()
}

func (p *peer) isHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// opening is this end's OPEN as the neighbour gets it.
func (p *peer) opening(msg []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now().Before(p.restarted); now || p.forwards {
		return forwarding(msg, now)
	}
	return msg
}

// up notes that there is a session, from a local address.
func (p *peer) up(local netip.Addr) {
	p.mu.Lock()
	p.forwards = true
	p.mu.Unlock()
	p.tell(Event{Kind: Established, Local: local})
}

// announced notes that the neighbour has all routes of this node: the restart is over.
func (p *peer) announced() {
	p.mu.Lock()
	p.restarted = time.Time{}
	p.mu.Unlock()
}

// restartCapabilities are what the server is told of a neighbour's graceful restart. The server
// forgets nothing that a neighbour has offered in an earlier session. Therefore a time of zero
// stands for what is not offered any more: in RFC 9494's capability for each family, in RFC
// 4724's, which has one time, for all families.
func (p *peer) restartCapabilities(o *open) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !o.restart {
		o.drop(capLongLived) // RFC 9494 section 3.1
	}
	keeps, longLived := o.listed(capRestart, 2, 4), o.listed(capLongLived, 0, 7)
	if p.restarts && !o.restart || len(without(p.keeps, keeps)) > 0 {
		value := []byte{0, 0}
		if c := o.drop(capRestart); o.restart {
			value = slices.Clone(c.value)
			value[0], value[1] = value[0]&0xf0, 0
		}
		o.caps = append(o.caps, capability{capRestart, value})
	}
	if lost := without(p.longLived, longLived); len(lost) > 0 {
		value := slices.Clone(o.drop(capLongLived).value)
		for _, f := range lost {
			value = append(binary.BigEndian.AppendUint16(value, f.AFI), f.SAFI, 0, 0, 0, 0)
		}
		o.caps = append(o.caps, capability{capLongLived, value})
	}
	p.restarts = p.restarts || o.restart
	p.keeps = append(p.keeps, without(keeps, p.keeps)...)
	p.longLived = append(p.longLived, without(longLived, p.longLived)...)
}

// everRestarts tells whether the server may keep routes over a NOTIFICATION.
func (p *peer) everRestarts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

func without(list, of []Family) []Family {
	return slices.DeleteFunc(slices.Clone(list), func(f Family) bool { return slices.Contains(of, f) })
}
