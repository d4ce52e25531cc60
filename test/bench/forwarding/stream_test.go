package forwarding

import (
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// loopback is a namespace of the test's own.
func loopback(t *testing.T) space {
	t.Helper()
	s := site{name: "loopback"}
	t.Cleanup(func() {
		if err := s.down(); err != nil {
			t.Error(err)
		}
	})
	if err := s.namespace(t.Context(), &s.host, "host"); err != nil {
		t.Fatal(err)
	}
	return s.host
}

// interrupt sends a signal, which does nothing, to all threads of the test until the
// function that it returns is called. The Go runtime sends that one, too, when it wants a thread to
// stop; a system call with a socket's time limit then ends with EINTR.
func interrupt(t *testing.T) (stop func()) {
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			threads, err := os.ReadDir("/proc/self/task")
			if err != nil {
				t.Error(err)
				return
			}
			for _, thread := range threads {
				id, _ := strconv.Atoi(thread.Name())
				_ = unix.Tgkill(os.Getpid(), id, unix.SIGURG) // it may have ended
			}
			select {
			case <-end:
				return
			case <-time.After(50 * time.Microsecond):
			}
		}
	})
	return func() { close(end); wg.Wait() }
}

// TestStreamInterrupted: signals end no stream, whatever it does at that moment.
func TestStreamInterrupted(t *testing.T) {
	in := loopback(t)
	defer interrupt(t)()
	for _, addr := range []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()} {
		for i := range 10 {
			if rate, err := stream(in, in, addr, addr, 50*time.Millisecond); err != nil || rate <= 0 {
				t.Fatalf("stream %d of %s: %g bit/s, %v", i, addr, rate, err)
			}
		}
	}
}

// TestReceiveEnds: a sender that never comes, or goes, ends the receiver with an error.
func TestReceiveEnds(t *testing.T) {
	in := loopback(t)
	for _, addr := range []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()} {
		listener, err := in.socket(addr, streamPort)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Listen(listener, 1); err != nil {
			t.Fatal(err)
		}
		stop := interrupt(t)
		if _, err := receive(listener, time.Second, time.Now().Add(200*time.Millisecond)); err == nil {
			t.Error("nobody came, and that is no error")
		}
		stop()
		sender, err := in.socket(addr, 0)
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		if err := connect(sender, addr, deadline); err != nil {
			t.Fatal(err)
		}
		unix.Close(sender)
		if _, err := receive(listener, time.Second, deadline); err == nil {
			t.Error("the sender went, and that is no error")
		}
		unix.Close(listener)
	}
}
