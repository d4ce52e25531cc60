package admin

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestMain(m *testing.M) {
	// In the helper process of TestLockDiesWithItsProcess: lock, tell, wait.
	if dir := os.Getenv("SLUICE_TEST_LOCK"); dir != "" {
		if _, err := AcquireLock(dir, "sluiced"); err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("locked\n")
		select {}
	}
	if dir := os.Getenv("SLUICE_TEST_CHANGES"); dir != "" {
		changer(dir)
	}
	goleak.VerifyTestMain(m)
}

// start runs a server until the test ends and waits for its socket.
func start(t *testing.T, socket string, attach func(*Server)) *Client {
	t.Helper()
	s := NewServer("sluiced", socket, slog.New(slog.DiscardHandler))
	attach(s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c := NewClient("sluiced", socket)
	t.Cleanup(func() {
		c.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("socket after stop: %v", err)
		}
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return c
		}
		if time.Now().After(deadline) {
			t.Fatalf("socket does not appear: %v", err)
		}
	}
}

func TestCall(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "run", "sluiced.sock")
	c := start(t, socket, func(s *Server) {
		Handle(s, askExplain, func(_ context.Context, q status.Query) (status.Explanation, error) {
			return status.NewExplanation(q, []status.Step{{Layer: status.LayerOVN, Found: true}}), nil
		})
		Handle(s, askVRF, func(_ context.Context, v selector) (status.VRF, error) {
			if v.VNI != 1001 {
				return status.VRF{}, errors.Join(ErrNotFound, errors.New("no VRF"))
			}
			return status.VRF{VNI: v.VNI, Index: 7}, nil
		})
	})
	q := status.Query{VRF: 1001, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("2001:db8::1")}
	e, err := Call(t.Context(), c, askExplain, q)
	if err != nil || e.Src != q.Src || e.Dst != q.Dst || !e.Works {
		t.Errorf("explain: %+v %v", e, err)
	}
	if v, err := Call(t.Context(), c, askVRF, selector{VNI: 1001}); err != nil || v.Index != 7 {
		t.Errorf("vrf: %+v %v", v, err)
	}
	if _, err := Call(t.Context(), c, askVRF, selector{VNI: 2}); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown vrf: %v", err)
	}
	if _, err := Call(t.Context(), c, askStatus, Nothing{}); !errors.Is(err, ErrNotFound) ||
		!strings.Contains(err.Error(), "sluiced has no endpoint /v1/status; sluiced and sluicectl have to be of one version") {
		t.Errorf("endpoint without handler: %v", err)
	}
	if _, err := Call(t.Context(), c, NewEndpoint[string, Nothing]("/v1/vrf"), "red"); !errors.Is(err, ErrBadRequest) {
		t.Errorf("request of another type: %v", err)
	}
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", info.Mode(), err)
	}
	info, err = os.Stat(filepath.Dir(socket))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v %v", info.Mode(), err)
	}
}

func TestStream(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	left := make(chan struct{})
	c := start(t, socket, func(s *Server) {
		HandleStream(s, followDrops, func(ctx context.Context, _ Nothing, emit func(status.Drop) error) error {
			defer close(left)
			for i := uint32(0); ; i++ {
				if err := emit(status.Drop{Length: i, VNI: intent.VNI(i)}); err != nil {
					return err
				}
				if i == 2 {
					<-ctx.Done()
					return nil
				}
			}
		})
		HandleStream(s, NewEndpoint[Nothing, int]("/v1/broken"), func(_ context.Context, _ Nothing, emit func(int) error) error {
			return errors.Join(emit(0), errors.New("ring buffer is gone"))
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []uint32
	err := Follow(ctx, c, followDrops, Nothing{}, func(d status.Drop) error {
		if got = append(got, d.Length); len(got) == 3 {
			cancel()
		}
		return nil
	})
	if err != nil || len(got) != 3 {
		t.Errorf("%v %v", got, err)
	}
	<-left
	n := 0
	err = Follow(t.Context(), c, NewEndpoint[Nothing, int]("/v1/broken"), Nothing{}, func(int) error { n++; return nil })
	if err == nil || err.Error() != "ring buffer is gone" || n != 1 {
		t.Errorf("%d %v", n, err)
	}
}

func TestStopEndsStreams(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := NewServer("sluiced", socket, slog.New(slog.DiscardHandler))
	started := make(chan struct{})
	HandleStream(s, followDrops, func(ctx context.Context, _ Nothing, _ func(status.Drop) error) error {
		close(started)
		<-ctx.Done()
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- s.Run(ctx) }()
	for _, err := os.Stat(socket); err != nil; _, err = os.Stat(socket) {
		time.Sleep(5 * time.Millisecond)
	}
	c := NewClient("sluiced", socket)
	defer c.Close()
	go func() { done <- Follow(t.Context(), c, followDrops, Nothing{}, func(status.Drop) error { return nil }) }()
	<-started
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A daemon that is stopped has its socket, and takes connections.
func TestSilent(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c := NewClientWithin("sluiced", socket, time.Millisecond)
	defer c.Close()
	if _, err := Call(t.Context(), c, askStatus, Nothing{}); !errors.Is(err, ErrSilent) || errors.Is(err, ErrNotRunning) ||
		!strings.HasPrefix(err.Error(), "sluiced does not answer on "+socket) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	patient := NewClient("sluiced", socket)
	defer patient.Close()
	if _, err := Call(ctx, patient, askStatus, Nothing{}); !errors.Is(err, ErrSilent) {
		t.Errorf("asked for a moment: %v", err)
	}
}

func TestNotRunningAndStaleSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c := NewClient("sluiced", socket)
	defer c.Close()
	if _, err := Call(t.Context(), c, askStatus, Nothing{}); !errors.Is(err, ErrNotRunning) || err.Error() != "sluiced is not running (nobody answers on "+socket+")" {
		t.Errorf("no socket: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if _, err := Call(t.Context(), c, askStatus, Nothing{}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("stale socket: %v", err)
	}
	c2 := start(t, socket, func(s *Server) {
		Handle(s, askStatus, func(context.Context, Nothing) (status.Status, error) {
			return status.Status{Identity: status.Identity{Chassis: "a1"}}, nil
		})
	})
	if st, err := Call(t.Context(), c2, askStatus, Nothing{}); err != nil || st.Chassis != "a1" {
		t.Errorf("%+v %v", st, err)
	}
	second := NewServer("sluiced", socket, slog.New(slog.DiscardHandler))
	if err := second.Run(t.Context()); !errors.Is(err, ErrLocked) {
		t.Errorf("second server: %v", err)
	}
	if _, err := Call(t.Context(), c2, askStatus, Nothing{}); err != nil {
		t.Errorf("first server afterwards: %v", err)
	}
}

func TestForeignFileIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := NewServer("sluiced", path, slog.New(slog.DiscardHandler)).Run(t.Context()); err == nil {
		t.Error("a regular file was taken for a socket")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("%q %v", b, err)
	}
}

func TestLockDiesWithItsProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLUICE_TEST_LOCK="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if _, err := AcquireLock(dir, "sluiced"); !errors.Is(err, ErrLocked) {
		t.Errorf("while it lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	l, err := AcquireLock(dir, "sluiced")
	if err != nil {
		t.Fatalf("after it died: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// TestLockOfOneThatEnds: what a killed process has begun may have its lock for a moment.
func TestLockOfOneThatEnds(t *testing.T) {
	dir := t.TempDir()
	first, err := AcquireLock(dir, "sluiced")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(lockPatience/4, func() { _ = first.Release() })
	second, err := AcquireLock(dir, "sluiced")
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Release()
}
