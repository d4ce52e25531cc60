package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/ovn-sluice/sluice/test/bench/balancing"
	"github.com/ovn-sluice/sluice/test/bench/health"
	"github.com/ovn-sluice/sluice/test/lab"
)

// balancingOptions are the sizes of the parts balancing and health.
type balancingOptions struct {
	rounds, connections int
	kernelDatapath      bool
	vips                int
}

func (b *balancingOptions) flags() {
	flag.IntVar(&b.rounds, "balancing-rounds", 41, "rounds of connections to VIPs, and to backends themselves")
	flag.IntVar(&b.connections, "connections", 256, "connections of such a round")
	flag.BoolVar(&b.kernelDatapath, "kernel-datapath", false, "have them go by Open vSwitch's kernel datapath")
	flag.IntVar(&b.vips, "vips", 1000, "VIPs while the health of backends changes")
}

// measureBalancing measures connections to VIPs from end to end.
func (o options) measureBalancing(ctx context.Context, out io.Writer, rep *report) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	results, err := balancing.Run(ctx, balancing.Config{
		Sluiced: o.sluiced, LabName: o.labName, KernelDatapath: o.balancing.kernelDatapath, Generator: []string{self, "-load"},
		Clients: 16, Connections: o.balancing.connections, Alone: 25, Rounds: o.balancing.rounds, Limit: 3 * lab.Patience(), Out: out,
	})
	rep.all(results)
	return err
}

// health measures the way of a change of a backend's health to the table of its VIP.
func (o options) health(ctx context.Context, out io.Writer, rep *report) error {
	results, err := health.Run(ctx, health.Config{Sluiced: o.sluiced, LabName: o.labName, VIPs: o.balancing.vips, Changes: o.changes, Out: out})
	rep.all(results)
	return err
}
