// Package daemons tells what the processes of a lab use.
package daemons

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// Beside is the path of a program that was built with sluiced.
func Beside(sluiced, name string) (string, error) {
	return filepath.Abs(filepath.Join(filepath.Dir(sluiced), name))
}

// clockTick is the unit of times in /proc/PID/stat and /proc/stat (USER_HZ).
const clockTick = 10 * time.Millisecond

// Processor is the time that running processes have used.
func Processor(ps []*lab.Process) (sum time.Duration, err error) {
	for _, p := range ps {
		pid := p.Pid()
		if pid == 0 {
			continue
		}
		used, err := ProcessorOf(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// ProcessorOf is Processor of one process.
func ProcessorOf(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// utime and stime are fields 14 and 15; the name, field 2, ends with the last ")".
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: too few fields", pid)
	}
	used, err := ticks(f[11:13])
	if err != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return used, nil
}

// Settle waits until processes do next to nothing.
func Settle(ctx context.Context, ps []*lab.Process) error {
	for {
		before, err := Processor(ps)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(2 * time.Second):
		}
		after, err := Processor(ps)
		if err != nil {
			return err
		}
		if after-before < 200*time.Millisecond {
			return nil
		}
	}
}

// Idle is the time that all processors together have had nothing to do, since the machine
// was started.
func Idle() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	// cpu, user, nice, system, idle, iowait
	f := strings.Fields(line)
	if len(f) < 6 || f[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	idle, err := ticks(f[4:6])
	if err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	return idle, nil
}

func ticks(fields []string) (sum time.Duration, err error) {
	for _, s := range fields {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * clockTick
	}
	return sum, nil
}

// Resident is a process' resident memory in bytes.
func Resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm: too few fields", pid)
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
