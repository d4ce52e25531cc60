package forwarding

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// alone runs fn on one CPU, before all ordinary processes there: what else the
// machine does would be in the result otherwise.
func alone(cpu int, fn func() error) error {
	return first(func() (err error) {
		var old, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &old); err != nil {
			return fmt.Errorf("read the thread's CPUs: %w", err)
		}
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return fmt.Errorf("bind the thread to CPU %d: %w", cpu, err)
		}
		defer func() { err = errors.Join(err, unix.SchedSetaffinity(0, &old)) }()
		return fn()
	})
}

// first runs fn before all ordinary processes; what fn starts inherits that.
// Where the kernel refuses it (a container without real-time rights), fn runs as
// an ordinary one.
func first(fn func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if before() == nil {
		defer func() { err = errors.Join(err, ordinary()) }()
	}
	return fn()
}

// before has the thread run before all ordinary ones; ordinary ends that.
func before() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
}

func ordinary() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
}

// Condition is what the rates hold under.
func Condition() string {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if before() != nil || ordinary() != nil {
		return "threads as any others: no real-time rights"
	}
	return "threads before all ordinary processes of the machine"
}

func lastCPU() int { return runtime.NumCPU() - 1 }
