package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Patience is how long a state of the lab may take to come: a minute, or as many
// as SLUICE_LAB_PATIENCE says, for a machine that is much slower than others.
func Patience() time.Duration {
	n, err := strconv.Atoi(os.Getenv("SLUICE_LAB_PATIENCE"))
	if err != nil || n < 1 {
		n = 1
	}
	return time.Duration(n) * time.Minute
}

// fatalError ends a wait at once.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// Fatal marks an error that ends WaitFor at once: waiting cannot help.
func Fatal(err error) error { return fatalError{err} }

// slowWait is how long something may take before the lab tells what it waits for.
const slowWait = 10 * time.Second

// Slow has the lab tell what it waits for when end is not called within slowWait.
func (l *Lab) Slow(what string) (end func()) {
	timer := time.AfterFunc(slowWait, func() { l.waiting(what) })
	return func() { timer.Stop() }
}

// WaitFor calls cond until it returns nil. It ends with the last error when ctx
// ends, or after Patience.
func (l *Lab) WaitFor(ctx context.Context, what string, cond func() error) error {
	return l.waitAtMost(ctx, Patience(), what, cond)
}

func (l *Lab) waitAtMost(ctx context.Context, limit time.Duration, what string, cond func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer l.Slow(what)()
	pause := 2 * time.Millisecond
	for {
		err := cond()
		if err == nil {
			return nil
		}
		if fatal := (fatalError{}); errors.As(err, &fatal) {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-time.After(pause):
		}
		pause = min(pause*2, 250*time.Millisecond)
	}
}

// listening tells whether something accepts connections on a unix socket.
func listening(path string) func() error {
	return func() error {
		c, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// writeFile replaces a file in one step.
func writeFile(path string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return os.Rename(tmp.Name(), path)
}
