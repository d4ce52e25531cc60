package wire

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listenTTL is what answers of a listening socket have: a neighbour with TTL security
// drops any other (RFC 5082 section 3).
const listenTTL = 255

// options are those of a connection with a neighbour.
type options struct {
	ttl, minTTL uint8 // 0: the kernel's
	password    string
}

func (n Neighbor) options() options { return options{n.TTL, n.MinTTL, n.Password} }

// set sets the options on a socket of the neighbour's family.
func (o options) set(fd int, neighbor netip.Addr) error {
	level, ttl, minTTL := unix.IPPROTO_IP, unix.IP_TTL, unix.IP_MINTTL
	if neighbor.Is6() {
		level, ttl, minTTL = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, unix.IPV6_MINHOPCOUNT
	}
	if o.password != "" {
		if err := setPassword(fd, neighbor, o.password); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		name  int
		value uint8
	}{{ttl, o.ttl}, {minTTL, o.minTTL}} {
		if s.value == 0 {
			continue
		}
		if err := unix.SetsockoptInt(fd, level, s.name, int(s.value)); err != nil {
			return os.NewSyscallError("setsockopt TTL", err)
		}
	}
	return nil
}

// setPassword sets the key of TCP-MD5 for a neighbour, or takes it off when it is empty.
func setPassword(fd int, neighbor netip.Addr, password string) error {
	sig := unix.TCPMD5Sig{Keylen: uint16(len(password))}
	copy(sig.Key[:], password)
	if neighbor.Is4() {
		sig.Addr.Family = unix.AF_INET
		copy(sig.Addr.Data[2:], neighbor.AsSlice())
	} else {
		sig.Addr.Family = unix.AF_INET6
		copy(sig.Addr.Data[6:], neighbor.AsSlice())
	}
	return os.NewSyscallError("setsockopt TCP_MD5SIG", unix.SetsockoptTCPMD5Sig(fd, unix.IPPROTO_TCP, unix.TCP_MD5SIG, &sig))
}

// control runs fn with the descriptor of a socket.
func control(c syscall.Conn, fn func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = fn(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// dial connects to a neighbour.
func (n Neighbor) dial(ctx context.Context) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: max(n.ConnectRetry-time.Second, time.Second)}
	d.SetMultipathTCP(false)
	if n.LocalAddress.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(n.LocalAddress, 0))
	}
	d.Control = func(_, _ string, c syscall.RawConn) error {
		var inner error
		if err := c.Control(func(fd uintptr) { inner = n.options().set(int(fd), n.Address) }); err != nil {
			return err
		}
		return inner
	}
	to, err := numbered(n.Address)
	if err != nil {
		return nil, err
	}
	c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(to, n.Port).String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// numbered is an address with the number of its link as the zone. Package net keeps names
// and numbers of links for a minute: a link that was made again has another number.
func numbered(a netip.Addr) (netip.Addr, error) {
	if a.Zone() == "" {
		return a, nil
	}
	i, err := net.InterfaceByName(a.Zone())
	if err != nil {
		return a, fmt.Errorf("interface %s: %w", a.Zone(), err)
	}
	return a.WithZone(strconv.Itoa(i.Index)), nil
}

// source is the address at the other end of a connection, its zone the name that the link has now.
func source(c *net.TCPConn) netip.Addr {
	from := addrPort(c.RemoteAddr()).Addr()
	if from.Zone() == "" {
		return from
	}
	index := 0
	_ = control(c, func(fd int) error {
		peer, err := unix.Getpeername(fd)
		if a, ok := peer.(*unix.SockaddrInet6); ok {
			index = int(a.ZoneId)
		}
		return err
	})
	if i, err := net.InterfaceByIndex(index); err == nil {
		return from.WithZone(i.Name)
	}
	return from
}

// listen opens a listening socket on one address. Multipath TCP has neither TCP-MD5 nor TTL
// security.
func listen(ctx context.Context, at netip.AddrPort) (*net.TCPListener, error) {
	network, level, name := "tcp4", unix.IPPROTO_IP, unix.IP_TTL
	if at.Addr().Is6() {
		network, level, name = "tcp6", unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var inner error
		if err := c.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), level, name, listenTTL) }); err != nil {
			return err
		}
		return os.NewSyscallError("setsockopt TTL", inner)
	}}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, network, at.String())
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// ours tells whether the other end of a loopback connection is a socket of this process:
// anybody on the node could connect to it.
func ours(c *net.TCPConn) bool {
	here, there := addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())
	if there.Addr() != Self {
		return false // which costs less than the look at all descriptors
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return false
	}
	for _, e := range fds {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if name, err := unix.Getsockname(fd); err != nil || fromSockaddr(name) != there {
			continue
		}
		if peer, err := unix.Getpeername(fd); err == nil && fromSockaddr(peer) == here {
			return true
		}
	}
	return false
}

func fromSockaddr(s unix.Sockaddr) netip.AddrPort {
	if a, ok := s.(*unix.SockaddrInet4); ok {
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// localAddress checks that a connection from a neighbour has come to the address that is
// configured for it.
func (n Neighbor) localAddress(c *net.TCPConn) error {
	if got := addrPort(c.LocalAddr()).Addr(); n.LocalAddress.IsValid() && got.WithZone("") != n.LocalAddress.WithZone("") {
		return fmt.Errorf("it arrived at %s, and localAddress is %s", got, n.LocalAddress)
	}
	return nil
}
