package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/bench/measure"
)

// Config says what to measure.
type Config struct {
	// Program is sluice-controller.
	Program string
	// Balancers are numbers of load balancers in the database, the largest last.
	Balancers []int
	// Stories of load balancers are timed, of one caller and of several together.
	Stories int
	// Lists of all load balancers are timed.
	Lists int
	// Settle is how long processes rest before their memory is read.
	Settle time.Duration
	Out    io.Writer
}

const (
	// callGoal and listGoal are in milliseconds.
	callGoal = 50
	listGoal = 100
	// mostCallers are several callers.
	mostCallers = 8
	// perTenant are the load balancers of one network, unless all are in one. Each network has ports
	// of so many vms.
	perTenant = 10
	vms       = 100
	// mostNetworks: their numbers are a byte of their addresses.
	mostNetworks = 256
)

// bench is a cloud and what was measured in it.
type bench struct {
	Config
	*cloud
	// one: all load balancers are in one network, those of the callers too.
	one bool
	// own are the networks of the callers, free those of other tenants that have no load balancer yet.
	own, free []network
	// there are so many load balancers but the callers'.
	there   int
	results []measure.Result
}

// Run measures. The results until an error are returned with it.
func Run(ctx context.Context, cfg Config) (all []measure.Result, err error) {
	if n := cfg.networksNeeded(); n > mostNetworks {
		return nil, fmt.Errorf("%d load balancers need %d networks, of %d", cfg.Balancers, n, mostNetworks)
	}
	for _, one := range []bool{false, true} {
		b := &bench{Config: cfg, one: one}
		err := b.run(ctx)
		all = append(all, b.results...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func (b *bench) run(ctx context.Context) (err error) {
	b.cloud, err = begin(ctx, b.Program)
	defer func() { err = errors.Join(err, b.end()) }()
	if err != nil {
		return err
	}
	all, err := b.networks(ctx, b.networksNeeded(), vms)
	if err != nil {
		return err
	}
	b.own, b.free = all[:mostCallers:mostCallers], all[mostCallers:]
	if b.one {
		for i := range b.own {
			b.own[i] = b.own[0]
		}
	}
	if _, _, err := b.at(ctx, b.own[:1], 1, (*caller).story); err != nil { // what is made once is made
		return err
	}
	empty, err := b.memory(ctx)
	if err != nil {
		return err
	}
	for _, n := range b.Balancers {
		if b.one && n == 1 {
			continue // no other place than the tenants'
		}
		if err := b.fill(ctx, n); err != nil {
			return err
		}
		if err := b.calls(ctx); err != nil {
			return err
		}
	}
	if b.one {
		return nil
	}
	if err := b.lists(ctx); err != nil {
		return err
	}
	full, err := b.memory(ctx)
	if err != nil {
		return err
	}
	const mib = 1 << 20
	for i, process := range processes {
		b.add(measure.Result{
			Name: fmt.Sprintf("%s, memory of 1,000 load balancers", process), Value: float64(full[i]-empty[i]) / mib * 1000 / float64(b.there), Unit: "MiB",
			Note: fmt.Sprintf("%.1f MiB with %d, %.1f MiB without, resident", float64(full[i])/mib, b.there, float64(empty[i])/mib),
		})
	}
	return nil
}

// networksNeeded are those of the callers and of the other tenants: the last one of each number may have
// fewer load balancers.
func (c Config) networksNeeded() int {
	return mostCallers + c.Balancers[len(c.Balancers)-1]/perTenant + len(c.Balancers)
}

func (b *bench) add(r measure.Result) { b.results = append(b.results, r) }

// fill makes load balancers, of other tenants unless all are in one network, until so many are there.
func (b *bench) fill(ctx context.Context, n int) error {
	begun, before := time.Now(), b.there
	for b.there < n {
		callers, each := min(mostCallers, max(1, (n-b.there)/perTenant)), min(perTenant, n-b.there)
		networks := b.own[:callers]
		if !b.one {
			networks, b.free = b.free[:callers], b.free[callers:]
		}
		if _, _, err := b.at(ctx, networks, each, func(c *caller, ctx context.Context) error { _, err := c.balancer(ctx); return err }); err != nil {
			return err
		}
		b.there += callers * each
	}
	_, err := fmt.Fprintf(b.Out, "%d load balancers made in %.1f s\n", b.there-before, time.Since(begun).Seconds())
	return err
}

// calls measures the calls of stories, of one caller and of several.
func (b *bench) calls(ctx context.Context) error {
	for _, callers := range []int{1, mostCallers} {
		before, err := b.processor()
		if err != nil {
			return err
		}
		took, all, err := b.at(ctx, b.own[:callers], b.Stories/callers, (*caller).story)
		if err != nil {
			return err
		}
		after, err := b.processor()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d load balancers, %d at once, ", b.there, callers)
		if b.one {
			name = fmt.Sprintf("%d load balancers of one network, %d at once, ", b.there, callers)
		}
		note := fmt.Sprintf("%d calls", len(took))
		b.add(measure.Result{Name: name + "call p50", Value: measure.Quantile(took, 0.5), Unit: "ms", Note: note})
		b.add(measure.Result{Name: name + "call p99", Value: measure.Quantile(took, 0.99), Unit: "ms", Goal: measure.AtMost(callGoal), Note: note})
		b.add(measure.Result{Name: name + "calls", Value: float64(len(took)) / all.Seconds(), Unit: "1/s", Note: note})
		for i, process := range processes {
			b.add(measure.Result{Name: name + process + ", CPU of a call", Value: measure.Milliseconds(after[i]-before[i]) / float64(len(took)), Unit: "ms", Note: note})
		}
	}
	return nil
}

// lists measures a list of all load balancers.
func (b *bench) lists(ctx context.Context) error {
	var took []time.Duration
	before, err := b.processor()
	if err != nil {
		return err
	}
	for range b.Lists {
		var list struct{ LoadBalancers []struct{ ID string } }
		begun := time.Now()
		if err := b.call(ctx, http.MethodGet, "/v2.0/lbaas/loadbalancers", "", &list); err != nil {
			return err
		}
		took = append(took, time.Since(begun))
		if len(list.LoadBalancers) != b.there {
			return fmt.Errorf("%d load balancers are listed, of %d", len(list.LoadBalancers), b.there)
		}
	}
	after, err := b.processor()
	if err != nil {
		return err
	}
	b.add(measure.Result{
		Name: fmt.Sprintf("list of %d load balancers", b.there), Value: measure.Quantile(took, 0.5), Unit: "ms", Goal: measure.AtMost(listGoal),
		Note: fmt.Sprintf("median of %d; p99 %.1f ms; %.0f ms of the controller's processor time", len(took), measure.Quantile(took, 0.99),
			measure.Milliseconds(after[0]-before[0])/float64(len(took))),
	})
	return nil
}

// processes are those that are looked at.
var processes = [...]string{"controller", "ovsdb-server"}

func (b *bench) pids() [len(processes)]int {
	return [...]int{b.controller.Pid(), b.database.Process.Pid}
}

// processor is what the processes have used.
func (b *bench) processor() (used [len(processes)]time.Duration, err error) {
	for i, pid := range b.pids() {
		if used[i], err = daemons.ProcessorOf(pid); err != nil {
			return used, err
		}
	}
	return used, nil
}

// memory is what they have resident, in bytes: the least of some readings.
func (b *bench) memory(ctx context.Context) (least [len(processes)]int64, err error) {
	const readings = 5
	for i := range readings {
		select {
		case <-ctx.Done():
			return least, context.Cause(ctx)
		case <-time.After(b.Settle / readings):
		}
		for p, pid := range b.pids() {
			resident, err := daemons.Resident(pid)
			if err != nil {
				return least, err
			}
			if i == 0 || resident < least[p] {
				least[p] = resident
			}
		}
	}
	return least, nil
}
