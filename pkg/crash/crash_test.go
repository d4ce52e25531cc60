package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const childEnv = "SLUICE_CRASH_TEST"

// kept is memory that is not given back.
var kept [][]byte

func TestMain(m *testing.M) {
	path, how, child := strings.Cut(os.Getenv(childEnv), "=")
	if !child {
		os.Exit(m.Run())
	}
	if _, err := Watch(path); err != nil {
		os.Exit(9)
	}
	switch how {
	case "panic":
		go panic("first line\nsecond line")
	case "nil":
		go func() { var m *testing.M; *m = testing.M{} }()
	case "killed":
		signalSelf(syscall.SIGKILL)
	case "aborted": // as systemd's watchdog does it
		signalSelf(syscall.SIGABRT)
	case "asked": // for a dump
		signalSelf(syscall.SIGQUIT)
	case "memory":
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		for {
			kept = append(kept, make([]byte, 1<<24))
		}
	case "maps":
		m := map[int]int{}
		for range 8 {
			go func() {
				for {
					m[1]++
				}
			}()
		}
	case "exit":
		os.Exit(0)
	}
	select {}
}

func signalSelf(s syscall.Signal) { _ = syscall.Kill(os.Getpid(), s) }

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crash")
	for _, tt := range []struct {
		how, want    string
		report, isIt bool
	}{
		{how: "exit"},
		{how: "panic", want: "panic: first line", report: true, isIt: true},
		{how: "killed"},
		{how: "nil", want: "panic: runtime error: invalid memory address or nil pointer dereference", report: true, isIt: true},
		{how: "aborted", want: "SIGABRT: abort", report: true},
		{how: "asked", want: "SIGQUIT: quit", report: true},
		{how: "memory", report: true},
		{how: "maps", report: true},
		{how: "exit"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+path+"="+tt.how)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() == 9 {
			t.Fatalf("%s: %v: %s", tt.how, err, out)
		}
		got, err := Watch(path)
		if err != nil || tt.want != "" && got != Report(tt.want) || (got != "") != tt.report || got.Panic() != tt.isIt {
			t.Errorf("%s: %q, %v, a panic: %t; want %+v", tt.how, got, err, got.Panic(), tt)
		}
		if b, err := os.ReadFile(path + lastSuffix); tt.report && (err != nil || !strings.Contains(string(b), "goroutine ")) {
			t.Errorf("%s: the report that is kept: %q, %v", tt.how, b, err)
		}
	}
	if _, err := Watch(filepath.Join(path, "none")); err == nil {
		t.Error("no error without a directory")
	}
}
