// Package crash tells a process how the one before it ended: by a panic, or otherwise.
// Someone who kills a daemon, and a machine that loses power, leave nothing behind.
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

// Watch has the runtime write the report of a panic or another fatal error to path,
// beside standard error. It returns the first line of the one that the process
// before wrote there, and moves that to path.last; "" if it wrote none.
func Watch(path string) (last string, err error) {
	report, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the last report of a crash: %w", err)
	}
	if len(report) > 0 {
		if err := os.Rename(path, path+lastSuffix); err != nil {
			return "", fmt.Errorf("keep the last report of a crash: %w", err)
		}
		last, _, _ = strings.Cut(strings.TrimSpace(string(report)), "\n")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return last, fmt.Errorf("make a place for the report of a crash: %w", err)
	}
	return last, errors.Join(debug.SetCrashOutput(f, debug.CrashOptions{}), f.Close())
}
