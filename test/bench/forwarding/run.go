package forwarding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Options are the sizes of a run.
type Options struct {
	// BPFFS is a directory on a bpffs that is the bench's own.
	BPFFS string
	// Rounds of small packets, and StreamRounds of streams, whose rate varies more.
	Rounds, StreamRounds int
	// Packets of a round of small packets, and Span of a round of a stream.
	Packets uint32
	Span    time.Duration
}

// DefaultOptions take less than three minutes.
func DefaultOptions(bpffs string) Options {
	return Options{BPFFS: bpffs, Rounds: 21, StreamRounds: 31, Packets: 40_000, Span: 150 * time.Millisecond}
}

// Result is one line of the table.
type Result struct {
	Name string
	// Sluice and Kernel are the median rates in Unit.
	Sluice, Kernel float64
	Unit           string
	// Goal is the least that Ratio should be; 0: none.
	Goal float64
}

// Ratio is Sluice's rate against the kernel's.
func (r Result) Ratio() float64 { return r.Sluice / r.Kernel }

// The goals for what is forwarded without Open vSwitch.
const (
	smallGoal  = 1.3
	streamGoal = 1.0
)

// Run makes the sites, measures, and removes them.
func Run(ctx context.Context, o Options) (out []Result, err error) {
	var sites [4]site
	for i, s := range []struct {
		name string
		make forwarder
		ovs  bool
	}{{"sluice", sluice(o.BPFFS), false}, {"kernel", plain, false}, {"sluice-ovs", sluice(o.BPFFS), true}, {"kernel-ovs", plain, true}} {
		sites[i].name = s.name
		defer func() { err = errors.Join(err, sites[i].down()) }()
		if err := sites[i].up(ctx, s.make, s.ovs); err != nil {
			return nil, fmt.Errorf("site %s: %w", s.name, err)
		}
	}
	bare, switched := pair{&sites[0], &sites[1]}, pair{&sites[2], &sites[3]}
	for _, d := range []direction{toOVN, toFabric} {
		for _, f := range families {
			r, err := o.small(ctx, bare, d, f)
			if err != nil {
				return out, fmt.Errorf("%s: %w", r.Name, err)
			}
			out = append(out, r)
		}
	}
	streams := func(p pair, kind string, goal float64, fs []family) error {
		for _, d := range []direction{toOVN, toFabric} {
			for _, f := range fs {
				r, err := o.stream(ctx, p, d, f, kind, goal)
				if err != nil {
					return fmt.Errorf("%s: %w", r.Name, err)
				}
				out = append(out, r)
			}
		}
		return nil
	}
	if err := streams(bare, "TCP", streamGoal, families); err != nil {
		return out, err
	}
	if err := streams(switched, "TCP with OVS (userspace)", 0, families[:1]); err != nil {
		return out, err
	}
	// From here on no sender leaves the cutting into packets to somebody behind the node.
	for _, s := range bare.sites() {
		if err := s.segments(ctx); err != nil {
			return out, err
		}
	}
	return out, streams(bare, "TCP in packets of 1500 bytes", streamGoal, families)
}

// segments makes both ends send packets that are no larger than the MTU.
func (s *site) segments(ctx context.Context) error {
	if err := s.fabric.run(ctx, "ethtool -K vx tso off gso off >/dev/null"); err != nil {
		return err
	}
	return s.host.run(ctx, "ethtool -K "+s.device+" tso off gso off >/dev/null")
}

// pair is the two sites of a comparison.
type pair struct{ sluice, kernel *site }

func (p pair) sites() []*site { return []*site{p.sluice, p.kernel} }

// small measures small packets a second.
func (o Options) small(ctx context.Context, p pair, d direction, f family) (r Result, err error) {
	r = Result{Name: fmt.Sprintf("64-byte UDP IPv%d %s", f.number, d), Goal: smallGoal, Unit: "Mpps"}
	var floods []*flood
	for _, s := range p.sites() {
		fl, err := newFlood(s, d, f)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, fl.close()) }()
		floods = append(floods, fl)
	}
	err = rounds(ctx, o.Rounds, &r, func(side int) (float64, error) {
		n, took, err := floods[side].send(o.Packets)
		if err == nil && n < uint64(o.Packets)*9/10 {
			err = fmt.Errorf("%d of %d packets arrived in %s", n, o.Packets, floods[side].site.name)
		}
		return float64(n) / took.Seconds() / 1e6, err
	})
	return r, err
}

// stream measures bits a second of one TCP connection.
func (o Options) stream(ctx context.Context, p pair, d direction, f family, kind string, goal float64) (r Result, err error) {
	r = Result{Name: fmt.Sprintf("%s IPv%d %s", kind, f.number, d), Goal: goal, Unit: "Gbit/s"}
	err = rounds(ctx, o.StreamRounds, &r, func(side int) (float64, error) {
		s := p.sites()[side]
		from, to, src, dst := s.fabric, s.host, f.far, f.near
		if d == toFabric {
			from, to, src, dst = to, from, dst, src
		}
		rate, err := stream(from, to, src, dst, o.Span)
		return rate / 1e9, err
	})
	return r, err
}

// rounds runs both sides in turns. Which is first changes, and the first round
// does not count.
func rounds(ctx context.Context, n int, r *Result, run func(side int) (float64, error)) error {
	var rates [2][]float64
	for i := range n + 1 {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, side := range []int{i % 2, 1 - i%2} {
			rate, err := run(side)
			if err != nil {
				return err
			}
			if i > 0 {
				rates[side] = append(rates[side], rate)
			}
		}
	}
	r.Sluice, r.Kernel = median(rates[0]), median(rates[1])
	return nil
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
