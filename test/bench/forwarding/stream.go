package forwarding

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const streamPort = 5201

const (
	// warmUp is how long a stream runs before its bytes count.
	warmUp = 50 * time.Millisecond
	// streamLimit bounds a stream beside its span, whatever interrupts it.
	streamLimit = 10 * time.Second
)

// stream sends over a TCP connection from one namespace to another and returns
// bits a second as received. Sender and receiver have a CPU each; the packets
// are forwarded by the CPU that sends them.
func stream(from, to space, src, dst netip.Addr, span time.Duration) (rate float64, err error) {
	listener, err := to.socket(dst, streamPort)
	if err != nil {
		return 0, err
	}
	err = unix.Listen(listener, 1)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("listen: %w", err), unix.Close(listener))
	}
	sender, err := from.socket(src, 0)
	if err != nil {
		return 0, errors.Join(err, unix.Close(listener))
	}
	deadline := time.Now().Add(streamLimit + span)
	sent := make(chan error, 1)
	go func() {
		defer unix.Close(sender)
		sent <- alone(0, func() error { return send(sender, dst, deadline) })
	}()
	err = alone(lastCPU(), func() (err error) {
		rate, err = receive(listener, span, deadline)
		return err
	})
	// A connection that was not accepted ends with it, and so does the sender.
	err = errors.Join(err, unix.Close(listener))
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
	// How often a call comes back to look at its deadline.
	limit := unix.Timeval{Usec: 100_000}
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

// again tells whether a call is made again: it was interrupted by a signal, which ends every call
// on a socket with a time limit, or that limit is over and the deadline is not.
func again(err error, deadline time.Time) bool {
	return (errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)) && time.Now().Before(deadline)
}

// connect waits for a connection until the deadline.
func connect(fd int, dst netip.Addr, deadline time.Time) error {
	for {
		err := unix.Connect(fd, sockaddr(dst, streamPort))
		switch {
		case err == nil, errors.Is(err, unix.EISCONN):
			return nil
		case again(err, deadline):
		// It goes on by itself after a call that ended early.
		case (errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.EALREADY)) && time.Now().Before(deadline):
		default:
			return fmt.Errorf("connect to %s: %w", dst, err)
		}
	}
}

// send writes until the receiver closes.
func send(fd int, dst netip.Addr, deadline time.Time) error {
	if err := connect(fd, dst, deadline); err != nil {
		return err
	}
	buffer := make([]byte, 128<<10)
	for {
		_, err := unix.Write(fd, buffer)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
			return nil
		case err != nil && !again(err, deadline):
			return fmt.Errorf("send to %s: %w", dst, err)
		}
	}
}

// accept waits for a connection until the deadline.
func accept(listener int, deadline time.Time) (int, error) {
	for {
		fd, _, err := unix.Accept(listener)
		if err == nil {
			// Linux gives it no time limit of the listener's.
			limit := unix.Timeval{Usec: 100_000}
			return fd, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
		}
		if !again(err, deadline) {
			return -1, fmt.Errorf("accept: %w", err)
		}
	}
}

// receive counts what arrives in span, after the warm-up.
func receive(listener int, span time.Duration, deadline time.Time) (float64, error) {
	fd, err := accept(listener, deadline)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	buffer := make([]byte, 256<<10)
	start := time.Now()
	var begin time.Time
	for bytes := 0; ; {
		n, err := unix.Read(fd, buffer)
		switch {
		case err != nil && !again(err, deadline):
			return 0, fmt.Errorf("receive: %w", err)
		case err == nil && n == 0:
			return 0, errors.New("receive: the sender ended")
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
