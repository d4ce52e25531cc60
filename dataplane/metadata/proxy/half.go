package proxy

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// half is what a read says that has come to the client's end. While net/http answers a request
// it reads ahead, a single byte, and takes the end for a client that has gone; but a client that
// sends no more may wait for its answer still (RFC 9112 section 9.6). So such a read goes on
// until net/http ends it, or the client has gone indeed.
func (c *conn) half(ahead bool, n int, err error) error {
	if n > 0 || !ahead || !errors.Is(err, io.EOF) {
		return err
	}
	s, ok := c.Conn.(syscall.Conn)
	if !ok {
		return err
	}
	raw, rawErr := s.SyscallConn()
	if rawErr != nil {
		return err
	}
	if rawErr := raw.Read(gone); rawErr != nil {
		return rawErr // its deadline has come, or it was closed
	}
	return unix.ECONNRESET
}

// tcpCloseWait is the state of a connection whose other side sends no more (include/net/tcp_states.h).
const tcpCloseWait = 8

// gone tells whether a connection has ended, whose other side has sent its end.
func gone(fd uintptr) bool {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO)
	return err != nil || info.State != tcpCloseWait
}
