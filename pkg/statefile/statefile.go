// Package statefile replaces the small files that a daemon keeps over a restart:
// whoever reads one finds the old content or the new one, after a crash and, by Write,
// after a power failure too.
package statefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrNotOnDisk is wrapped when the file was replaced or removed, and a power failure may bring
// back what was there before.
var ErrNotOnDisk = errors.New("the change may not outlive a power failure")

// Write replaces the file. The rename is the moment it counts; it outlives a power
// failure once the directory is on disk.
func Write(path string, content []byte) error { return WriteIn(context.Background(), path, content) }

// WriteIn is Write, but leaves the file as it is when ctx has ended before the rename. A process
// that is stopped between its last look at ctx and the rename goes on with the rename.
func WriteIn(ctx context.Context, path string, content []byte) error {
	if err := replace(ctx, path, content, (*os.File).Sync); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// WriteRuntime replaces a file that means nothing after a restart of the machine, without
// waiting for the disk: after a power failure it may be empty.
func WriteRuntime(path string, content []byte) error {
	return replace(context.Background(), path, content, func(*os.File) error { return nil })
}

// replace has one name for what is not complete yet: a file has one writer, and what one
// that was killed has left is not in the way of the next.
func replace(ctx context.Context, path string, content []byte, sync func(*os.File) error) error {
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	tmp, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(aside) // no-op after the rename
	_, err = tmp.Write(content)
	if err := errors.Join(err, sync(tmp), tmp.Close(), ended(ctx)); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

// RemoveIn removes the file unless ctx has ended; one that is not there is no error.
func RemoveIn(ctx context.Context, path string) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// ended compares with the clock too: in a process that was stopped, the timer of ctx fires some
// time after the process goes on.
func ended(ctx context.Context) error {
	if end, bounded := ctx.Deadline(); bounded && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotOnDisk, err)
	}
	return nil
}
