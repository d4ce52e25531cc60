package metadata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/measure"
)

// Config says what to measure.
type Config struct {
	// Sluiced is the daemon's path; sluicectl and sluice-lab are beside it.
	Sluiced string
	// LabName is the name of the labs.
	LabName string
	// Networks are the numbers of networks, from the smallest to the largest, which the
	// requests are measured with.
	Networks []int
	// Clients ask at once, Requests times in a round together; one machine alone asks
	// as often. There are Rounds.
	Clients, Requests, Rounds int
	// Bindings of a port are timed, and Restarts of the daemon and the proxy.
	Bindings, Restarts int
	// Settle is how long processes are at rest before their memory is read.
	Settle time.Duration
	Out    io.Writer
}

// bench collects results.
type bench struct {
	Config
	results []measure.Result
}

func (b *bench) add(name string, value float64, unit string, goal *measure.Goal, note string) {
	b.results = append(b.results, measure.Result{Name: name, Value: value, Unit: unit, Goal: goal, Note: note})
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.Out, format+"\n", args...) }

// Run measures. The results until an error are returned with it.
func Run(ctx context.Context, cfg Config) ([]measure.Result, error) {
	b := &bench{Config: cfg}
	if len(cfg.Networks) == 0 {
		return nil, errors.New("no number of networks")
	}
	var ours, classic []memory
	for i, n := range cfg.Networks {
		s, c, err := b.size(ctx, n, i == len(cfg.Networks)-1)
		if err != nil {
			return b.results, fmt.Errorf("%d networks: %w", n, err)
		}
		ours, classic = append(ours, s), append(classic, c)
		b.memory(n, "sluice", s)
		b.memory(n, "classic", c)
	}
	b.growth(ours, classic)
	return b.results, nil
}

// size measures both forms with so many networks, and requests with the most.
func (b *bench) size(ctx context.Context, n int, last bool) (ours, classic memory, err error) {
	s := &sluiceSide{bench: b}
	defer func() { err = errors.Join(err, s.down()) }()
	if err := s.up(ctx, n); err != nil {
		return ours, classic, fmt.Errorf("sluice: %w", err)
	}
	if ours, err = s.memory(ctx); err != nil {
		return ours, classic, fmt.Errorf("sluice: %w", err)
	}
	space, err := s.space(chassis)
	if err != nil {
		return ours, classic, err
	}
	c := &classicSide{bench: b, agent: agentProcess(space, s.address)}
	defer func() { err = errors.Join(err, c.down()) }()
	if err := c.up(ctx, n); err != nil {
		return ours, classic, fmt.Errorf("classic form: %w", err)
	}
	classic = c.used
	if !last {
		return ours, classic, nil
	}
	if err := b.requests(ctx, s, c); err != nil {
		return ours, classic, err
	}
	// What follows is of Sluice alone.
	if err := c.down(); err != nil {
		return ours, classic, err
	}
	return ours, classic, errors.Join(s.bindings(ctx), s.restarts(ctx))
}

func (b *bench) memory(n int, side string, m memory) {
	name := fmt.Sprintf("metadata memory %s networks=%d", side, n)
	b.add(name, mib(m.user+m.kernel), "MiB", nil, fmt.Sprintf("%.1f MiB of processes, %.1f MiB of the kernel", mib(m.user), mib(m.kernel)))
}

// part is what Sluice's memory may grow by, as a part of the classic form's growth.
const part = 0.01

func (b *bench) growth(ours, classic []memory) {
	last := len(ours) - 1
	if last == 0 {
		return
	}
	grown := func(m []memory) float64 { return mib(m[last].user + m[last].kernel - m[0].user - m[0].kernel) }
	b.add(fmt.Sprintf("metadata growth of memory, %d to %d networks, of the classic form's", b.Networks[0], b.Networks[last]),
		grown(ours)/grown(classic), "x", measure.AtMost(part), fmt.Sprintf("%.1f against %.1f MiB", grown(ours), grown(classic)))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
