package ra

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Groups of the link (RFC 4291 section 2.7.1).
var (
	allNodes   = netip.MustParseAddr("ff02::1")
	allRouters = netip.MustParseAddr("ff02::2")
)

// socket is a raw ICMPv6 socket of one link.
type socket struct {
	conn  *net.IPConn
	index int
	mac   []byte
}

// open fails while the link is not there or has no IPv6.
func open(ctx context.Context, link string) (*socket, error) {
	i, err := net.InterfaceByName(link)
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", link, err)
	}
	if i.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("link %s is down", link)
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = setUp(int(fd), i) })
		return errors.Join(err, failed)
	}}
	pc, err := lc.ListenPacket(ctx, "ip6:ipv6-icmp", "::")
	if err != nil {
		return nil, fmt.Errorf("router discovery on %s: %w", link, err)
	}
	return &socket{conn: pc.(*net.IPConn), index: i.Index, mac: i.HardwareAddr}, nil
}

func setUp(fd int, i *net.Interface) error {
	// All types are blocked but those two.
	var filter unix.ICMPv6Filter
	for w := range filter.Data {
		filter.Data[w] = ^uint32(0)
	}
	for _, t := range []int{typeSolicit, typeAdvertise} {
		filter.Data[t>>5] &^= 1 << (t & 31)
	}
	group := &unix.IPv6Mreq{Multiaddr: allRouters.As16(), Interface: uint32(i.Index)}
	for _, set := range []struct {
		what string
		do   func() error
	}{
		{"bind to the link", func() error { return unix.BindToDevice(fd, i.Name) }},
		{"filter", func() error { return unix.SetsockoptICMPv6Filter(fd, unix.SOL_ICMPV6, unix.ICMPV6_FILTER, &filter) }},
		{"hop limit", func() error {
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, onLinkHops)
		}},
		{"hop limit received", func() error { return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1) }},
		{"no loop", func() error { return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 0) }},
		{"outgoing link", func() error {
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, i.Index)
		}},
		{"group of routers", func() error {
			return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, group)
		}},
	} {
		if err := set.do(); err != nil {
			return fmt.Errorf("%s: %w", set.what, err)
		}
	}
	return nil
}

func (s *socket) send(b []byte, to netip.Addr) error {
	_, err := s.conn.WriteTo(b, &net.IPAddr{IP: to.AsSlice()})
	return err
}

// receive blocks until a valid message came or the socket is closed.
func (s *socket) receive() (kind, netip.Addr, error) {
	b, oob := make([]byte, 2048), make([]byte, 128)
	for {
		n, oobn, _, from, err := s.conn.ReadMsgIP(b, oob)
		if err != nil {
			return 0, netip.Addr{}, err
		}
		a, ok := netip.AddrFromSlice(from.IP)
		if !ok {
			continue
		}
		if k, err := read(b[:n], a, hopLimit(oob[:oobn])); err == nil {
			return k, a, nil
		}
	}
}

// hopLimit is that of the packet a message came in; -1 if the kernel did not say.
func hopLimit(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return -1
	}
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_HOPLIMIT && len(m.Data) >= 4 {
			return int(m.Data[0]) // an int, and never above 255
		}
	}
	return -1
}
