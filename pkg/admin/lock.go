package admin

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock is an exclusive lock that ends with its process, however that ends.
type Lock struct{ f *os.File }

// AcquireLock locks a directory, which it makes with mode 0700 if it is not
// there. It does not wait: a directory that another process has locked is an
// error that wraps ErrLocked.
func AcquireLock(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	return lockFile(filepath.Join(dir, "lock"))
}

func lockFile(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		if err == unix.EWOULDBLOCK {
			return nil, fmt.Errorf("%w: process %s has locked %s", ErrLocked, strings.TrimSpace(string(holder)), path)
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	// The file stays when the lock ends: removing it would let two processes
	// lock two files of one name. What is in it is only for whoever finds it locked: a
	// full disk stops nobody.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{f: f}, nil
}

// Release ends the lock.
func (l *Lock) Release() error { return l.f.Close() }
