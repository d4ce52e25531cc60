package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// part is a group of measurements that needs no other one.
type part struct {
	name string
	// limit is how long it may take at all.
	limit time.Duration
	// condition is under which its values hold; "" where its rows say so.
	condition string
	run       func(o options, ctx context.Context, out io.Writer, rep *report) error
}

const (
	inKernel = "test runs of the programs in the kernel, no device"
	oneCloud = "both clouds on this machine"
)

// parts are in the order of the table.
var parts = []part{
	{"programs", 20 * time.Minute, inKernel, options.programs},
	{"balance", 20 * time.Minute, inKernel, options.balance},
	{"balancing", 20 * lab.Patience(), oneCloud + ", clients and servers too", options.measureBalancing},
	{"health", 15 * time.Minute, "", options.health},
	{"forwarding", 10 * time.Minute, "", options.forwarding},
	{"small", 12 * time.Minute, oneCloud + ", ovn-northd paused, no route reflector", func(o options, ctx context.Context, out io.Writer, rep *report) error {
		return o.cloud(ctx, out, rep, small)
	}},
	{"large", 12 * time.Minute, oneCloud + ", ovn-northd paused, no route reflector", func(o options, ctx context.Context, out io.Writer, rep *report) error {
		return o.cloud(ctx, out, rep, large)
	}},
	{"control", 15 * time.Minute, oneCloud + ", ovn-northd paused, no route reflector, no graceful restart at the neighbour", options.measureControl},
	{"move", 12 * time.Minute, oneCloud, options.move},
	{"controller", 15 * time.Minute, "one replica, no ovn-northd", options.measureController},
	{"metadata", 20 * time.Minute, "both forms on this machine, in turns", options.measureMetadata},
}

func partNames() (out []string) {
	for _, p := range parts {
		out = append(out, p.name)
	}
	return out
}

// run measures what is wanted. What was measured is printed and written even when
// a later part fails.
func (o options) run(ctx context.Context, out io.Writer) error {
	wanted := strings.Split(o.parts, ",")
	for _, name := range wanted {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("-parts: %q is none of %v", name, partNames())
		}
	}
	var rep report
	var errs error
	for _, p := range parts {
		if ctx.Err() != nil || errors.Is(errs, errStuck) || !slices.Contains(wanted, p.name) {
			continue
		}
		begin := time.Now()
		results, err := p.measure(ctx, o, out)
		rep.results = append(rep.results, results...)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", p.name, err))
		}
		fmt.Fprintf(out, "measured %s in %.0f s\n", p.name, time.Since(begin).Seconds())
	}
	rep.print(out)
	if o.out != "" {
		errs = errors.Join(errs, rep.write(o.out))
	}
	return errs
}

// cleanUp is how long a part may take to remove what it has made.
const cleanUp = 3 * time.Minute

// measure returns what was measured until an error, too, but for a part that is stuck.
func (p part) measure(ctx context.Context, o options, out io.Writer) ([]result, error) {
	own := report{condition: conditions(machine(), p.condition)}
	err := bounded(ctx, p.limit, cleanUp, func(ctx context.Context) error { return p.run(o, ctx, out, &own) })
	if errors.Is(err, errStuck) {
		return nil, err
	}
	return own.results, err
}

var errStuck = errors.New("it does not end; what it has made is left behind")

// bounded ends fn's context after the limit. If fn has not ended after the time to clean up
// either, it is left alone; what its goroutines do is on standard error.
func bounded(ctx context.Context, limit, cleanUp time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		if err == nil {
			return nil
		}
		return errors.Join(context.Cause(ctx), err)
	case <-time.After(cleanUp):
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		return errors.Join(context.Cause(ctx), errStuck)
	}
}

// machine is what a part is measured on.
func machine() string {
	load, _, _ := strings.Cut(readLine("/proc/loadavg"), " ")
	return fmt.Sprintf("%d processors, load %s before", runtime.NumCPU(), load)
}

func readLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	return string(b)
}

func conditions(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), "; ")
}
