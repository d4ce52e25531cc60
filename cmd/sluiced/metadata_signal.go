package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// releaseSignals ends main's own handling of signals, and its context.
var releaseSignals = func() {}

// endSignal ends a context when the process is told to end, until it is released. A signal
// is either seen by the context, or does what it does to a process that catches none: it is
// not lost when another program takes the process over.
type endSignal struct {
	caught chan os.Signal
	done   chan struct{}
}

func catchEnd(ctx context.Context) (context.Context, *endSignal) {
	ctx, cancel := context.WithCancel(ctx)
	e := &endSignal{make(chan os.Signal, 1), make(chan struct{})}
	signal.Notify(e.caught, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer close(e.done)
		for range e.caught {
			cancel()
		}
	}()
	return ctx, e
}

// release returns when the context knows of all signals that were caught.
func (e *endSignal) release() {
	signal.Stop(e.caught) // waits for those that are on their way
	close(e.caught)
	<-e.done
}
