package dryrun

import (
	"context"
	"fmt"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/balancing"
	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// planBalancing lists the changes of what is balanced on taps, in the order of a start.
func (d dryRun) planBalancing(ctx context.Context) ([]status.Change, error) {
	if !d.Balancing.Used() {
		things, err := owned.Clients(owned.ClientPins(d.Config.Dataplane.BPFFS))
		return leftovers(things), err
	}
	there, err := d.Balancing.Inspect()
	if err != nil {
		return nil, err
	}
	defer func() { _ = there.Close() }()
	out, err := there.Changes()
	if err != nil {
		return nil, err
	}
	t := tables.NewClients(balancing.Drivers(reconcile.ReadOnly(there.VIPs()), reconcile.ReadOnly(there.Neighbors()), reconcile.ReadOnly(there.VMs())),
		d.Steps.AllInSync, tables.Options{Status: d.Reg, Log: d.Log, Dry: true})
	(&balancing.Running{Tables: t}).Want(d.Balancing.Wanted())
	changes, err := t.Pipeline.Compare(ctx)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		out = append(out, tables.ChangeOf(change))
	}
	for _, m := range d.Balancing.VMs() {
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
