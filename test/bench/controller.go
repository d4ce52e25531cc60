package main

import (
	"context"
	"flag"
	"io"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/controller"
	"github.com/ovn-sluice/sluice/test/bench/daemons"
)

// controllerOptions are the sizes of the part controller.
type controllerOptions struct {
	balancers, stories, lists int
	settle                    time.Duration
}

func (c *controllerOptions) flags() {
	flag.IntVar(&c.balancers, "load-balancers", 1000, "load balancers in the database of a controller")
	flag.IntVar(&c.stories, "stories", 80, "load balancers to make and delete, by one caller and by several together")
	flag.IntVar(&c.lists, "lists", 50, "lists of all load balancers to time")
	flag.DurationVar(&c.settle, "controller-settle", 10*time.Second, "how long a controller rests before its memory is read")
}

// measureController measures calls of sluice-controller.
func (o options) measureController(ctx context.Context, out io.Writer, rep *report) error {
	program, err := daemons.Beside(o.sluiced, "sluice-controller")
	if err != nil {
		return err
	}
	results, err := controller.Run(ctx, controller.Config{
		Program: program, Balancers: []int{1, o.controller.balancers}, Stories: o.controller.stories, Lists: o.controller.lists,
		Settle: o.controller.settle, Out: out,
	})
	rep.all(results)
	return err
}
