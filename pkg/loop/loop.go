// Package loop has the parts of loops that run until their context ends.
package loop

import (
	"context"
	"errors"
	"time"

	"github.com/ovn-sluice/sluice/pkg/beat"
)

// Signal wakes a loop. Signals that are sent before the loop takes one are one signal.
type Signal chan struct{}

// NewSignal makes a Signal, which is not sent yet.
func NewSignal() Signal { return make(Signal, 1) }

// Send does not wait.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Every calls f at once, then once in each period and after each signal, until ctx ends. A nil
// signal is never sent. The error is nil.
func Every(ctx context.Context, period time.Duration, wake <-chan struct{}, f func()) error {
	tick := beat.New(period)
	defer tick.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-wake:
		case <-tick.C:
		}
	}
	return nil
}

// Sleep waits, and tells whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// IgnoreEnd is nil for the error of a context that was cancelled.
func IgnoreEnd(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
