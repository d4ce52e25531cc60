package service

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// nsID tells namespaces apart, as long as one of the two is held.
type nsID struct{ device, inode uint64 }

// lookUp is the namespace that a path names now.
func lookUp(path string) (nsID, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nsID{}, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nsID{}, fmt.Errorf("%s has no inode", path)
	}
	return nsID{uint64(s.Dev), s.Ino}, nil
}

// cookieIn is what the kernel calls a namespace, for ever (SO_NETNS_COOKIE).
func cookieIn(ns netns.Namespace) (cookie uint64, err error) {
	err = ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening a socket: %w", err)
		}
		defer unix.Close(fd)
		cookie, err = cookieOf(fd)
		return err
	})
	return cookie, err
}

func cookieOf(fd int) (uint64, error) {
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("asking for the namespace of a socket: %w", err)
	}
	return cookie, nil
}

// withFD runs f with a listener's descriptor.
func withFD(l *net.TCPListener, f func(fd int) error) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// boundTo is the address of a listening socket, and for a link-local one its device.
func boundTo(fd int) (at netip.AddrPort, index uint32, err error) {
	if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens != 1 {
		return at, 0, fmt.Errorf("it does not listen: %w", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return at, 0, fmt.Errorf("its address: %w", err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), 0, nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)), a.ZoneId, nil
	}
	return at, 0, fmt.Errorf("it has the address %T", name)
}

// waiting is how many connections wait for being taken (tcp_diag_get_info).
func waiting(fd int) (uint32, error) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, fmt.Errorf("asking for waiting connections: %w", err)
	}
	return info.Unacked, nil
}
