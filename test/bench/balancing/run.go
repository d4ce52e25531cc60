package balancing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/load"
	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/lab"
)

// Config says what to measure.
type Config struct {
	// Sluiced is the daemon's path; sluicectl and sluice-lab are beside it.
	Sluiced string
	// LabName is the name of the lab.
	LabName string
	// KernelDatapath is Open vSwitch's in the kernel, in place of the one in userspace.
	KernelDatapath bool
	// Generator is the command that runs load.Serve.
	Generator []string
	// Clients ask at once, Connections times in a round together; after that one alone asks
	// Alone times, which is what latencies are of.
	Clients, Connections, Alone int
	// Rounds of each target are made, and no more of them are begun when Limit is over.
	Rounds int
	Limit  time.Duration
	Out    io.Writer
}

// check says what a configuration lacks.
func (c Config) check() error {
	if c.Clients < 1 || c.Connections < c.Clients || c.Alone < 1 || c.Rounds < 1 {
		return fmt.Errorf("%d clients, %d connections, %d of one alone, %d rounds: want at least one of each, and a connection for each client", c.Clients, c.Connections, c.Alone, c.Rounds)
	}
	if most := (c.Rounds+1)*(c.Connections+c.Alone) + attempts; most > portsEach {
		return fmt.Errorf("%d rounds of %d and %d connections: more than %d ports", c.Rounds, c.Connections, c.Alone, portsEach)
	}
	return nil
}

// bench is a lab and what was measured in it.
type bench struct {
	Config
	begun      time.Time
	lab        *lab.Lab
	generators map[string]*load.Generator // by machine
	results    []measure.Result
}

func (b *bench) add(name string, value float64, unit string, goal *measure.Goal, format string, args ...any) {
	b.results = append(b.results, measure.Result{Name: "balancing " + name, Value: value, Unit: unit, Goal: goal, Note: fmt.Sprintf(format, args...)})
}

// Run measures. The results until an error are returned with it.
func Run(ctx context.Context, cfg Config) (_ []measure.Result, err error) {
	b := &bench{Config: cfg, begun: time.Now(), generators: map[string]*load.Generator{}}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.down()) }()
	if err := b.up(ctx); err != nil {
		return nil, err
	}
	if err := b.floor(ctx); err != nil {
		return b.results, err
	}
	for _, from := range []asking{fabric, machine} {
		if err := b.balance(ctx, from); err != nil {
			return b.results, fmt.Errorf("%s: %w", from.name, err)
		}
	}
	return b.results, nil
}

// balance measures a kind of client, with both families.
func (b *bench) balance(ctx context.Context, from asking) (err error) {
	if err := b.addBalancers(ctx, from); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.dropBalancers(ctx, from)) }()
	for _, v6 := range []bool{false, true} {
		if err := b.family(ctx, from, v6); err != nil {
			return fmt.Errorf("%s: %w", familyName(v6), err)
		}
	}
	return nil
}

func familyName(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}

// floor measures the generator and a server without a network in between.
func (b *bench) floor(ctx context.Context) error {
	const rounds = 5
	name := twin("be1")
	addr, err := b.address(name, false)
	if err != nil {
		return err
	}
	t := &target{name: "itself", machine: name, from: addr, to: servers([]netip.Addr{addr}), next: firstPort}
	if err := b.await(ctx, asking{}, t); err != nil {
		return err
	}
	for range rounds + 1 {
		if _, err := b.round(ctx, t, b.Clients, b.Connections/b.Clients); err != nil {
			return fmt.Errorf("without a network: %w", err)
		}
	}
	b.add("generator and a server, no network", measure.Median(t.busy.PerSecond[1:]), "1/s", nil, "%d at once, median of %d rounds of %d", b.Clients, rounds, b.Connections)
	return nil
}
