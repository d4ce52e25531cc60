package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is a service manager's socket; it returns the next message.
func manager(t *testing.T) func() string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		b := make([]byte, 512)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestReadyAndStopping(t *testing.T) {
	next := manager(t)
	n := New(slog.New(slog.DiscardHandler), nil)
	n.Ready("gateway")
	if got := next(); !strings.HasPrefix(got, "READY=1") || !strings.Contains(got, "STATUS=gateway") {
		t.Errorf("%q", got)
	}
	n.Stopping()
	if got := next(); got != "STOPPING=1" {
		t.Errorf("%q", got)
	}
}

func TestWatchdogIsFedOnlyWhileAlive(t *testing.T) {
	next := manager(t)
	t.Setenv("WATCHDOG_USEC", "30000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	var checks atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	n := New(slog.New(slog.DiscardHandler), func(context.Context) error {
		// Stuck for four rounds, then well.
		if checks.Add(1) <= 4 {
			return errors.New("stuck")
		}
		return nil
	})
	go func() { done <- n.Run(ctx) }()
	if got := next(); got != "WATCHDOG=1" || checks.Load() < 5 {
		t.Errorf("%q after %d checks", got, checks.Load())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWithoutServiceManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	n := New(slog.New(slog.DiscardHandler), nil)
	n.Ready("x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Run(ctx); err != nil {
		t.Error(err)
	}
}
