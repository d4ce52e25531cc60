package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/test/bench/forwarding"
	"github.com/ovn-sluice/sluice/test/bench/load"
	"github.com/ovn-sluice/sluice/test/bench/metadata"
	"github.com/ovn-sluice/sluice/test/bench/programs"
)

// options are the sizes of a run.
type options struct {
	out, sluiced   string
	labName        string
	tenants, hosts int
	rounds         int
	changes        int
	moves          int
	rest           time.Duration
	parts          string
	metadata       metadataOptions
	balancing      balancingOptions
	control        controlOptions
	controller     controllerOptions
}

func main() {
	var o options
	listen := flag.String("listen", "", "be the BGP neighbour that this JSON describes, and report what arrives")
	agent := flag.String("agent", "", "stand in for neutron's metadata agent, as this JSON says")
	requests := flag.Bool("load", false, "make the requests that standard input orders")
	flag.StringVar(&o.out, "out", "", "write the results as JSON to this file")
	flag.StringVar(&o.sluiced, "sluiced", "bin/sluiced", "the daemon to measure")
	flag.StringVar(&o.labName, "name", "bench", "name of the lab")
	flag.IntVar(&o.tenants, "tenants", 1000, "VRFs of the large cloud")
	flag.IntVar(&o.hosts, "hosts", 20, "hosts of each VRF")
	flag.IntVar(&o.rounds, "rounds", 60, "runs of each program and packet")
	flag.IntVar(&o.changes, "changes", 200, "changes in the Southbound database to time")
	flag.IntVar(&o.moves, "moves", 20, "moves of gateway ports")
	flag.DurationVar(&o.rest, "rest", time.Minute, "how long to watch the CPU time of a daemon at rest")
	o.metadata.flags()
	o.balancing.flags()
	o.control.flags()
	o.controller.flags()
	flag.StringVar(&o.parts, "parts", strings.Join(partNames(), ","), "what to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := func() error { return o.run(ctx, os.Stdout) }
	if *listen != "" {
		run = func() error { return runListener(ctx, *listen, os.Stdout) }
	}
	if *agent != "" {
		run = func() error { return metadata.RunAgent(ctx, *agent) }
	}
	if *requests {
		run = func() error { return load.Serve(ctx, os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// withBPFFS runs fn with a bpf file system that is the bench's own.
func withBPFFS(fn func(dir string) error) error {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mount a bpf file system (root is needed): %w", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	return fn(dir)
}

// programs measures the packet programs.
func (o options) programs(ctx context.Context, _ io.Writer, rep *report) error {
	return withBPFFS(func(dir string) error {
		for _, run := range []func(context.Context, string, int) ([]programs.Result, error){programs.Run, programs.RunCold, programs.RunUnderlay} {
			rows, err := run(ctx, dir, o.rounds)
			for _, r := range rows {
				addProgram(rep, r)
			}
			if err != nil {
				return err
			}
		}
		passing, err := programs.RunTaps(ctx, dir, o.rounds)
		for _, p := range passing {
			rep.add(fmt.Sprintf("tap_in IPv%d not metadata", p.Family), float64((p.Tap - p.Empty).Nanoseconds()), "ns", noGoal)
			rep.note(fmt.Sprintf("%s ns against %s ns of an empty program", ns(p.Tap), ns(p.Empty)))
		}
		return err
	})
}

// balance measures fabric_in with packets to VIPs, against a balancer that does nothing else.
func (o options) balance(ctx context.Context, _ io.Writer, rep *report) error {
	return withBPFFS(func(dir string) error {
		rows, err := programs.RunBalance(ctx, dir, o.rounds)
		for _, r := range rows {
			rep.add(fmt.Sprintf("VIP IPv%d, %s, %d VIPs, %d backends", r.Family, r.Traffic.Name, r.VIPs, r.Backends), r.Ratio(), "x reference", atMost(1.4))
			rep.note(fmt.Sprintf("%s ns against %s ns; %.1fx and %.1fx redirect", ns(r.Live-r.Wrapper), ns(r.Reference-r.Wrapper), r.LiveRatio(), r.ReferenceRatio()))
		}
		if err != nil {
			return err
		}
		growth(rep, rows)
		const builds = 5
		built, err := programs.RunBuild(ctx, dir, builds)
		if err != nil {
			return err
		}
		slices.SortFunc(built, func(a, b programs.Built) int { return cmp.Compare(a.Took, b.Took) })
		b := built[len(built)/2]
		rep.add(fmt.Sprintf("%d VIPs of 1 to 10 backends, written", b.VIPs), b.Took.Seconds(), "s", atMost(2))
		rep.note(fmt.Sprintf("median of %d; %d backends in all", builds, b.Backends))
		rep.add(fmt.Sprintf("%d VIPs of 1 to 10 backends, memory", b.VIPs), float64(b.Maps+b.Heap)/1e6, "MB", atMost(64))
		rep.note(fmt.Sprintf("maps %.1f MB, heap %.1f MB, of 1,000,000 bytes", float64(b.Maps)/1e6, float64(b.Heap)/1e6))
		return nil
	})
}

// growth compares packets with the fewest and the most VIPs.
func growth(rep *report, rows []programs.Balance) {
	for _, few := range rows {
		if few.VIPs != 1 {
			continue
		}
		for _, many := range rows {
			if many.VIPs == 10_000 && many.Traffic == few.Traffic && many.Family == few.Family && many.Backends == few.Backends {
				rep.add(fmt.Sprintf("VIP IPv%d, %s, %d backends: 10,000 VIPs against 1", few.Family, few.Traffic.Name, few.Backends),
					float64(many.Live-many.Wrapper)/float64(few.Live-few.Wrapper), "x", atMost(1.2))
			}
		}
	}
}

func addProgram(rep *report, r programs.Result) {
	kind := "prefixes"
	if r.Host {
		kind = "hosts"
	}
	if r.Cold {
		kind = "cold prefixes"
	}
	if r.Miss {
		kind = "of the host,"
	}
	name := fmt.Sprintf("%s IPv%d %s routes=%d vrfs=%d", r.Program, r.Family, kind, r.Routes, r.VRFs)
	own, redirect := r.Timing.Live-r.Timing.Wrapper, r.Timing.Redirect-r.Timing.Wrapper
	rep.add(name, r.Timing.Ratio(), "x redirect", atMost(r.Goal()))
	if r.Program == ebpf.UnderlayIn {
		rep.note(fmt.Sprintf("%s ns against %s ns", ns(own), ns(redirect)))
		return
	}
	rep.note(fmt.Sprintf("%s ns against %s ns; %.1fx with the tunnel key alone", ns(own), ns(redirect), r.Timing.Floor()))
}

func ns(d time.Duration) string { return strconv.FormatInt(d.Nanoseconds(), 10) }

// forwarding measures a node between the fabric and OVN against the kernel.
func (o options) forwarding(ctx context.Context, _ io.Writer, rep *report) error {
	rep.condition = conditions(rep.condition, forwarding.Condition())
	return withBPFFS(func(dir string) error {
		rows, err := forwarding.Run(ctx, forwarding.DefaultOptions(dir))
		for _, r := range rows {
			g := noGoal
			if r.Goal != 0 {
				g = atLeast(r.Goal)
			}
			rep.add(r.Name, r.Ratio(), "x kernel", g)
			rep.note(fmt.Sprintf("%.3g against %.3g %s", r.Sluice, r.Kernel, r.Unit))
		}
		return err
	})
}
