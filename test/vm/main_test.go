package vm_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// reportFile is what a run says beside its result: versions, statistics, and what
// it left out. tools/suite prints it.
var reportFile = filepath.Join("..", "..", "build", "vm.txt")

// workDir holds a directory for each run, by its process, with all that it writes.
var workDir = filepath.Join("..", "..", "build", "vm")

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	if err := removeStale(); err != nil {
		return 0, err
	}
	dir, err := filepath.Abs(filepath.Join(workDir, strconv.Itoa(os.Getpid())))
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	// Nothing is left of a run that somebody ends; its machines end with it.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-ended
		os.RemoveAll(dir)
		os.Exit(130)
	}()
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return 0, err
	}
	built.dir, built.files = dir, map[string]string{}
	if err := os.WriteFile(reportFile, nil, 0o644); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// removeStale removes what is left of runs that were killed.
func removeStale() error {
	dirs, err := filepath.Glob(filepath.Join(workDir, "[0-9]*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			err = os.RemoveAll(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
