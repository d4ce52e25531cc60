package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// WatchMounts calls changed when something was mounted or unmounted in the process's mount
// namespace, until ctx ends, and at first: several changes may be one call.
func WatchMounts(ctx context.Context, changed func()) error {
	// Not os.Open: the runtime's epoll would look at the file too, and a change is told to one of
	// those who look.
	mounts, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("following mounts: %w", err)
	}
	defer unix.Close(mounts)
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("following mounts: %w", err)
	}
	defer unix.Close(wake)
	one := binary.NativeEndian.AppendUint64(nil, 1)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(ended); _, _ = unix.Write(wake, one) })
	defer func() {
		if !stop() {
			<-ended // it writes to wake
		}
	}()
	changed()
	for ctx.Err() == nil {
		// proc(5): a change is a priority event of the file.
		fds := []unix.PollFd{{Fd: int32(mounts), Events: unix.POLLPRI}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("following mounts: %w", err)
		}
		if fds[0].Revents != 0 && ctx.Err() == nil {
			changed()
		}
	}
	return nil
}
