package proxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
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
	network := "tcp4"
	if at.Addr().Is6() {
		network = "tcp6"
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return freebind(c, network) }}
	var l net.Listener
	err := ns.Do(func() (err error) {
		l, err = config.Listen(ctx, network, at.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("metadata on %s in %s: %w", at, ns, err)
	}
	return l, nil
}

// freebind lets a socket have an address that the namespace does not have yet (ip(7),
// ipv6(7)).
func freebind(c syscall.RawConn, network string) (err error) {
	level, option := unix.SOL_IP, unix.IP_FREEBIND
	if network == "tcp6" {
		level, option = unix.SOL_IPV6, unix.IPV6_FREEBIND
	}
	if outer := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, 1) }); outer != nil {
		return outer
	}
	return err
}
