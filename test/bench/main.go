package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/test/bench/programs"
)

// options are the sizes of a run.
type options struct {
	out, sluiced   string
	labName        string
	tenants, hosts int
	rounds         int
	changes        int
	rest           time.Duration
	skipPrograms   bool
}

func main() {
	var o options
	listen := flag.String("listen", "", "be the BGP neighbour that this JSON describes, and report what arrives")
	flag.StringVar(&o.out, "out", "", "write the results as JSON to this file")
	flag.StringVar(&o.sluiced, "sluiced", "bin/sluiced", "the daemon to measure")
	flag.StringVar(&o.labName, "name", "bench", "name of the lab")
	flag.IntVar(&o.tenants, "tenants", 1000, "VRFs of the large cloud")
	flag.IntVar(&o.hosts, "hosts", 20, "hosts of each VRF")
	flag.IntVar(&o.rounds, "rounds", 60, "runs of each program and packet")
	flag.IntVar(&o.changes, "changes", 200, "changes in the Southbound database to time")
	flag.DurationVar(&o.rest, "rest", time.Minute, "how long to watch the CPU time of a daemon at rest")
	flag.BoolVar(&o.skipPrograms, "skip-programs", false, "leave the packet programs out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := func() error { return o.run(ctx, os.Stdout) }
	if *listen != "" {
		run = func() error { return runListener(ctx, *listen, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything. What was measured is printed and written even when a
// later part fails.
func (o options) run(ctx context.Context, out io.Writer) error {
	var rep report
	var errs error
	if !o.skipPrograms {
		errs = errors.Join(errs, o.programs(ctx, &rep))
	}
	if ctx.Err() == nil {
		errs = errors.Join(errs, o.cloud(ctx, out, &rep, small))
	}
	if ctx.Err() == nil {
		errs = errors.Join(errs, o.cloud(ctx, out, &rep, large))
	}
	rep.print(out)
	if o.out != "" {
		errs = errors.Join(errs, rep.write(o.out))
	}
	return errs
}

// programs measures the packet programs in a bpf file system of their own.
func (o options) programs(ctx context.Context, rep *report) error {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpf file system (root is needed): %w", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	rows, err := programs.Run(ctx, dir, o.rounds)
	for _, r := range rows {
		kind := "prefixes"
		if r.Host {
			kind = "hosts"
		}
		name := fmt.Sprintf("%s IPv%d %s routes=%d vrfs=%d", r.Program, r.Family, kind, r.Routes, r.VRFs)
		own, redirect := r.Timing.Live-r.Timing.Wrapper, r.Timing.Redirect-r.Timing.Wrapper
		rep.add(name, r.Timing.Ratio(), "x redirect", atMost(r.Goal()))
		rep.note(fmt.Sprintf("%s ns against %s ns", ns(own), ns(redirect)))
		if r.Program == ebpf.OverlayIn {
			// bpf_skb_set_tunnel_key is in the program here; for fabric_in the wrapper calls it.
			rep.note("sets the tunnel key")
		}
	}
	return err
}

func ns(d time.Duration) string { return strconv.FormatInt(d.Nanoseconds(), 10) }
