package forwarding

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const streamPort = 5201

// warmUp is how long a stream runs before its bytes count.
const warmUp = 50 * time.Millisecond

// stream sends over a TCP connection from one namespace to another and returns
// bits a second as received. Sender and receiver have a CPU each; the packets
// are forwarded by the CPU that sends them.
func stream(from, to space, src, dst netip.Addr, span time.Duration) (rate float64, err error) {
	listener, err := to.socket(dst, streamPort)
	if err != nil {
		return 0, err
	}
	defer unix.Close(listener)
	if err := unix.Listen(listener, 1); err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	sender, err := from.socket(src, 0)
	if err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() {
		defer unix.Close(sender)
		sent <- alone(0, func() error { return send(sender, dst) })
	}()
	err = alone(lastCPU(), func() (err error) {
		rate, err = receive(listener, span)
		return err
	})
	return rate, errors.Join(err, <-sent)
}

// socket is bound to addr and port, 0 for any.
func (n space) socket(addr netip.Addr, port int) (fd int, err error) {
	err = n.do(func() (err error) {
		domain := unix.AF_INET
		if addr.Is6() {
			domain = unix.AF_INET6
		}
		fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	// A round that fails says so soon.
	limit := unix.Timeval{Sec: 10}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.Bind(fd, sockaddr(addr, port)))
	if err != nil {
		return -1, errors.Join(fmt.Errorf("socket of %s in %s: %w", addr, n.name, err), unix.Close(fd))
	}
	return fd, nil
}

func sockaddr(a netip.Addr, port int) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: a.As16(), Port: port}
}

// send writes until the receiver closes.
func send(fd int, dst netip.Addr) error {
	if err := unix.Connect(fd, sockaddr(dst, streamPort)); err != nil {
		return fmt.Errorf("connect to %s: %w", dst, err)
	}
	buffer := make([]byte, 128<<10)
	for {
		_, err := unix.Write(fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
			return nil
		case err != nil:
			return fmt.Errorf("send to %s: %w", dst, err)
		}
	}
}

// receive counts what arrives in span, after the warm-up.
func receive(listener int, span time.Duration) (float64, error) {
	fd, _, err := unix.Accept(listener)
	if err != nil {
		return 0, fmt.Errorf("accept: %w", err)
	}
	defer unix.Close(fd)
	limit := unix.Timeval{Sec: 10}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return 0, err
	}
	buffer := make([]byte, 256<<10)
	start := time.Now()
	var begin time.Time
	for bytes := 0; ; {
		n, err := unix.Read(fd, buffer)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("receive: %w", err)
		}
		now := time.Now()
		switch {
		case begin.IsZero() && now.Sub(start) >= warmUp:
			begin = now
		case !begin.IsZero():
			bytes += max(n, 0)
			if took := now.Sub(begin); took >= span {
				return 8 * float64(bytes) / took.Seconds(), nil
			}
		}
	}
}
