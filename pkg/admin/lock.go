package admin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is an exclusive lock that ends with its process, however that ends.
type Lock struct{ f *os.File }

// AcquireLock locks a directory, which it makes with mode 0700 if it is not
// there, for what is named who. A directory that another process has locked for lockPatience
// is an error that is ErrLocked.
func AcquireLock(dir, who string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	for began := time.Now(); ; time.Sleep(lockPatience / 50) {
		l, err := lockFile(filepath.Join(dir, "lock"), who)
		if !errors.Is(err, ErrLocked) || time.Since(began) > lockPatience {
			return l, err
		}
	}
}

// lockPatience is for what was killed while it began a process: that has the lock, too, until
// it runs its own program, which on a busy machine takes a moment.
const lockPatience = time.Second

// lockedError says what else is running.
type lockedError struct{ who, process, path string }

func (e *lockedError) Error() string {
	return fmt.Sprintf("another %s is running: process %s has locked %s", e.who, e.process, e.path)
}

func (e *lockedError) Unwrap() error { return ErrLocked }

func lockFile(path, who string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		if err == unix.EWOULDBLOCK {
			return nil, &lockedError{who, strings.TrimSpace(string(holder)), path}
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
