package evpn_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// in runs fn with a VM's network; sockets made in it stay there.
func (w *world) in(node string, fn func() error) {
	w.Helper()
	if err := netns.Named(w.node(node).Netns).Do(fn); err != nil {
		w.Fatalf("on %s: %v", node, err)
	}
}

// echo answers datagrams on a port of a VM until the test ends.
func (w *world) echo(vm string, port int) {
	w.Helper()
	var c net.PacketConn
	w.in(vm, func() (err error) {
		c, err = net.ListenPacket("udp", fmt.Sprintf(":%d", port))
		return err
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(b[:n], from)
		}
	}()
	w.Cleanup(func() { _ = c.Close(); <-done })
}

// ask sends a datagram until the same comes back. The first ones may teach the
// path MTU to both sides.
func (w *world) ask(vm, addr string, port, size int) {
	w.Helper()
	var c net.Conn
	w.in(vm, func() (err error) {
		c, err = net.Dial("udp", net.JoinHostPort(addr, fmt.Sprint(port)))
		return err
	})
	defer c.Close()
	want := make([]byte, size)
	_, _ = rand.Read(want)
	w.eventually(fmt.Sprintf("%s gets %d bytes back from %s", vm, size, addr), func() error {
		// An ICMP error is told by the next call on the socket.
		if _, err := c.Write(want); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			return err
		}
		got := make([]byte, 1<<16)
		n, err := c.Read(got)
		if err != nil {
			return err
		}
		if !bytes.Equal(got[:n], want) {
			return fmt.Errorf("other content, %d bytes", n)
		}
		return nil
	})
}

func TestUDP(t *testing.T) {
	w := shared(t)
	w.forget(vms...)
	const port = 5005
	for _, vm := range vms {
		w.echo(vm, port)
	}
	for _, vm := range vms {
		for _, addr := range far(vm) {
			for _, size := range []int{16, 1000, 1240, 1340, 4000, 9000} {
				w.ask(vm, addr, port, size)
			}
		}
	}
}

// transferBytes is a file of a size that fills queues.
const transferBytes = 20 << 20

func TestTCP(t *testing.T) {
	w := shared(t)
	file := make([]byte, transferBytes)
	if _, err := rand.Read(file); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ server, client string }{{"b-red1", "a-red1"}, {"a-blue1", "b-blue1"}} {
		for _, addr := range far(c.client) {
			w.forget(vms...)
			start := time.Now()
			got, err := w.download(c.server, c.client, addr, file)
			if err != nil {
				t.Errorf("%s from %s %s: %v", c.client, c.server, addr, err)
				continue
			}
			if got != sha256.Sum256(file) {
				t.Errorf("%s from %s %s: other content arrived", c.client, c.server, addr)
			}
			t.Logf("%s from %s %s: %.0f Mbit/s", c.client, c.server, addr, transferBytes*8/time.Since(start).Seconds()/1e6)
		}
	}
}

// download moves a file from one VM to another by TCP and returns its hash.
func (w *world) download(server, client, addr string, file []byte) (sum [sha256.Size]byte, err error) {
	w.Helper()
	const port = 8080
	var l net.Listener
	w.in(server, func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		return err
	})
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			// A client that gave up must not keep the test waiting.
			err = c.SetDeadline(time.Now().Add(70 * time.Second))
			_, copyErr := io.Copy(c, bytes.NewReader(file))
			err = errors.Join(err, copyErr, c.Close())
		}
		sent <- err
	}()
	defer func() { err = errors.Join(err, l.Close(), <-sent) }()
	var c net.Conn
	w.in(client, func() (err error) {
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		c, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(addr, fmt.Sprint(port)))
		return err
	})
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return sum, err
	}
	h := sha256.New()
	n, err := io.Copy(h, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%d of %d bytes after a minute: %w", n, len(file), err)
	}
	copy(sum[:], h.Sum(nil))
	return sum, err
}
