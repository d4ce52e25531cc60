// Package labtest gives tests their labs: one that a test binary shares, or one
// that a test has for itself. A lab that cannot be built fails the test.
package labtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// count numbers the labs of this test binary.
var count atomic.Int64

// name is unique among the test binaries that run at the same time.
func name() string {
	return "t" + strconv.FormatInt(int64(os.Getpid()), 36) + strconv.FormatInt(count.Add(1), 36)
}

// Up builds a lab for one test and takes it down after it.
func Up(t testing.TB, s lab.Scenario) *lab.Lab {
	t.Helper()
	l, err := up(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			Report(t, l)
		}
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func up(ctx context.Context, s lab.Scenario) (*lab.Lab, error) {
	return lab.Up(ctx, s, lab.Options{Name: name(), Log: slog.New(slog.DiscardHandler)})
}

// Report shows the end of each log that says that something went wrong: of the daemons under
// test, and of whatever has ended.
func Report(t testing.TB, l *lab.Lab) {
	procs, err := l.Processes()
	if err != nil {
		t.Log(err)
		return
	}
	for _, p := range procs {
		if p.Name == "sluiced" || p.Name == "metadata" || !p.Running() {
			t.Logf("%s on %s (running: %v), its log ends:\n%s", p.Name, p.Node, p.Running(), p.LogTail(60))
		}
	}
}

// Shared is a lab that the tests of one binary share. Tests that change it put
// it back.
type Shared struct {
	scenario lab.Scenario
	once     sync.Once
	lab      *lab.Lab
	err      error
}

// NewShared declares a shared lab; the first Lab call builds it.
func NewShared(s lab.Scenario) *Shared { return &Shared{scenario: s} }

// Lab returns the shared lab.
func (s *Shared) Lab(t testing.TB) *lab.Lab {
	t.Helper()
	// Not the test's context: the lab outlives the test.
	s.once.Do(func() { s.lab, s.err = up(context.Background(), s.scenario) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.lab
}

// Run runs the tests, takes the shared labs down and returns the exit code. It
// is for TestMain.
func Run(m *testing.M, shared ...*Shared) int {
	code := m.Run()
	for _, s := range shared {
		if s.lab == nil {
			continue
		}
		if err := s.lab.Down(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// RunPrograms is Run with the programs under test, which put makes in a directory of its own; the
// directory is written to bin.
func RunPrograms(m *testing.M, bin *string, put func(dir string) error, shared ...*Shared) int {
	dir, err := os.MkdirTemp("", "sluice-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*bin = dir
	if err := put(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return Run(m, shared...)
}

// Exec runs a command on a node and fails the test when it fails.
func Exec(t testing.TB, l *lab.Lab, node string, argv ...string) string {
	t.Helper()
	out, err := l.Exec(t.Context(), node, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Eventually waits until cond returns nil, or fails the test after lab.Patience.
func Eventually(t testing.TB, l *lab.Lab, what string, cond func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience())
	defer cancel()
	if err := l.WaitFor(ctx, what, cond); err != nil {
		t.Fatal(err)
	}
}

// Still is what a test reads of a node when nothing of it changes any more by itself:
// addresses, bridges and databases of a lab are not ready at once.
func Still(t testing.TB, l *lab.Lab, node string, read func(node string) string) string {
	t.Helper()
	var last string
	Eventually(t, l, "nothing changes on "+node, func() error {
		before := last
		if last = read(node); before != last {
			time.Sleep(2 * time.Second) // what detects a duplicate address takes one
			return errors.New(FirstDifference(before, last))
		}
		return nil
	})
	return last
}

// FirstDifference names the first line in which two texts differ.
func FirstDifference(a, b string) string {
	old, now := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(old), len(now)) {
		if old[i] != now[i] {
			return fmt.Sprintf("%q is %q", old[i], now[i])
		}
	}
	return fmt.Sprintf("%d lines are %d", len(old), len(now))
}

// Ping waits until an address answers.
func Ping(t testing.TB, l *lab.Lab, node, addr string) {
	t.Helper()
	Eventually(t, l, "an answer from "+addr+" to "+node, func() error {
		_, err := l.Exec(t.Context(), node, "ping", "-n", "-c1", "-W1", addr)
		return err
	})
}

// LinkPrograms is programs.LinkInto in a virtual machine of test/vm, which was given them.
func LinkPrograms(dir string, programs ...string) error {
	for _, program := range programs {
		if err := os.Symlink(filepath.Join("/guest/bin", program), filepath.Join(dir, program)); err != nil {
			return err
		}
	}
	return nil
}
