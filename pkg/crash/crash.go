// Package crash tells a process how the one before it ended: by a panic, by something
// else that the runtime reports, or otherwise. Someone who kills a daemon with SIGKILL,
// and a machine that loses power, leave nothing behind.
package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
)

// lastSuffix is that of the file in which the last report stays, for people.
const lastSuffix = ".last"

// Report is the first line of the runtime's report of its end; "" if there is none.
type Report string

// Panic tells whether the process ended by a panic. The runtime writes such a report
// also for SIGQUIT and SIGABRT, with which a watchdog ends a process that hangs, and
// for errors of its own such as memory that ends, whose text goes to standard error
// alone (runtime.throw).
func (r Report) Panic() bool { return strings.HasPrefix(string(r), "panic: ") }

// Watch has the runtime write the report of a panic or another fatal error to path,
// beside standard error. It returns that of the process before, and moves what it
// wrote to path.last.
func Watch(path string) (last Report, err error) {
	report, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the last report of a crash: %w", err)
	}
	if len(report) > 0 {
		if err := os.Rename(path, path+lastSuffix); err != nil {
			return "", fmt.Errorf("keep the last report of a crash: %w", err)
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(report)), "\n")
		last = Report(line)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return last, fmt.Errorf("make a place for the report of a crash: %w", err)
	}
	return last, errors.Join(debug.SetCrashOutput(f, debug.CrashOptions{}), f.Close())
}
