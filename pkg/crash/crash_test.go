package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const childEnv = "SLUICE_CRASH_TEST"

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
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
	case "exit":
		os.Exit(0)
	}
	select {}
}

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crash")
	for _, tt := range []struct{ how, want string }{
		{"exit", ""}, {"panic", "panic: first line"}, {"killed", ""}, {"nil", "panic: runtime error: invalid memory address or nil pointer dereference"}, {"exit", ""},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+path+"="+tt.how)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() == 9 {
			t.Fatalf("%s: %v: %s", tt.how, err, out)
		}
		got, err := Watch(path)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.how, got, err, tt.want)
		}
		if b, err := os.ReadFile(path + lastSuffix); tt.want != "" && (err != nil || !strings.Contains(string(b), "goroutine ")) {
			t.Errorf("%s: the report that is kept: %q, %v", tt.how, b, err)
		}
	}
	if _, err := Watch(filepath.Join(path, "none")); err == nil {
		t.Error("no error without a directory")
	}
}
