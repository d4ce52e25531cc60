package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/metadata/proxy"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// place is where to listen.
type place struct {
	// socket is the name by which sockets are handed over.
	socket string
	// network is empty for steered requests.
	network string
	// path is the namespace's.
	path string
	// addr has no zone; device is the one that a link-local address is on.
	addr   netip.Addr
	device string
}

func (p place) at() netip.AddrPort {
	if p.device != "" {
		return netip.AddrPortFrom(p.addr.WithZone(p.device), proxy.Port)
	}
	return netip.AddrPortFrom(p.addr, proxy.Port)
}

// listen opens the socket. Where an agent's haproxy has it, as in a namespace that was
// adopted, the two share it until haproxy ends; but in nobody's namespace but Sluice's.
func (p place) listen(ctx context.Context, ns netns.Namespace) (net.Listener, error) {
	l, err := proxy.Listen(ctx, ns, p.at())
	if !errors.Is(err, unix.EADDRINUSE) || p.network == "" {
		return l, err
	}
	if ours, ownErr := namespace.Ours(p.path, p.network); ownErr != nil || !ours {
		return nil, errors.Join(err, ownErr, errors.New("and the namespace is not Sluice's: see sluicectl adopt"))
	}
	return proxy.ListenBeside(ctx, ns, p.at())
}

// listening is a listener in a place, as long as the namespace stays the one that it is.
type listening struct {
	net.Listener // what the server takes connections from; nil before it is served
	inner        *net.TCPListener
	// conns are those of a process before, until it is served.
	conns []int
	ns    nsID
	since time.Time
	// served is closed when the server has ended; nil before it has begun.
	served chan struct{}

	accepted atomic.Uint64
	// mu guards what alive remembers.
	mu       sync.Mutex
	looked   time.Time
	seen     uint64
	anyQueue bool
}

func (l *listening) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// errChanges: somebody is replacing the namespace.
var errChanges = errors.New("the namespace changes")

// open listens in a place, or goes on with a socket of a process before.
func open(ctx context.Context, p place, before *inherited) (*listening, error) {
	ns := netns.At(p.path)
	id, err := lookUp(p.path)
	if err != nil {
		return nil, err
	}
	inner, conns, err := before.listener(p, ns)
	if inner == nil {
		l, listenErr := p.listen(ctx, ns)
		if listenErr != nil {
			return nil, errors.Join(listenErr, err)
		}
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return nil, errors.Join(fmt.Errorf("%T is no TCP listener", l), l.Close())
		}
		inner = tcp
	}
	if again, err := lookUp(p.path); err != nil || again != id {
		closeAll(conns)
		return nil, errors.Join(errChanges, err, inner.Close())
	}
	return &listening{inner: inner, conns: conns, ns: id, since: time.Now()}, nil
}

// begin has the server take connections.
func (l *listening) begin() {
	l.Listener, l.conns, l.served = proxy.Resume(l.inner, l.conns), nil, make(chan struct{})
}

// end closes it, also where it was not served.
func (l *listening) end() {
	closeAll(l.conns)
	_ = l.inner.Close()
	if l.Listener != nil {
		_ = l.Listener.Close()
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// stays tells whether the place is the one that was listened in.
func (l *listening) stays(p place) error {
	id, err := lookUp(p.path)
	switch {
	case err != nil:
		return err
	case id != l.ns:
		return fmt.Errorf("%s is another namespace than before", p.path)
	case p.device == "":
		return nil
	}
	return withFD(l.inner, func(fd int) error { return sameDevice(fd, p.device) })
}

// sameDevice tells whether a socket's link-local address is on the device that now has the
// name.
func sameDevice(fd int, device string) error {
	_, bound, err := boundTo(fd)
	if err != nil {
		return err
	}
	index, err := proxy.DeviceIndex(fd, device)
	if err == nil && index != bound {
		err = fmt.Errorf("device %s is another one than before", device)
	}
	return err
}

// stuckAfter is how long connections may wait without any being taken.
const stuckAfter = 400 * time.Millisecond

// alive tells whether connections are taken. It is asked again and again: one look does
// not show it.
func (l *listening) alive(now time.Time) error {
	if l.served == nil {
		return errors.New("it is not served yet")
	}
	select {
	case <-l.served:
		return errors.New("it is served no longer")
	default:
	}
	var queue uint32
	err := withFD(l.inner, func(fd int) (err error) { queue, err = waiting(fd); return err })
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.accepted.Load(); queue == 0 || n != l.seen || !l.anyQueue {
		l.looked, l.seen, l.anyQueue = now, n, queue > 0
		return nil
	}
	if waited := now.Sub(l.looked); waited > stuckAfter {
		return fmt.Errorf("%d connections wait, and none was taken for %s", queue, waited.Round(time.Millisecond))
	}
	return nil
}

// inherited are the sockets of a process before that nobody has taken yet.
type inherited struct{ sockets map[string][]int }

func newInherited(sockets []Socket) *inherited {
	in := &inherited{sockets: map[string][]int{}}
	for _, s := range sockets {
		in.sockets[s.Name] = append(in.sockets[s.Name], s.FD)
	}
	return in
}

func (in *inherited) take(name string) []int {
	fds := in.sockets[name]
	delete(in.sockets, name)
	return fds
}

// listener is the socket for a place with its connections, if it is one of the namespace
// that is there now; else they are closed, as they are from elsewhere.
func (in *inherited) listener(p place, ns netns.Namespace) (*net.TCPListener, []int, error) {
	fds, conns := in.take(p.socket), in.take(connPrefix+p.socket)
	if len(fds) == 0 {
		closeAll(conns)
		return nil, nil, nil
	}
	closeAll(fds[1:]) // of one name there is one
	l, err := adopt(fds[0], p, ns)
	if err != nil {
		closeAll(conns)
		return nil, nil, fmt.Errorf("a socket of the last process cannot be used: %w", err)
	}
	return l, conns, nil
}

func adopt(fd int, p place, ns netns.Namespace) (*net.TCPListener, error) {
	f := os.NewFile(uintptr(fd), p.socket)
	defer f.Close()
	at, _, err := boundTo(fd)
	if err != nil {
		return nil, err
	}
	if at != netip.AddrPortFrom(p.addr, proxy.Port) {
		return nil, fmt.Errorf("it is bound to %s", at)
	}
	was, err := cookieOf(fd)
	if err != nil {
		return nil, err
	}
	is, err := cookieIn(ns)
	if err != nil {
		return nil, err
	}
	if was != is {
		return nil, fmt.Errorf("%s is another namespace than before", ns)
	}
	if p.device != "" {
		if err := sameDevice(fd, p.device); err != nil {
			return nil, err
		}
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T is no TCP listener", l), l.Close())
	}
	return tcp, nil
}

// close lets go of the sockets that are not wanted.
func (in *inherited) close(wanted func(listener string) bool) (names []string) {
	for name, fds := range in.sockets {
		if wanted(strings.TrimPrefix(name, connPrefix)) {
			continue
		}
		closeAll(fds)
		delete(in.sockets, name)
		names = append(names, name)
	}
	return names
}
