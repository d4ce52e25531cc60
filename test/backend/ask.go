package backend

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// Ask sends a datagram to a server, from a port, 0 is a new one, and writes the answer, for
// which it waits no longer than patience.
func Ask(ctx context.Context, to netip.AddrPort, port int, patience time.Duration, out io.Writer) error {
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{Port: port}}
	conn, err := dialer.DialContext(ctx, "udp", to.String())
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer conn.Close()
	b := make([]byte, 65536)
	n := 0
	if _, err = io.WriteString(conn, "hello\n"); err == nil {
		err = conn.SetReadDeadline(time.Now().Add(patience))
	}
	if err == nil {
		n, err = conn.Read(b)
	}
	if err == nil {
		_, err = out.Write(b[:n])
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", to, err)
	}
	return nil
}
