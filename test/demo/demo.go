package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/test/lab"
)

// NewCommand is "sluice-lab demo".
func NewCommand() *cobra.Command {
	opt := lab.Options{Name: lab.DefaultName, Dir: lab.DefaultDir}
	return &cobra.Command{
		Use:   "demo",
		Short: "bring up two clouds with sluiced and show them talking",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f := c.Flag("name"); f != nil {
				opt.Name = f.Value.String()
			}
			if f := c.Flag("dir"); f != nil {
				opt.Dir = f.Value.String()
			}
			return Run(c.Context(), c.OutOrStdout(), opt)
		},
	}
}

// tour is one run of the demo.
type tour struct {
	lab    *lab.Lab
	out    io.Writer
	binary string
	step   int
	title  string          // of the step
	ended  map[string]bool // processes that the tour itself has ended, by node and name
}

// Run gives the tour. The lab stays up afterwards, also when a step has failed, to be looked into;
// when ctx ends it is taken away.
func Run(ctx context.Context, out io.Writer, opt lab.Options) (err error) {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	opt.Log = slog.New(slog.DiscardHandler)
	t := &tour{out: &sharedWriter{w: out}, binary: filepath.Join(filepath.Dir(exe), "sluiced"), ended: map[string]bool{}}
	if old, err := lab.Open(opt); err == nil {
		t.say("A lab named %s is up already; it is taken down first.", old.Name())
		if err := old.Down(); err != nil {
			return err
		}
	}
	t.head("Two OVN clouds, a BGP route reflector, sixteen VMs")
	t.say("Cloud A has the gateway chassis a1 and a2, a3 without gateways, cloud B has b1. Tenants red and blue use the same addresses.")
	start := time.Now()
	opt.KeepLogs = true
	opt.Waiting = t.waiting
	if t.lab, err = lab.Up(ctx, lab.EVPN(lab.EVPNParams{Compute: true, Metadata: true, Balancing: true}), opt); err != nil {
		return err
	}
	t.say("Up in %.1f s. Logs are in %s.", time.Since(start).Seconds(), t.lab.LogDir())
	for _, f := range []func(context.Context) error{
		t.startSluiced, t.ping, t.transfer, t.isolation, t.routes, t.status, t.kill, t.balance, t.metadata, t.api,
	} {
		if err := errors.Join(f(ctx), t.gone()); err != nil {
			return t.failed(ctx, err)
		}
	}
	t.farewell()
	return nil
}

// failed is how a tour ends that has failed: its last line says what has failed, and where to look.
func (t *tour) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		fmt.Fprintln(t.out, "\nInterrupted; the lab is taken away.")
		return errors.Join(err, t.lab.Down())
	}
	return fmt.Errorf("step %d (%s) failed: %w\nThe lab stays up to be looked into; %s takes it away. Logs: %s", t.step, t.title, err, t.downCommand(), t.lab.LogDir())
}

// gone tells which processes of the lab have ended by themselves.
func (t *tour) gone() error {
	all, err := t.lab.Processes()
	errs := []error{err}
	for _, p := range all {
		if !p.Running() && !t.ended[p.Node+" "+p.Name] {
			errs = append(errs, fmt.Errorf("%s on %s has ended by itself; the end of its log, %s:\n%s", p.Name, p.Node, p.Log, p.LogTail(10)))
		}
	}
	return errors.Join(errs...)
}

// end kills a process of the lab.
func (t *tour) end(node, name string) (*lab.Process, error) {
	p, err := t.lab.Process(node, name)
	if err != nil {
		return nil, err
	}
	t.ended[node+" "+name] = true
	return p, p.Kill()
}

// sharedWriter is written to by the tour, and by what tells that something takes long.
type sharedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sharedWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

func (t *tour) head(format string, args ...any) {
	t.step++
	t.title = fmt.Sprintf(format, args...)
	fmt.Fprintf(t.out, "\n== %d. %s\n", t.step, t.title)
}

func (t *tour) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// waiting tells what takes longer than a reader waits without a word.
func (t *tour) waiting(what string) { t.say("... waiting for %s", what) }

// show runs a command in a node and prints it with its output, as one would see it.
func (t *tour) show(ctx context.Context, node string, argv ...string) (string, error) {
	out, err := t.lab.Exec(ctx, node, argv...)
	fmt.Fprintf(t.out, "%s$ %s\n%s\n", node, strings.Join(argv, " "), indent(strings.TrimRight(out, "\n")))
	if err != nil {
		return out, fmt.Errorf("%s: %s: %w", node, strings.Join(argv, " "), err)
	}
	return out, nil
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

func (t *tour) startSluiced(ctx context.Context) error {
	t.head("sluiced on every chassis")
	t.say("Its whole configuration is its AS number, the route reflector, and where this lab keeps its sockets; that it balances load; on a3 also where Nova is.")
	start := time.Now()
	for _, n := range []string{"a1", "a2", "a3", "b1"} {
		s, err := t.program(n)
		if err != nil {
			return err
		}
		if _, err := t.lab.StartSluiced(ctx, n, s); err != nil {
			return err
		}
	}
	for _, vm := range []string{"a-red1", "a-blue1"} {
		if err := t.lab.WaitFor(ctx, vm+" reaches 10.20.0.11", func() error {
			_, err := t.lab.Exec(ctx, vm, "ping", "-c1", "-W1", "10.20.0.11")
			return err
		}); err != nil {
			return err
		}
	}
	t.say("%.1f s after the first start both tenants reach their VMs in the other cloud.", time.Since(start).Seconds())
	return nil
}

func (t *tour) ping(ctx context.Context) error {
	t.head("Both tenants, both IP versions, the same addresses at the same time")
	for _, vm := range []string{"a-red1", "a-blue1"} {
		for _, dst := range []string{"10.20.0.11", "fd00:20::11"} {
			if _, err := t.show(ctx, vm, "ping", "-c3", "-i0.2", "-q", dst); err != nil {
				return err
			}
		}
	}
	return nil
}

// downCommand is what takes the lab away.
func (t *tour) downCommand() string {
	if t.lab.Name() == lab.DefaultName {
		return "make demo-down"
	}
	return "make demo-down SLUICE_LAB=" + t.lab.Name()
}

func (t *tour) farewell() {
	t.head("Look around")
	command := "bin/sluice-lab "
	if t.lab.Name() != lab.DefaultName {
		command += "--name " + t.lab.Name() + " "
	}
	t.say("be1 is down: the step with its kill -9 ended it.")
	t.say("The lab stays up. For example:")
	for _, line := range []string{
		"list",
		"exec a1 -- sluicectl vrf list",
		"exec a1 -- sluicectl explain --vrf 1001 10.10.0.11 10.20.0.11",
		"exec a1 -- sluicectl trace --vrf 1001 10.10.0.11 10.20.0.11",
		"exec a1 -- sluicectl drops --follow",
		"exec a1 -- sluicectl lb backends",
		"exec c-fabric -- curl http://10.99.0.1/",
		"exec api -- openstack loadbalancer list",
		"exec api -- openstack loadbalancer delete --cascade shop4",
		"exec a-red1 -- ping 10.20.0.11",
		"exec m-red1 -- curl http://169.254.169.254/openstack/latest/meta_data.json",
		"exec a3 -- sluicectl metadata ports",
	} {
		t.say("    %s%s", command, line)
	}
	t.say("%s takes everything away.", t.downCommand())
}
