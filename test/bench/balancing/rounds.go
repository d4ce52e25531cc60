package balancing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/load"
)

// Ports of clients: each target has its own.
const (
	firstPort = 5_000
	portsEach = 15_000
)

// attempts is how often a target is asked at most until it answers.
const attempts = 500

// target is where connections of a machine go.
type target struct {
	name string
	// machine has the client, with the address from; next is its next port.
	machine string
	from    netip.Addr
	next    uint16
	to      []netip.AddrPort
	// path is what balances; empty: they are backends' own addresses. bare: those of the
	// tenant without load balancers.
	path string
	bare bool

	busy, alone load.Samples
	answers     map[string]int
	used        usage
	// made is the connections since eBPF had counted so many sessions.
	made    int
	counted uint64
	// tracked is the part of the connections that conntrack has.
	tracked float64
}

// targets are direct connections without load balancers, those beside load balancers, and both
// paths to a VIP.
func (b *bench) targets(from asking, v6 bool) ([]*target, error) {
	client, err := b.address(from.name, v6)
	if err != nil {
		return nil, err
	}
	at, err := b.addresses(v6)
	if err != nil {
		return nil, err
	}
	list := []*target{
		{name: "direct", machine: twin(from.name), to: servers(at), bare: true},
		{name: "beside", machine: from.name, to: servers(at)},
		{name: "sluice", machine: from.name, to: []netip.AddrPort{vip(from, pathEBPF, v6)}, path: pathEBPF},
		{name: "ct_lb", machine: from.name, to: []netip.AddrPort{vip(from, pathOVN, v6)}, path: pathOVN},
	}
	for i, t := range list {
		t.from, t.next, t.answers = client, uint16(firstPort+i*portsEach), map[string]int{}
	}
	return list, nil
}

// family measures the targets of a kind of client, in turns.
func (b *bench) family(ctx context.Context, from asking, v6 bool) error {
	list, err := b.targets(from, v6)
	if err != nil {
		return err
	}
	for _, t := range list {
		if err := b.await(ctx, from, t); err != nil {
			return err
		}
	}
	if err := b.warm(ctx, from, list); err != nil {
		return err
	}
	begin, made := time.Now(), 0
	// What comes after something else may find its traces: no target always does. The order is
	// the same in each run.
	order := rand.New(rand.NewPCG(1, 2))
	for made < b.Rounds && time.Since(begin) < b.Limit {
		for _, i := range order.Perm(len(list)) {
			if err := b.measure(ctx, list[i]); err != nil {
				return fmt.Errorf("%s, round %d: %w", list[i].name, made+1, err)
			}
		}
		made++
	}
	if made == 0 {
		return errors.New("no time for a round")
	}
	for _, t := range list {
		if err := b.verify(ctx, from, t, b.Alone); err != nil {
			return err
		}
	}
	b.compare(from, v6, list)
	return nil
}

// await waits until a target answers by its path.
func (b *bench) await(ctx context.Context, from asking, t *target) error {
	last := t.next + attempts
	if err := b.lab.WaitFor(ctx, t.name+" answers", func() error {
		if t.path != "" {
			if err := b.ready(ctx, from, t.path, t.to[0]); err != nil {
				return err
			}
		}
		if t.next == last {
			return errors.New("it does not, however often it is asked")
		}
		_, err := b.round(ctx, t, 1, 1)
		return err
	}); err != nil {
		return err
	}
	t.busy = load.Samples{}
	return nil
}

// warm makes a round to each target, by which neighbours are found and flows of Open vSwitch
// made, and proves each path by it.
func (b *bench) warm(ctx context.Context, from asking, list []*target) (err error) {
	for _, t := range list {
		if t.path != "" {
			if t.counted, err = b.sessions(ctx, from.node, t.to[0]); err != nil {
				return err
			}
		}
		t.made = 0
		if err := b.measure(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if err := b.verify(ctx, from, t, t.made); err != nil {
			return err
		}
		t.busy, t.alone, t.answers, t.used = load.Samples{}, load.Samples{}, map[string]int{}, usage{}
	}
	return nil
}

// measure makes a round of many clients, and one of a client alone.
func (b *bench) measure(ctx context.Context, t *target) error {
	before, err := b.usage()
	if err != nil {
		return err
	}
	out, err := b.round(ctx, t, b.Clients, b.Connections/b.Clients)
	if err != nil {
		return err
	}
	after, err := b.usage()
	if err != nil {
		return err
	}
	after.generator = before.generator + out.Processor
	t.used.add(after.minus(before))
	for name, n := range out.Answers {
		t.answers[name] += n
	}
	if out, err = b.ask(ctx, t, 1, b.Alone); err != nil {
		return err
	}
	t.alone.Took = append(t.alone.Took, out.Took...)
	return nil
}

// round is one that counts.
func (b *bench) round(ctx context.Context, t *target, clients, each int) (load.Outcome, error) {
	out, err := b.ask(ctx, t, clients, each)
	if err == nil {
		t.busy.Took, t.busy.PerSecond = append(t.busy.Took, out.Took...), append(t.busy.PerSecond, out.PerSecond...)
	}
	return out, err
}

// ask has the machine make requests.
func (b *bench) ask(ctx context.Context, t *target, clients, each int) (load.Outcome, error) {
	g, err := b.generator(ctx, t.machine)
	if err != nil {
		return load.Outcome{}, err
	}
	o := load.Order{To: t.to, From: netip.AddrPortFrom(t.from, t.next), Clients: clients, Each: each}
	t.next += uint16(clients * each)
	t.made += clients * each
	return g.Round(o)
}

// verify proves the path of all connections of a target by what eBPF has counted, and by
// conntrack that of the last ones: it forgets those that have ended.
func (b *bench) verify(ctx context.Context, from asking, t *target, last int) error {
	var counted uint64
	if t.path != "" {
		all, err := b.sessions(ctx, from.node, t.to[0])
		if err != nil {
			return err
		}
		counted = all - t.counted
	}
	has, err := b.trackedBy(ctx, from.node, t, last)
	if err != nil {
		return err
	}
	t.tracked = float64(has.all) / float64(last)
	return prove(t, counted, last, has)
}
