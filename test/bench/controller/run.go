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
	// perTenant are the load balancers of one network and router.
	perTenant = 10
)

// bench is a cloud and what was measured in it.
type bench struct {
	Config
	*cloud
	// own are the subnets of the callers; they are networks 0 and on.
	own []string
	// there are the load balancers of the other tenants.
	there   int
	results []measure.Result
}

// Run measures. The results until an error are returned with it.
func Run(ctx context.Context, cfg Config) (_ []measure.Result, err error) {
	b := &bench{Config: cfg}
	b.cloud, err = begin(ctx, cfg.Program)
	defer func() { err = errors.Join(err, b.end()) }()
	if err != nil {
		return nil, err
	}
	if b.own, err = b.networks(ctx, 0, mostCallers); err != nil {
		return nil, err
	}
	if _, _, err := b.at(ctx, b.own[:1], 0, 1, (*caller).story); err != nil { // what is made once is made
		return nil, err
	}
	empty, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range cfg.Balancers {
		if err := b.fill(ctx, n); err != nil {
			return b.results, err
		}
		if err := b.calls(ctx); err != nil {
			return b.results, err
		}
	}
	if err := b.lists(ctx); err != nil {
		return b.results, err
	}
	full, err := b.memory(ctx)
	if err != nil {
		return b.results, err
	}
	const mib = 1 << 20
	for i, process := range []string{"controller", "ovsdb-server"} {
		b.add(measure.Result{
			Name: fmt.Sprintf("%s, memory of 1,000 load balancers", process), Value: float64(full[i]-empty[i]) / mib * 1000 / float64(b.there), Unit: "MiB",
			Note: fmt.Sprintf("%.1f MiB with %d, %.1f MiB without, resident", float64(full[i])/mib, b.there, float64(empty[i])/mib),
		})
	}
	return b.results, nil
}

func (b *bench) add(r measure.Result) { b.results = append(b.results, r) }

// fill makes load balancers of other tenants until so many are there.
func (b *bench) fill(ctx context.Context, n int) error {
	begun, before := time.Now(), b.there
	for b.there < n {
		tenants := min(mostCallers, max(1, (n-b.there)/perTenant))
		first := mostCallers + b.there
		subnets, err := b.networks(ctx, first, tenants)
		if err != nil {
			return err
		}
		each := min(perTenant, n-b.there)
		if _, _, err := b.at(ctx, subnets, first, each, func(c *caller, ctx context.Context) error { _, err := c.balancer(ctx); return err }); err != nil {
			return err
		}
		b.there += tenants * each
	}
	_, err := fmt.Fprintf(b.Out, "%d load balancers made in %.1f s\n", b.there-before, time.Since(begun).Seconds())
	return err
}

// calls measures the calls of stories, of one caller and of several.
func (b *bench) calls(ctx context.Context) error {
	for _, callers := range []int{1, mostCallers} {
		took, all, err := b.at(ctx, b.own[:callers], 0, b.Stories/callers, (*caller).story)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d load balancers, %d callers, ", b.there, callers)
		note := fmt.Sprintf("%d calls", len(took))
		b.add(measure.Result{Name: name + "call p50", Value: measure.Quantile(took, 0.5), Unit: "ms", Note: note})
		b.add(measure.Result{Name: name + "call p99", Value: measure.Quantile(took, 0.99), Unit: "ms", Goal: measure.AtMost(callGoal), Note: note})
		b.add(measure.Result{Name: name + "calls", Value: float64(len(took)) / all.Seconds(), Unit: "1/s", Note: note})
	}
	return nil
}

// lists measures a list of all load balancers.
func (b *bench) lists(ctx context.Context) error {
	var took []time.Duration
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
	b.add(measure.Result{
		Name: fmt.Sprintf("list of %d load balancers", b.there), Value: measure.Quantile(took, 0.5), Unit: "ms", Goal: measure.AtMost(listGoal),
		Note: fmt.Sprintf("median of %d; p99 %.1f ms", len(took), measure.Quantile(took, 0.99)),
	})
	return nil
}

// memory is what the controller and ovsdb-server have resident, in bytes: the least of some readings.
func (b *bench) memory(ctx context.Context) (least [2]int64, err error) {
	const readings = 5
	for i := range readings {
		select {
		case <-ctx.Done():
			return least, context.Cause(ctx)
		case <-time.After(b.Settle / readings):
		}
		for p, pid := range []int{b.controller.Pid(), b.database.Process.Pid} {
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
