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
			dir := t.TempDir()
			script := "#!/bin/sh\necho run >> " + filepath.Join(dir, "runs") + "\n" + tc.script + "\n"
			if err := os.WriteFile(filepath.Join(dir, "ovs-ofctl"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			socket, err := net.Listen("unix", filepath.Join(dir, "br-ex.mgmt"))
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
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
			s.commit(context.Background(), Bridge{Name: "br-ex"}, nil, batch, errs)
			for i, err := range errs {
				if err == nil || errors.Is(err, context.DeadlineExceeded) != tc.hangs {
					t.Errorf("row %d: %v", i, err)
				}
			}
			runs, err := os.ReadFile(filepath.Join(dir, "runs"))
			if got := strings.Count(string(runs), "\n"); err != nil || got != tc.tried {
				t.Errorf("%d runs of ovs-ofctl, want %d (%v)", got, tc.tried, err)
			}
		})
	}
}

// A flow monitor that gets no answer is asked for again, and flows are looked at
// meanwhile.
func TestDeafMonitor(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	script := "#!/bin/sh\necho run >> " + runs + "\nexec sleep 60\n"
	if err := os.WriteFile(filepath.Join(dir, "ovs-ofctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	socket, err := net.Listen("unix", filepath.Join(dir, "br-ex.mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	s := New(Config{RunDir: dir, Timeout: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.watch(ctx, "br-ex") }()
	defer func() { cancel(); <-ended }()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		b, _ := os.ReadFile(runs)
		if strings.Count(string(b), "\n") > 1 {
			break
		}
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
