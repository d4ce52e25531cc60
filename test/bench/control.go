package main

import (
	"context"
	"flag"
	"io"

	"github.com/ovn-sluice/sluice/test/bench/control"
)

// controlOptions are the sizes of the part control.
type controlOptions struct {
	rounds, changes int
}

func (c *controlOptions) flags() {
	flag.IntVar(&c.rounds, "start-rounds", 10, "starts of each kind")
	flag.IntVar(&c.changes, "control-changes", 100, "ports bound, and VRFs that come")
}

// measureControl measures starts, an idle daemon, and the path of a change to the neighbour.
func (o options) measureControl(ctx context.Context, out io.Writer, rep *report) error {
	results, err := control.Run(ctx, control.Config{
		Sluiced: o.sluiced, LabName: o.labName, Rounds: o.control.rounds, Changes: o.control.changes, Idle: o.rest, Out: out,
	})
	rep.all(results)
	return err
}
