package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/lab"
)

// Config says what to measure.
type Config struct {
	// Sluiced is the daemon's path; sluicectl is beside it.
	Sluiced string
	// LabName is the name of the lab.
	LabName string
	// VIPs are there, and so many Changes of a backend's health are timed, one after the
	// other, with every process running and on a node alone.
	VIPs, Changes int
	Out           io.Writer
}

// The clouds are A, whose node a1 is looked at, and B.
const (
	cloud = "a"
	node  = "a1"
)

// goal is how long a change may take, in milliseconds, on a node alone.
const goal = 50

// place is where changes are timed, and what else runs there.
type place struct{ name, condition string }

// bench is a lab and what was measured in it.
type bench struct {
	Config
	lab     *lab.Lab
	results []measure.Result
}

// Run measures. The results until an error are returned with it.
func Run(ctx context.Context, cfg Config) (_ []measure.Result, err error) {
	b := &bench{Config: cfg}
	if cfg.VIPs < 1 || cfg.VIPs > mostVIPs || cfg.Changes < 1 {
		return nil, fmt.Errorf("%d changes of %d VIPs: want 1 to %d VIPs", cfg.Changes, cfg.VIPs, mostVIPs)
	}
	defer func() {
		if b.lab != nil {
			err = errors.Join(err, b.lab.Down())
		}
	}()
	if err := b.up(ctx); err != nil {
		return nil, err
	}
	tables, err := b.tables(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll(tables)) }()
	if err := b.change(ctx, tables, place{"both clouds on one machine", "all processes of both clouds on this machine"}, nil); err != nil {
		return b.results, err
	}
	return b.results, b.alone(func() error {
		return b.change(ctx, tables, place{"a node alone", "ovn-northd, ovn-controller and the other nodes' sluiced stopped"}, measure.AtMost(goal))
	})
}

// up brings the lab up, with sluiced and all VIPs in the databases.
func (b *bench) up(ctx context.Context) (err error) {
	begin := time.Now()
	if b.lab, err = lab.Up(ctx, lab.LB(lab.EVPNParams{}), lab.Options{Name: b.LabName}); err != nil {
		return err
	}
	if err := b.lab.StartSluiceds(ctx, b.Sluiced, lab.BalancingConfig); err != nil {
		return err
	}
	if err := b.addVIPs(ctx); err != nil {
		return err
	}
	if _, err := b.lab.NB(ctx, cloud, "--wait=hv", "sync"); err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "lab with %d VIPs is up after %.1f s\n", b.VIPs, time.Since(begin).Seconds())
	return nil
}

// change times changes and makes results of them.
func (b *bench) change(ctx context.Context, tables []*table, where place, p99 *measure.Goal) error {
	all, err := b.lab.Processes()
	if err != nil {
		return err
	}
	// What was stopped, or was changed before, is still being worked on.
	if err := daemons.Settle(ctx, all); err != nil {
		return err
	}
	daemon, err := b.lab.Process(node, "sluiced")
	if err != nil {
		return err
	}
	before, err := daemons.Processor([]*lab.Process{daemon})
	if err != nil {
		return err
	}
	acknowledged, err := b.changes(ctx, tables)
	if err != nil {
		return err
	}
	after, err := daemons.Processor([]*lab.Process{daemon})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%d changes; for each the daemon worked %.0f ms in all; the database took %.1f ms before, 1 %% of them more than %.1f ms", b.Changes,
		measure.Milliseconds(after-before)/float64(b.Changes), measure.Quantile(acknowledged, 0.5), measure.Quantile(acknowledged, 0.99))
	for _, t := range tables {
		for _, q := range []struct {
			name string
			at   float64
			goal *measure.Goal
		}{{"p50", 0.5, nil}, {"p99", 0.99, p99}, {"max", 1, nil}} {
			b.results = append(b.results, measure.Result{
				Name: fmt.Sprintf("health to table of %s, %d VIPs, %s, %s", t.name, b.VIPs, where.name, q.name), Condition: where.condition, Value: measure.Quantile(t.took, q.at), Unit: "ms", Goal: q.goal, Note: note,
			})
		}
		t.took = nil
	}
	return nil
}

// alone does something while nothing but sluiced on the node and cloud A's databases work on
// what changes. The others are stopped, and go on after it.
func (b *bench) alone(do func() error) (err error) {
	list, err := b.lab.Processes()
	if err != nil {
		return err
	}
	for _, p := range list {
		if !p.Running() || !others(p) {
			continue
		}
		if err := p.Signal(unix.SIGSTOP); err != nil {
			return fmt.Errorf("stopping %s on %s: %w", p.Name, p.Node, err)
		}
		defer func() { err = errors.Join(err, p.Signal(unix.SIGCONT)) }()
	}
	return do()
}

// others are processes that work on a change, and are on other machines elsewhere or, as the
// node's ovn-controller, have nothing to do as long as those stand still.
func others(p *lab.Process) bool {
	return slices.Contains([]string{"northd", "controller"}, p.Name) || p.Name == "sluiced" && p.Node != node
}
