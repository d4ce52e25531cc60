package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Exists tells whether the file stands for a namespace. One that is only a file does
// not: that is what a crash leaves between the file and the mount, in ip-netns(8) too.
func Exists(path string) (bool, error) {
	var s unix.Statfs_t
	err := unix.Statfs(path, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("network namespace %s: %w", path, err)
	}
	return s.Type == unix.NSFS_MAGIC, nil
}

// Create makes a namespace that the file stands for, as "ip netns add" does. prepare
// runs in it before anybody finds it by the file, so that a crash leaves none that is
// not prepared.
func Create(path string, prepare func() error) (Namespace, error) {
	switch there, err := Exists(path); {
	case err != nil:
		return Namespace{}, err
	case there:
		return Namespace{}, fmt.Errorf("network namespace %s: %w", path, fs.ErrExist)
	}
	if err := share(filepath.Dir(path)); err != nil {
		return Namespace{}, fmt.Errorf("network namespace %s: %w", path, err)
	}
	if !Vacant(path) {
		return Namespace{}, fmt.Errorf("network namespace %s: something else has the name: %w", path, fs.ErrExist)
	}
	if err := touch(path); err != nil {
		return Namespace{}, fmt.Errorf("network namespace %s: %w", path, err)
	}
	result := make(chan error, 1)
	go func() {
		err := errors.New("function ended its goroutine")
		defer func() { result <- err }()
		runtime.LockOSThread() // as in Do
		err = outside(path, prepare)
	}()
	if err := <-result; err != nil {
		return Namespace{}, errors.Join(fmt.Errorf("network namespace %s: %w", path, err), Remove(path))
	}
	return At(path), nil
}

// Vacant tells whether a namespace can be made by the name: nothing has it, or an empty file that a
// crash left. A directory, a link, a socket, a file with something in it or one that is mounted there
// is somebody's.
func Vacant(path string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE|unix.STATX_SIZE, &s)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return s.Mode&unix.S_IFMT == unix.S_IFREG && s.Size == 0 && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}

// touch makes the file, or finds the empty one that a crash left.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o444)
	if err != nil {
		return err
	}
	return f.Close()
}

// outside makes the namespace, with the thread in it, and brings the thread back.
func outside(path string, prepare func() error) error {
	home, err := open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer unix.Close(home)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making it: %w", err)
	}
	defer func() {
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	if err := prepare(); err != nil {
		return err
	}
	if err := unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting it: %w", err)
	}
	return nil
}

// share makes the directory one whose mounts are those of all mount namespaces: a
// namespace that is removed in one would live on in the others, and one that is made
// would not be there in them.
func share(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err := unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	// It is no mount point yet.
	if err := unix.Mount(dir, dir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", dir, err)
	}
	return unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "")
}

// Remove takes the file away. The namespace goes with it, unless a process, a socket or
// another file still has it. One that is not there is no error.
func Remove(path string) error {
	// EINVAL: nothing is mounted there.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unmounting network namespace %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing network namespace: %w", err)
	}
	return nil
}
