// Package statefile replaces the small files that a daemon keeps over a restart:
// whoever reads one finds the old content or the new one, after a crash and, by Write,
// after a power failure too.
package statefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the file. The rename is the moment it counts; it outlives a power
// failure once the directory is on disk.
func Write(path string, content []byte) error {
	if err := replace(path, content, (*os.File).Sync); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// WriteRuntime replaces a file that means nothing after a restart of the machine, without
// waiting for the disk: after a power failure it may be empty.
func WriteRuntime(path string, content []byte) error {
	return replace(path, content, func(*os.File) error { return nil })
}

// replace has one name for what is not complete yet: a file has one writer, and what one
// that was killed has left is not in the way of the next.
func replace(path string, content []byte, sync func(*os.File) error) error {
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
	if err := errors.Join(err, sync(tmp), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

// Remove removes the file; one that is not there is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
