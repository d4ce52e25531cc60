package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// changer is a daemon in a process of its own: each change leaves a file in dir, and a drain does
// not answer while there is a file "hang".
func changer(dir string) {
	s := NewServer("sluiced", filepath.Join(dir, "s"), slog.New(slog.DiscardHandler))
	did := func(what string) error { return os.WriteFile(filepath.Join(dir, what), nil, 0o600) }
	Handle(s, askStatus, func(context.Context, Nothing) (status.Status, error) { return status.Status{}, nil })
	Handle(s, changeUndrain, func(context.Context, Nothing) (status.Drain, error) { return status.Drain{}, did("undrain") })
	Handle(s, changeWeigh, func(context.Context, selector) (Nothing, error) { return Nothing{}, did("weigh") })
	Handle(s, changeDrain, func(ctx context.Context, _ Nothing) (status.Drain, error) {
		err := did("drain")
		if _, hang := os.Stat(filepath.Join(dir, "hang")); hang == nil {
			<-ctx.Done()
		}
		return status.Drain{}, err
	})
	_ = s.Run(context.Background())
	os.Exit(1)
}

// startChanger starts changer, and waits until it answers.
func startChanger(t *testing.T) (dir string, process *os.Process, socket string) {
	t.Helper()
	dir = t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLUICE_TEST_CHANGES="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	socket = filepath.Join(dir, "s")
	answers(t, socket)
	return dir, cmd.Process, socket
}

func answers(t *testing.T, socket string) {
	t.Helper()
	c := NewClient("sluiced", socket)
	defer c.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, err := Call(t.Context(), c, askStatus, Nothing{})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// stop stops all threads of a process.
func stop(t *testing.T, process *os.Process) {
	t.Helper()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(tasks, func(path string) bool {
			b, err := os.ReadFile(path)
			return err == nil && !strings.Contains(string(b), ") T ")
		}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not stop")
		}
	}
}

// TestStoppedDaemon: what a client has called failed is not carried out by a daemon that was
// stopped meanwhile (SIGSTOP) and goes on.
func TestStoppedDaemon(t *testing.T) {
	dir, process, socket := startChanger(t)
	stop(t, process)
	c := NewClientWithin("sluiced", socket, 100*time.Millisecond)
	defer c.Close()
	_, drain := Call(t.Context(), c, changeDrain, Nothing{})
	_, undrain := Call(t.Context(), c, changeUndrain, Nothing{})
	_, weigh := Call(t.Context(), c, changeWeigh, selector{})
	// A client that is ended, by ^C or by timeout(1), within its patience.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	patient := NewClient("sluiced", socket)
	defer patient.Close()
	_, ended := Call(ctx, patient, changeDrain, Nothing{})
	for what, err := range map[string]error{"drain": drain, "undrain": undrain, "lb drain": weigh, "drain, ended": ended} {
		if !errors.Is(err, ErrSilent) || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	answers(t, socket) // connections are taken in their order
	c.Close()
	_ = process.Signal(syscall.SIGTERM)
	_, _ = process.Wait()
	for _, what := range []string{"drain", "undrain", "weigh"} {
		if exists(dir, what) {
			t.Errorf("%s was carried out after its error", what)
		}
	}
}

// TestOutcomeUnknown: the daemon has taken the request, and does not answer.
func TestOutcomeUnknown(t *testing.T) {
	dir, process, socket := startChanger(t)
	if err := os.WriteFile(filepath.Join(dir, "hang"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := NewClient("sluiced", socket)
	defer c.Close()
	done := make(chan error, 1)
	go func() {
		_, err := Call(t.Context(), c, changeDrain, Nothing{})
		done <- err
	}()
	for deadline := time.Now().Add(30 * time.Second); !exists(dir, "drain"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the request does not arrive")
		}
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrUnknown) || strings.Contains(err.Error(), "nothing was changed") {
		t.Error(err)
	}
}

// TestLateRequest: a request whose deadline has passed is refused, also one that was complete
// before the daemon was stopped.
func TestLateRequest(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	start(t, socket, func(s *Server) {
		Handle(s, changeDrain, func(ctx context.Context, _ Nothing) (status.Drain, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the deadline of the request does not bound its context")
			}
			return status.Drain{Stage: "serving"}, nil
		})
	})
	dial := func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }
	raw := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer raw.CloseIdleConnections()
	for patience, want := range map[time.Duration]int{time.Minute: http.StatusOK, 0: http.StatusRequestTimeout, -time.Hour: http.StatusRequestTimeout} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sluiced"+changeDrain.Path(), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		setDeadline(r.Header, patience)
		resp, err := raw.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err := errorOf(resp.StatusCode, string(text)); resp.StatusCode != want || (want != http.StatusOK) != errors.Is(err, ErrLate) {
			t.Errorf("%s: %d %s", patience, resp.StatusCode, text)
		}
	}
}
