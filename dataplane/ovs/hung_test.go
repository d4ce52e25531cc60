package ovs

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standIn puts a script in the place of ovs-ofctl, and a socket in the place of
// the bridge br-ex, into a directory. runs counts how often the script was run.
func standIn(t *testing.T, script string) (dir string, runs func() int) {
	t.Helper()
	dir = t.TempDir()
	log := filepath.Join(dir, "runs")
	script = "#!/bin/sh\necho run >> " + log + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "ovs-ofctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	socket, err := net.Listen("unix", filepath.Join(dir, "br-ex.mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return dir, func() int {
		b, _ := os.ReadFile(log)
		return strings.Count(string(b), "\n")
	}
}

// A bridge that accepts and never answers costs one timeout for all rows of a
// call. A refused bundle is halved, to find the row that is wrong.
func TestBundlesTried(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		hangs        bool
		tried        int
	}{
		{"hangs", "exec sleep 60", true, 1},
		{"refuses", "exit 1", false, 15},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, runs := standIn(t, tc.script)
			timeout := time.Minute
			if tc.hangs {
				timeout = time.Second
			}
			s := NewSteering(New(Config{RunDir: dir, Timeout: timeout}))
			errs := make([]error, 8)
			var batch []change
			for i := range errs {
				batch = append(batch, change{i, []string{"add priority=1,actions=drop"}})
			}
			s.commit(context.Background(), Bridge{Name: "br-ex"}, batch, errs)
			for i, err := range errs {
				if err == nil || errors.Is(err, context.DeadlineExceeded) != tc.hangs {
					t.Errorf("row %d: %v", i, err)
				}
			}
			if got := runs(); got != tc.tried {
				t.Errorf("%d runs of ovs-ofctl, want %d", got, tc.tried)
			}
		})
	}
}

// A flow monitor that gets no answer is asked for again, and flows are looked at
// meanwhile.
func TestDeafMonitor(t *testing.T) {
	dir, runs := standIn(t, "exec sleep 60")
	s := New(Config{RunDir: dir, Timeout: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.watch(ctx, "br-ex") }()
	defer func() { cancel(); <-ended }()
	for end := time.Now().Add(30 * time.Second); runs() < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the monitor was not started again")
		}
	}
	select {
	case <-s.Changes():
	default:
		t.Error("nothing was told")
	}
}
