package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// Neighbor is one end of a session.
type Neighbor struct {
	// Address has the interface of a link-local address as its zone.
	Address netip.Addr
	Port    uint16
	// LocalAddress is the source address. Invalid: the kernel's choice.
	LocalAddress netip.Addr
	// Password is the key of TCP-MD5 (RFC 2385). "": none.
	Password string
	// TTL is that of packets sent; MinTTL the lowest that is taken (RFC 5082). 0: the
	// kernel's, and any.
	TTL, MinTTL uint8
	// Passive waits for the neighbour to connect.
	Passive      bool
	ConnectRetry time.Duration
	// HoldTime is this end's: what the server is told when the neighbour has none.
	HoldTime time.Duration
	// Restarted tells the neighbour that this node has restarted and gone on forwarding,
	// until it has this node's End-of-RIB or that time is over.
	Restarted time.Time
	// Unfinished: this node has routes still to announce, and the neighbour does not get its
	// End-of-RIB before Finish.
	Unfinished bool
	// Held: no connection is made or taken.
	Held bool
}

// Connections owns the connections with all neighbours. New makes it, Close ends it.
type Connections struct {
	log   *slog.Logger
	limit loglimit.Limit
	tell  func(Event)
	own   Own

	mu        sync.Mutex
	listeners []*net.TCPListener
	peers     map[netip.Addr]*peer
	next      netip.Addr // the handle given last
	closed    bool
	running   sync.WaitGroup
}

// New does no I/O. own is what to look for in the routes of others; the zero value: nothing.
// tell is called from goroutines of its own, in order for one neighbour, and must not block.
func New(log *slog.Logger, own Own, tell func(Event)) *Connections {
	return &Connections{log: log, own: own, tell: tell, peers: map[netip.Addr]*peer{}}
}

var errClosed = errors.New("BGP is stopping, no session can be added")

// Listen takes connections at each of the addresses, or at none if one fails.
func (f *Connections) Listen(ctx context.Context, at ...netip.AddrPort) error {
	var opened []*net.TCPListener
	var errs []error
	for _, a := range at {
		l, err := listen(ctx, a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		opened = append(opened, l)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		errs = append(errs, errClosed)
	}
	if len(errs) > 0 {
		for _, l := range opened {
			_ = l.Close()
		}
		return errors.Join(errs...)
	}
	f.listeners = append(f.listeners, opened...)
	for _, l := range opened {
		f.running.Go(func() { f.accept(l) })
	}
	return nil
}

func (f *Connections) accept(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			f.note(slog.LevelWarn, "cannot accept a BGP connection", "", slog.Any("error", err))
			time.Sleep(100 * time.Millisecond)
			continue
		}
		from := source(c)
		f.mu.Lock()
		p := f.peers[from]
		f.mu.Unlock()
		if p == nil {
			f.log.Debug("refused a BGP connection from an address of no neighbour", slog.String("address", from.String()))
			_ = c.Close()
			continue
		}
		p.arrived(c)
	}
}

// note logs what others can cause, not more often than loglimit allows.
func (f *Connections) note(level slog.Level, event, neighbor string, attrs ...slog.Attr) {
	ok, skipped := f.limit.Allow(event, neighbor, time.Now())
	if !ok {
		return
	}
	attrs = append(attrs, slog.String("neighbor", neighbor))
	if skipped > 0 {
		attrs = append(attrs, slog.Int("skipped", skipped))
	}
	f.log.LogAttrs(context.Background(), level, event, attrs...)
}

// Add begins with a neighbour. The server is to speak with it at the handle, from the
// address Self. An error is one of sockets.
func (f *Connections) Add(n Neighbor) (handle netip.AddrPort, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return handle, errClosed
	}
	if f.peers[n.Address] != nil {
		return handle, fmt.Errorf("add BGP neighbour %s: it has a session already; list its address once in bgp.neighbors", n.Address)
	}
	l, err := f.handleLocked()
	if err != nil {
		return handle, fmt.Errorf("open %s for BGP neighbour %s, check that the device lo is up: %w", f.next, n.Address, err)
	}
	if n.Password != "" {
		if err := f.passwordLocked(n.Address, n.Password); err != nil {
			return handle, errors.Join(err, l.Close())
		}
	}
	p := newPeer(f, n, l)
	f.peers[n.Address] = p
	f.running.Go(p.run)
	return addrPort(l.Addr()), nil
}

// handleLocked opens a loopback address that no neighbour had lately: the server may still
// have news of a former one.
func (f *Connections) handleLocked() (*net.TCPListener, error) {
	if f.next = f.next.Next(); f.next == Self || !f.next.IsValid() {
		f.next = netip.AddrFrom4([4]byte{127, 179, 0, 1})
	}
	return net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(f.next, 0)))
}

// passwordLocked sets a neighbour's key on the listening sockets, or takes it off.
func (f *Connections) passwordLocked(neighbor netip.Addr, password string) error {
	var errs []error
	for _, l := range f.listeners {
		if addrPort(l.Addr()).Addr().Is4() == neighbor.Is4() {
			errs = append(errs, control(l, func(fd int) error { return setPassword(fd, neighbor, password) }))
		}
	}
	return errors.Join(errs...)
}

// sharedLocked tells whether a neighbour on another link has the same address, and so the key.
func (f *Connections) sharedLocked(neighbor netip.Addr) bool {
	for a := range f.peers {
		if a.WithZone("") == neighbor.WithZone("") {
			return true
		}
	}
	return false
}

// Remove takes no connection with a neighbour any more. One that is there has a moment for
// what the server still has to say.
func (f *Connections) Remove(neighbor netip.Addr) {
	f.mu.Lock()
	p := f.peers[neighbor]
	delete(f.peers, neighbor)
	if p != nil && p.config.Password != "" && !f.sharedLocked(neighbor) {
		_ = f.passwordLocked(neighbor, "") // of a socket that is closed
	}
	f.mu.Unlock()
	if p != nil {
		_ = p.l.Close()
		time.AfterFunc(lastWords, p.cancel)
	}
}

// Hold lets no connection be made or taken, or lets them again. One that is there stays.
func (f *Connections) Hold(neighbor netip.Addr, held bool) {
	f.mu.Lock()
	p := f.peers[neighbor]
	f.mu.Unlock()
	if p != nil {
		p.hold(held)
	}
}

// Offer connects the server with a neighbour's handle: the server gets the connection by
// take, as one that it has accepted, where it would dial only a second or two later.
func (f *Connections) Offer(neighbor netip.Addr, take chan<- *net.TCPConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[neighbor]
	if p == nil || f.closed {
		return
	}
	f.running.Go(func() {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(Self, 0))}
		c, err := d.DialContext(p.ctx, "tcp4", p.l.Addr().String())
		if err != nil {
			return // the server dials by itself
		}
		select {
		case take <- c.(*net.TCPConn):
		case <-p.ctx.Done():
			_ = c.Close()
		}
	})
}

// Finish tells that the server has all routes of this node: from now on the neighbour gets the
// End-of-RIB when the server sends it. To one from which it was withheld (Withheld) the server is
// to send it again, after Finish.
func (f *Connections) Finish(neighbor netip.Addr) {
	f.mu.Lock()
	p := f.peers[neighbor]
	f.mu.Unlock()
	if p != nil {
		p.unfinished.Store(false)
	}
}

// Connected tells whether there is a connection with a neighbour.
func (f *Connections) Connected(neighbor netip.Addr) bool {
	f.mu.Lock()
	p := f.peers[neighbor]
	f.mu.Unlock()
	return p != nil && p.connected.Load()
}

// Close ends all connections, and waits for that. With patience the server has so long to
// end them; without, and after it, they are closed without a NOTIFICATION.
func (f *Connections) Close(patience time.Duration) {
	f.mu.Lock()
	f.closed = true
	for _, l := range f.listeners {
		_ = l.Close()
	}
	for _, p := range f.peers {
		_ = p.l.Close()
		defer time.AfterFunc(patience, p.cancel).Stop()
	}
	f.mu.Unlock()
	f.running.Wait()
}
