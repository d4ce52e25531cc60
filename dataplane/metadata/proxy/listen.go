package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// The addresses at which guests look for metadata: of EC2, and Neutron's link-local one
// (neutron_lib.constants.METADATA_V6_IP).
var (
	Address4 = netip.MustParseAddr("169.254.169.254")
	Address6 = netip.MustParseAddr("fe80::a9fe:a9fe")
)

// Port is the one that guests ask on.
const Port = 80

// Listen opens a listener in a network namespace, in which it stays: no thread has to.
// The address may come later, as one does whose duplicate detection is under way; a
// link-local one names its device as zone.
func Listen(ctx context.Context, ns netns.Namespace, at netip.AddrPort) (net.Listener, error) {
	return listen(ctx, ns, at, freebind)
}

// ListenBeside is Listen where a socket of the same user listens already that lets others do
// so, as haproxy's (SO_REUSEPORT, socket(7)). Each has a part of the connections until the
// other one ends.
func ListenBeside(ctx context.Context, ns netns.Namespace, at netip.AddrPort) (net.Listener, error) {
	return listen(ctx, ns, at, func(fd int, network string) error {
		return errors.Join(freebind(fd, network), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	})
}

func listen(ctx context.Context, ns netns.Namespace, at netip.AddrPort, options func(fd int, network string) error) (net.Listener, error) {
	network := "tcp4"
	if at.Addr().Is6() {
		network = "tcp6"
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		outer := c.Control(func(fd uintptr) { err = options(int(fd), network) })
		return errors.Join(outer, err)
	}}
	var l net.Listener
	err := ns.Do(func() error {
		// Package net remembers the numbers of devices by their names, whatever namespace
		// they are of, and those that were there a minute ago.
		numbered, err := byNumber(at)
		if err == nil {
			l, err = config.Listen(ctx, network, numbered.String())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("metadata on %s in %s: %w", at, ns, err)
	}
	return l, nil
}

// byNumber has the number of a device as zone, as it is in the thread's namespace.
func byNumber(at netip.AddrPort) (netip.AddrPort, error) {
	device := at.Addr().Zone()
	if device == "" {
		return at, nil
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return at, fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	index, err := DeviceIndex(fd, device)
	if err != nil {
		return at, err
	}
	return netip.AddrPortFrom(at.Addr().WithZone(strconv.FormatUint(uint64(index), 10)), at.Port()), nil
}

// DeviceIndex is the number of a device in the namespace of a socket.
func DeviceIndex(fd int, device string) (uint32, error) {
	r, err := unix.NewIfreq(device)
	if err != nil {
		return 0, fmt.Errorf("device %s: %w", device, err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r); err != nil {
		return 0, fmt.Errorf("device %s: %w", device, err)
	}
	return r.Uint32(), nil
}

// freebind lets a socket have an address that the namespace does not have yet (ip(7),
// ipv6(7)).
func freebind(fd int, network string) error {
	level, option := unix.SOL_IP, unix.IP_FREEBIND
	if network == "tcp6" {
		level, option = unix.SOL_IPV6, unix.IPV6_FREEBIND
	}
	return unix.SetsockoptInt(fd, level, option, 1)
}
