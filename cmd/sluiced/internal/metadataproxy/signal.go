package metadataproxy

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// EndSignal ends a context when the process is told to end, until it is released. A signal
// is either seen by the context, or does what it does to a process that catches none: it is
// not lost when another program takes the process over.
type EndSignal struct {
	caught chan os.Signal
	done   chan struct{}
	// actions are the runtime's handlers, while the signals are released.
	actions [len(ends)]sigaction
}

// ends are the signals by which a process is told to end.
var ends = [...]syscall.Signal{syscall.SIGINT, syscall.SIGTERM}

// Catch begins; after release it does so again.
func (e *EndSignal) Catch(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	if e.caught != nil {
		for i, s := range ends {
			e.actions[i].set(s)
		}
	}
	e.caught, e.done = make(chan os.Signal, 1), make(chan struct{})
	for _, s := range ends {
		signal.Notify(e.caught, s)
	}
	go func() {
		defer close(e.done)
		for range e.caught {
			cancel()
		}
	}()
	return ctx
}

// release returns when the context knows of all signals that were caught. From then on
// the kernel ends the process by itself: a thread that was about to do so in a handler
// of the runtime would not come to it where another program begins.
func (e *EndSignal) release() {
	for i, s := range ends {
		e.actions[i] = (&sigaction{}).set(s)
	}
	// No thread is in a handler any more when each has made a call outside one.
	// In a program with cgo, which none of ours is, that is only likely.
	_, _, _ = syscall.AllThreadsSyscall(syscall.SYS_GETPID, 0, 0, 0)
	signal.Stop(e.caught) // waits for those that are on their way
	close(e.caught)
	<-e.done
}

// sigaction is what the kernel does with a signal: struct kernel_sigaction; zero is
// SIG_DFL. The runtime has no way to give up a handler that it set.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// set has the kernel do so, and returns what it did before.
func (a *sigaction) set(s syscall.Signal) (before sigaction) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(&before)), unsafe.Sizeof(a.mask), 0, 0)
	return before
}
