package taps

import (
	"context"
	"errors"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Feature is something that is done on taps, whatever the node's role.
type Feature interface {
	// Used tells whether the configuration asks for it.
	Used() bool
	// Start makes what it needs on the node.
	Start(context.Context) error
	// Retire removes what an earlier start made of a feature that is not used any more.
	Retire(context.Context) error
	// Failed reports why Start or Retire did not succeed.
	Failed(error)
	// Serve works until ctx ends, and leaves all that is programmed.
	Serve(context.Context) error
}

const (
	// Retry is between two tries of Start or Retire.
	Retry = 5 * time.Second
	// soon is the same while something is still to be read, as the local database.
	soon = 200 * time.Millisecond
)

// Run starts a feature and has it work until ctx ends, or retires it.
func Run(ctx context.Context, f Feature) error {
	begin := f.Retire
	if f.Used() {
		begin = f.Start
	}
	for err := begin(ctx); err != nil; err = begin(ctx) {
		wait := Retry
		if errors.Is(err, reconcile.ErrNotReady) {
			wait = soon
		} else {
			f.Failed(err)
		}
		if !loop.Sleep(ctx, wait) {
			return nil
		}
	}
	if !f.Used() {
		return nil
	}
	return loop.IgnoreEnd(f.Serve(ctx))
}
