package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// What routers say of a packet that does not fit (RFC 792, RFC 4443 section 3.2).
const (
	icmpUnreachable = 3
	icmpFragNeeded  = 4 // a code
	icmp6TooBig     = 2
)

// WatchPathMTUs calls changed when a router has told this node that a packet does not fit,
// until ctx ends. By then the kernel knows what fits, if it believes the router; it tells of
// that in no other way. A node without IPv6 follows IPv4 alone.
func WatchPathMTUs(ctx context.Context, ns netns.Namespace, changed func()) error {
	four, err := listenICMP(ctx, ns, "ip4:icmp", "0.0.0.0", func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_RAW, unix.ICMP_FILTER, ^(1<<icmpUnreachable)&0x7fffffff)
	})
	if err != nil {
		return err
	}
	defer func() { _ = four.Close() }()
	six, err := listenICMP(ctx, ns, "ip6:ipv6-icmp", "::", func(fd int) error {
		var filter unix.ICMPv6Filter
		for w := range filter.Data {
			filter.Data[w] = ^uint32(0)
		}
		filter.Data[icmp6TooBig>>5] &^= 1 << (icmp6TooBig & 31)
		return unix.SetsockoptICMPv6Filter(fd, unix.SOL_ICMPV6, unix.ICMPV6_FILTER, &filter)
	})
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		six, err = nil, nil
	}
	if err != nil {
		return err
	}
	var group errgroup.Group
	follow := func(c net.PacketConn, of func(message []byte) bool) {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		group.Go(func() error {
			defer stop()
			return readICMP(ctx, c, of, changed)
		})
	}
	follow(four, func(m []byte) bool { return m[0] == icmpUnreachable && m[1] == icmpFragNeeded })
	if six != nil {
		defer func() { _ = six.Close() }()
		follow(six, func(m []byte) bool { return m[0] == icmp6TooBig })
	}
	return group.Wait()
}

func listenICMP(ctx context.Context, ns netns.Namespace, network, address string, filter func(fd int) error) (c net.PacketConn, err error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = filter(int(fd)) })
		return errors.Join(err, failed)
	}}
	err = ns.Do(func() error {
		c, err = lc.ListenPacket(ctx, network, address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("following ICMP: %w", err)
	}
	return c, nil
}

func readICMP(ctx context.Context, c net.PacketConn, of func([]byte) bool, changed func()) error {
	message := make([]byte, 128)
	for {
		n, _, err := c.ReadFrom(message)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("following ICMP: %w", err)
		case n >= 2 && of(message[:n]):
			changed()
		}
	}
}
