package statefile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWriteAndRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	// What one that was killed has left: more than is to be written, and for all to read.
	if err := os.WriteFile(filepath.Join(dir, ".state.json.new"), []byte("longer than what follows"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(string, []byte) error{Write, WriteRuntime} {
		for _, content := range []string{"one", "two"} {
			if err := write(path, []byte(content)); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != content {
				t.Fatalf("%q, %v; want %q", b, err, content)
			}
		}
		if err := write(filepath.Join(dir, "none", "state.json"), nil); err == nil {
			t.Error("no error without a directory")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for range 2 {
		if err := RemoveIn(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// stopped is the context of a process that was stopped beyond the deadline: no timer has fired yet.
type stopped struct{ context.Context }

func (stopped) Deadline() (time.Time, bool) { return time.Now(), true }

// The file stays as it is when the deadline passes while the content is written.
func TestSlowDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	slow := func(f *os.File) error { cancel(); return f.Sync() }
	if err := replace(ctx, path, []byte("new"), slow); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err := range []error{WriteIn(stopped{t.Context()}, path, []byte("new")), RemoveIn(stopped{t.Context()}, path)} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
