package bfd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// kind is which packets come through one socket.
type kind struct{ ipv6, multihop bool }

// origin is where a packet came from.
type origin struct {
	neighbor, local netip.Addr // without a zone
	multihop        bool
	ifindex         int
	ttl             uint8
}

// receiver is the socket that packets of one kind arrive at.
type receiver struct {
	kind    kind
	speaker *Speaker

	mu      sync.Mutex
	raw     syscall.RawConn // nil while there is no socket
	problem string
}

// listenRetry is how often a port that is taken is tried.
const listenRetry = time.Second

// run receives until ctx ends. A port that is taken, as by another BFD daemon, is
// waited for.
func (r *receiver) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := r.receive(ctx)
		if ctx.Err() != nil {
			break
		}
		r.note(err)
		loop.Sleep(ctx, listenRetry)
	}
	return nil
}

func (r *receiver) receive(ctx context.Context) error {
	at, options := netip.AddrPortFrom(netip.IPv4Unspecified(), portSingleHop), []option{
		{unix.IPPROTO_IP, unix.IP_RECVTTL, 1}, {unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
	}
	if r.kind.ipv6 {
		at, options = netip.AddrPortFrom(netip.IPv6Unspecified(), portSingleHop), []option{
			{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1}, {unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
		}
	}
	if r.kind.multihop {
		at = netip.AddrPortFrom(at.Addr(), portMultihop)
	}
	conn, raw, err := listen(ctx, at, options)
	if err != nil {
		return fmt.Errorf("no BFD sessions: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	r.set(raw, "")
	defer r.set(nil, "")
	// Read calls the function whenever the socket may have something, until it says
	// true; the end is the socket's.
	return raw.Read(func(fd uintptr) bool {
		r.empty(int(fd))
		return false
	})
}

// drain reads what has arrived. It may be called beside run: each packet is
// taken once.
func (r *receiver) drain() {
	r.mu.Lock()
	raw := r.raw
	r.mu.Unlock()
	if raw != nil {
		_ = raw.Control(func(fd uintptr) { r.empty(int(fd)) }) // a closed socket has nothing
	}
}

// empty takes packets until the socket has no more.
func (r *receiver) empty(fd int) {
	// A packet that is cut has a length that does not fit, or is authenticated.
	var b [512]byte
	var oob [128]byte
	for {
		n, oobn, _, from, err := unix.Recvmsg(fd, b[:], oob[:], unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return
		}
		o := origin{multihop: r.kind.multihop}
		switch a := from.(type) {
		case *unix.SockaddrInet4:
			o.neighbor = netip.AddrFrom4(a.Addr)
		case *unix.SockaddrInet6:
			o.neighbor = netip.AddrFrom16(a.Addr)
		}
		o.read(oob[:oobn])
		r.speaker.take(time.Now(), b[:n], o)
	}
}

// read takes the kernel's word for TTL, destination and interface (ip(7), RFC 3542
// section 6). Without it nothing fits, and the packet is dropped.
func (o *origin) read(oob []byte) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	number := func(b []byte) int {
		if len(b) < 4 {
			return 0
		}
		return int(binary.NativeEndian.Uint32(b))
	}
	for _, m := range messages {
		switch d := m.Data; {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_TTL,
			m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_HOPLIMIT:
			o.ttl = uint8(min(number(d), maxTTL))
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(d) >= unix.SizeofInet4Pktinfo:
			o.ifindex, o.local = number(d), netip.AddrFrom4([4]byte(d[8:12]))
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(d) >= unix.SizeofInet6Pktinfo:
			o.local, o.ifindex = netip.AddrFrom16([16]byte(d[:16])), number(d[16:])
		}
	}
}

// index is that of an interface; 0: there is none.
func (r *receiver) index(name string) int {
	r.mu.Lock()
	raw := r.raw
	r.mu.Unlock()
	index := 0
	if raw != nil {
		_ = raw.Control(func(fd uintptr) { index = interfaceIndex(fd, name) })
	}
	return index
}

func (r *receiver) set(raw syscall.RawConn, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw, r.problem = raw, problem
}

func (r *receiver) trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

// note keeps why there is no socket, and logs it once.
func (r *receiver) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && err.Error() != r.problem {
		r.problem = err.Error()
		r.speaker.log.Error("cannot listen for BFD; trying again", slog.Any("error", err))
	}
}
