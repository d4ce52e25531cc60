package netns

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RunDir is where iproute2 keeps named namespaces.
const RunDir = "/run/netns"

// Namespace is a network namespace. The zero value is the process's own.
type Namespace struct {
	path string
}

// At is the namespace that a file stands for, such as /proc/PID/ns/net. An
// empty path is the process's own.
func At(path string) Namespace { return Namespace{path: path} }

// Named is a namespace by its iproute2 name.
func Named(name string) Namespace { return At(filepath.Join(RunDir, name)) }

func (n Namespace) String() string {
	if n.path == "" {
		return "own namespace"
	}
	return n.path
}

// Do runs fn in the namespace, on a thread of its own, and returns its error.
func (n Namespace) Do(fn func() error) error {
	result := make(chan error, 1)
	go func() {
		err := errors.New("function ended its goroutine")
		defer func() { result <- err }()
		// Unlocked only by inside, when the thread is back home. A goroutine
		// that ends while locked takes its thread with it.
		runtime.LockOSThread()
		err = n.inside(fn)
	}()
	return <-result
}

func (n Namespace) inside(fn func() error) error {
	if n.path == "" {
		defer runtime.UnlockOSThread()
		return fn()
	}
	home, err := open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer unix.Close(home)
	target, err := open(n.path)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	if err := unix.Setns(target, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering network namespace %s: %w", n.path, err)
	}
	defer func() {
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return fn()
}

func open(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening network namespace %s: %w", path, err)
	}
	return fd, nil
}

// Netlink runs fn in the namespace with a route netlink handle of its own,
// which is closed afterwards.
func (n Namespace) Netlink(fn func(*netlink.Handle) error) error {
	return n.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("opening a netlink socket in %s: %w", n, err)
		}
		defer h.Close()
		return fn(h)
	})
}
