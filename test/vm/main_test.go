package vm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// reportFile is what a run says beside its result: versions, statistics, and what
// it left out. tools/gotest.sh prints it.
var reportFile = filepath.Join("..", "..", "build", "vm.txt")

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-vm-built")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built.dir, built.files = dir, map[string]string{}
	if err := os.MkdirAll(filepath.Dir(reportFile), 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.WriteFile(reportFile, nil, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

var reporting sync.Mutex

func report(t *testing.T, format string, args ...any) {
	t.Helper()
	line := t.Name() + ": " + fmt.Sprintf(format, args...)
	t.Log(line)
	reporting.Lock()
	defer reporting.Unlock()
	f, err := os.OpenFile(reportFile, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Error(err)
	}
}
