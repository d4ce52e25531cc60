package drain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

var start = time.Unix(1_700_000_000, 0)

func open(t *testing.T, path string, now time.Time) *Drain {
	t.Helper()
	d, err := Open(path, now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain.json")
	d := open(t, path, start)
	at := func(s time.Duration) time.Time { return start.Add(s) }
	want := func(after time.Duration, stage Stage, busy ...intent.VNI) {
		t.Helper()
		if s := d.Status(at(after)); s.Stage != stage || !slices.Equal(s.Busy, busy) {
			t.Errorf("after %v: %+v, want %s, busy %v", after, s, stage, busy)
		}
	}
	count := func(after time.Duration, withdrawn bool, red, blue uint64) {
		d.Observe(at(after), map[intent.VNI]uint64{1001: red, 2001: blue}, withdrawn)
	}
	want(0, Serving)
	if err := d.Begin(t.Context(), start, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	want(9*time.Second, Shutdown)
	count(9*time.Second, false, 1, 1)
	count(10*time.Second, false, 2, 1)
	want(10*time.Second, Withdrawn, 1001)
	count(11*time.Second, true, 2, 1)
	want(15*time.Second+time.Millisecond, Withdrawn)
	want(16*time.Second, Drained)
	count(17*time.Second, true, 2, 2)
	want(17*time.Second, Withdrawn, 2001)
	want(22*time.Second, Drained)
	// It stays asked for over a restart, and is drained only after it was watched.
	d = open(t, path, at(30*time.Second))
	want(30*time.Second, Withdrawn)
	count(30*time.Second, true, 100, 100)
	want(35*time.Second, Drained)
	for _, want := range []bool{true, false} {
		if ended, err := d.End(t.Context()); err != nil || ended != want {
			t.Fatalf("ended %t, %v, want %t", ended, err, want)
		}
	}
	want(36*time.Second, Serving)
	d = open(t, path, at(40*time.Second))
	want(40*time.Second, Serving)
}

// Who asked has given up: the state stays as it is.
func TestLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain.json")
	d := open(t, path, start)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Begin(ended, start, time.Second); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s := open(t, path, start).Status(start); s.Stage != Serving {
		t.Errorf("%+v", s)
	}
	if err := d.Begin(t.Context(), start, time.Hour); err != nil {
		t.Fatal(err)
	}
	if done, err := d.End(ended); done || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s := open(t, path, start).Status(start); s.Stage != Shutdown {
		t.Errorf("%+v", s)
	}
}

// slowWrite ends as soon as the new state is written beside the file.
type slowWrite struct {
	context.Context
	dir string
}

func (c slowWrite) Err() error {
	if new, _ := filepath.Glob(filepath.Join(c.dir, ".*.new")); len(new) > 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// Who asked gives up while the state is written: it stays as it is.
func TestSlowWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain.json")
	d := open(t, path, start)
	if err := d.Begin(slowWrite{t.Context(), filepath.Dir(path)}, start, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for _, d := range []*Drain{d, open(t, path, start)} {
		if s := d.Status(start); s.Stage != Serving {
			t.Errorf("%+v", s)
		}
	}
}

// noDescriptor takes all descriptors at the last look before the change: the directory cannot be
// brought to disk after it.
type noDescriptor struct {
	context.Context
	t *testing.T
}

func (c noDescriptor) Err() error {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: old.Max}); err != nil {
		c.t.Fatal(err)
	}
	return nil
}

// A change that the disk does not confirm is made: the file says so, and so does the drain.
func TestNotOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain.json")
	d := open(t, path, start)
	for _, change := range []struct {
		do   func(context.Context) error
		want Stage
	}{
		{func(ctx context.Context) error { return d.Begin(ctx, start, time.Second) }, Shutdown},
		{func(ctx context.Context) error { _, err := d.End(ctx); return err }, Serving},
	} {
		t.Run(string(change.want), func(t *testing.T) {
			if err := change.do(noDescriptor{t.Context(), t}); !errors.Is(err, ErrNotOnDisk) {
				t.Errorf("%v", err)
			}
		})
		for _, d := range []*Drain{d, open(t, path, start)} {
			if s := d.Status(start); s.Stage != change.want {
				t.Errorf("%+v, want %s", s, change.want)
			}
		}
	}
}

func TestAnotherTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain.json")
	d := open(t, path, start)
	for _, after := range []time.Duration{time.Hour, time.Minute} {
		if err := d.Begin(t.Context(), start.Add(time.Minute-after), after); err != nil {
			t.Fatal(err)
		}
	}
	if s := d.Status(start.Add(time.Minute)); s.Stage != Withdrawn || !s.Since.Equal(start.Add(time.Minute-time.Hour)) {
		t.Errorf("%+v", s)
	}
	// A clock that was set back does not make it longer.
	d = open(t, path, start.Add(-100*time.Hour))
	if s := d.Status(start.Add(-100 * time.Hour).Add(time.Minute)); s.Stage != Withdrawn {
		t.Errorf("%+v", s)
	}
}

func TestBadStateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain.json")
	for _, content := range []string{"", "{}", `{"version":2}`, "not json"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, start); err == nil {
			t.Errorf("%q was taken", content)
		}
	}
	d := open(t, filepath.Join(t.TempDir(), "none", "drain.json"), start)
	if err := d.Begin(t.Context(), start, time.Second); err == nil {
		t.Error("no error where the state cannot be kept")
	}
	if s := d.Status(start); s.Stage != Serving {
		t.Errorf("%+v", s)
	}
}
