package bfd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ports and TTL of RFC 5881 sections 4 and 5 and of RFC 5883 section 5.
const (
	portSingleHop = 3784
	portMultihop  = 4784
	firstSource   = 49152
	lastSource    = 65535
	maxTTL        = 255
)

// control is class selector 6, network control, as the two headers carry it: the
// packets are to come through where others are dropped for lack of room.
const control = 0xc0

// option is a socket option that is a number.
type option struct{ level, name, value int }

func setOptions(options []option) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			for _, o := range options {
				if err := unix.SetsockoptInt(int(fd), o.level, o.name, o.value); err != nil {
					failed = fmt.Errorf("socket option %d/%d: %w", o.level, o.name, err)
					return
				}
			}
		})
		if err != nil {
			return err
		}
		return failed
	}
}

func network(ipv6 bool) string {
	if ipv6 {
		return "udp6"
	}
	return "udp4"
}

// listen opens a UDP socket. Neither address nor port is shared with another
// socket: that one would lose packets to this.
func listen(ctx context.Context, at netip.AddrPort, options []option) (*net.UDPConn, syscall.RawConn, error) {
	lc := net.ListenConfig{Control: setOptions(options)}
	pc, err := lc.ListenPacket(ctx, network(at.Addr().Is6()), at.String())
	if err != nil {
		return nil, nil, err
	}
	conn := pc.(*net.UDPConn)
	raw, err := conn.SyscallConn()
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}

// interfaceIndex asks the kernel each time: an interface that is made anew has
// another index. 0: there is none.
func interfaceIndex(fd uintptr, name string) int {
	req, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(int(fd), unix.SIOCGIFINDEX, req)
	}
	if err != nil {
		n, _ := strconv.Atoi(name)
		return n
	}
	return int(req.Uint32())
}

// sender is a session's own socket: all its packets have one source port, which no
// other session's have (RFC 5881 section 4). It is opened for the first packet,
// and anew after one that could not be sent.
type sender struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	port    uint16
	count   uint64
	problem string
}

func (o *sender) close() {
	if o.conn != nil {
		_ = o.conn.Close()
	}
	o.conn, o.raw = nil, nil
}

func (o *sender) send(peer Peer, p Packet) {
	if err := o.try(peer, p.Append(make([]byte, 0, packetLength))); err != nil {
		o.problem = err.Error()
		o.close()
		return
	}
	o.problem = ""
	o.count++
}

func (o *sender) try(peer Peer, b []byte) error {
	if o.conn == nil {
		if err := o.open(peer); err != nil {
			return err
		}
	}
	var failed error
	err := o.raw.Control(func(fd uintptr) {
		to, err := destination(fd, peer)
		if err != nil {
			failed = err
			return
		}
		// Neither the reader nor the clock may wait for room in a queue.
		if err := unix.Sendto(int(fd), b, unix.MSG_DONTWAIT, to); err != nil {
			failed = fmt.Errorf("send: %w", err)
		}
	})
	if err != nil {
		return err
	}
	return failed
}

func destination(fd uintptr, peer Peer) (unix.Sockaddr, error) {
	port := portSingleHop
	if peer.Multihop {
		port = portMultihop
	}
	if peer.Neighbor.Is4() {
		return &unix.SockaddrInet4{Port: port, Addr: peer.Neighbor.As4()}, nil
	}
	to := &unix.SockaddrInet6{Port: port, Addr: peer.Neighbor.As16()}
	if zone := peer.Neighbor.Zone(); zone != "" {
		index := interfaceIndex(fd, zone)
		if index == 0 {
			return nil, fmt.Errorf("send: there is no interface %s", zone)
		}
		to.ZoneId = uint32(index)
	}
	return to, nil
}

// open takes the port that the session had, else a free one.
func (o *sender) open(peer Peer) error {
	local := peer.Local
	options := []option{{unix.IPPROTO_IP, unix.IP_TTL, maxTTL}, {unix.IPPROTO_IP, unix.IP_TOS, control}}
	if peer.Neighbor.Is6() {
		options = []option{{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, maxTTL}, {unix.IPPROTO_IPV6, unix.IPV6_TCLASS, control}}
	}
	if !local.IsValid() {
		local = netip.IPv4Unspecified()
		if peer.Neighbor.Is6() {
			local = netip.IPv6Unspecified()
		}
	}
	var err error
	for range 100 {
		port := o.port
		if port == 0 {
			port = uint16(firstSource + rand.IntN(lastSource-firstSource+1))
		}
		if o.conn, o.raw, err = listen(context.Background(), netip.AddrPortFrom(local, port), options); err == nil {
			o.port = port
			return nil
		}
		if o.port != 0 {
			break
		}
	}
	return fmt.Errorf("no socket to send from: %w", err)
}
