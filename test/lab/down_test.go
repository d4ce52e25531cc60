package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// traces is all that carries a lab's name on this machine: namespaces, mounts,
// links of the host, processes, files.
func traces(t *testing.T, opt lab.Options) []string {
	t.Helper()
	dir := filepath.Join(opt.Dir, opt.Name)
	var out []string
	for _, pattern := range []string{"/run/netns/" + opt.Name + "-*", dir, opt.Dir + "/.new-*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	for _, line := range lines(t, "/proc/self/mountinfo") {
		if strings.Contains(line, dir) || strings.Contains(line, "/"+opt.Name+"-") {
			out = append(out, "mount "+line)
		}
	}
	cmdlines, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range cmdlines {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("SLUICE_LAB="+opt.Name+"\x00")) {
			out = append(out, "process "+f)
		}
	}
	return out
}

func hostLinks(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b), "\n")
}

// TestDownLeavesNothing takes a lab down from its state on disk alone, as
// another process does, beside another lab that goes on.
func TestDownLeavesNothing(t *testing.T) {
	other := evpn.Lab(t)
	opt := lab.Options{Name: fmt.Sprintf("d%d", os.Getpid()), Dir: shortDir(t)}
	before := hostLinks(t)
	if _, err := lab.Up(t.Context(), lab.EVPN(lab.EVPNParams{}), opt); err != nil {
		t.Fatal(err)
	}
	if len(traces(t, opt)) == 0 {
		t.Fatal("a lab that is up shows no trace: the check is broken")
	}
	if _, err := lab.Up(t.Context(), lab.EVPN(lab.EVPNParams{}), opt); err == nil {
		t.Error("a second lab of the same name came up")
	}
	again, err := lab.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Down(); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, opt); len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
	if after := hostLinks(t); !slices.Equal(before, after) {
		t.Errorf("links of the host: %v before, %v after", before, after)
	}
	if _, err := lab.Open(opt); !errors.Is(err, lab.ErrNoLab) {
		t.Errorf("opening it again: %v", err)
	}
	if _, err := other.Exec(t.Context(), "a-red1", "ping", "-n", "-c1", "-W2", "10.10.0.12"); err != nil {
		t.Errorf("the other lab suffered: %v", err)
	}
}

// Interrupted at any point, Up leaves nothing behind.
func TestInterruptedUpLeavesNothing(t *testing.T) {
	opt := lab.Options{Name: fmt.Sprintf("i%d", os.Getpid()), Dir: shortDir(t)}
	for _, after := range []time.Duration{0, 30 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		l, err := lab.Up(ctx, lab.EVPN(lab.EVPNParams{}), opt)
		cancel()
		if err == nil {
			// This machine was quicker; nothing to interrupt.
			if err := l.Down(); err != nil {
				t.Fatal(err)
			}
		}
		if left := traces(t, opt); len(left) > 0 {
			t.Fatalf("interrupted after %v, left behind:\n%s", after, strings.Join(left, "\n"))
		}
	}
}

// shortDir is a temporary directory whose name leaves room for socket paths.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "lab-")
	if err != nil {
		t.Fatal(err)
	}
	// FRR's own user has to get through it.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
