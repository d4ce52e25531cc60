package main

import (
	"context"
	"fmt"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// told tells whether it is known what is to be balanced, and on which taps.
func (c *clientsPart) told() bool {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.stepped || !c.d.cfg.LoadBalancing.OnTaps()
}

// plan lists the changes of what is balanced on taps, in the order of a start.
func (c *clientsPart) plan(ctx context.Context) ([]status.Change, error) {
	pins := owned.ClientPins(c.d.cfg.Dataplane.BPFFS)
	if !c.d.cfg.LoadBalancing.OnTaps() {
		things, err := owned.Clients(pins)
		return leftovers(things), err
	}
	c.d.mu.Lock()
	all, machines := c.translator.Tables(), c.translator.Machines()
	c.d.mu.Unlock()
	there, err := ebpf.Inspect(c.ebpfConfig())
	if err != nil {
		return nil, err
	}
	defer func() { _ = there.Close() }()
	out, err := there.Changes()
	if err != nil {
		return nil, err
	}
	drivers := tables.Drivers{}
	tables.Drive(drivers, intent.ClientVIPs, reconcile.ReadOnly(there.VIPs()))
	tables.Drive(drivers, intent.ClientNeighbors, reconcile.ReadOnly(there.Neighbors()))
	tables.Drive(drivers, intent.Clients, reconcile.ReadOnly(there.Machines()))
	t := tables.NewClients(drivers, c.d.steps.AllInSync, tables.Options{Status: c.d.reg, Log: c.d.log, Dry: true})
	(&clientsAtWork{tables: t}).want(all)
	changes, err := t.Pipeline.Compare(ctx)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		out = append(out, tables.ChangeOf(change))
	}
	for _, m := range machines {
		if m.Tap == (intent.Tap{}) {
			continue
		}
		for _, p := range []ebpf.Program{ebpf.ClientOut, ebpf.ClientIn} {
			change, err := there.Attachment(p, m.Tap.Name, int(m.Tap.IfIndex))
			if err != nil {
				return nil, fmt.Errorf("tap of port %s: %w", m.Port, err)
			}
			if change != nil {
				out = append(out, *change)
			}
		}
	}
	return out, nil
}
