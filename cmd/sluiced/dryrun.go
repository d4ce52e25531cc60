package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/evpn/vrfindex"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// dryRun finds out what a daemon that started now would change on this node, and
// changes nothing: it takes no lock and opens no socket and no BGP session, and
// all that it has of the data plane only reads. What it waits for is said in notes.
func dryRun(ctx context.Context, cfg *config.Config, notes io.Writer) (status.Plan, error) {
	if err := preflight(cfg); err != nil {
		return status.Plan{}, err
	}
	refuse := func(context.Context, ...ovsdb.Operation) ([]ovsdb.Result, error) { return nil, reconcile.ErrReadOnly }
	d, err := newFollowing(cfg, slog.New(slog.DiscardHandler), following{indices: vrfindex.Peek, transact: refuse})
	if err != nil {
		return status.Plan{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var p status.Plan
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ignoreEnd(d.vswitch.Run(ctx)) })
	group.Go(func() error { return ignoreEnd(d.watchHost(ctx)) })
	group.Go(func() error { return ignoreEnd(d.follower.Run(ctx)) })
	group.Go(func() error { return d.taps.Run(ctx) })
	group.Go(func() error {
		defer cancel()
		if err := d.waitInSync(ctx, notes); err != nil {
			return err
		}
		var err error
		p, err = d.plan(ctx)
		return err
	})
	err = group.Wait()
	return p, err
}

func (d *daemon) plan(ctx context.Context) (status.Plan, error) {
	p, err := d.planRole(ctx)
	changes, metadataErr := d.planMetadata(ctx)
	p.Changes = append(p.Changes, changes...)
	if metadataErr != nil {
		err = errors.Join(err, fmt.Errorf("metadata: %w", metadataErr))
	}
	changes, clientsErr := d.planBalancing(ctx)
	p.Changes = append(p.Changes, changes...)
	if clientsErr != nil {
		err = errors.Join(err, fmt.Errorf("balancing on taps: %w", clientsErr))
	}
	return p, err
}

// planRole is what the node is a gateway for, or was.
func (d *daemon) planRole(ctx context.Context) (status.Plan, error) {
	d.mu.Lock()
	facts := d.latest
	d.mu.Unlock()
	p := status.Plan{Version: version, Identity: facts.identity(), Changes: []status.Change{}, Problems: d.reg.Problems()}
	if !facts.gateway {
		things, err := owned.List(ctx, d.ovs, d.cfg.Dataplane.BPFFS)
		p.Changes = append(p.Changes, leftovers(things)...)
		return p, err
	}
	n, err := d.newNode(facts)
	if err != nil {
		return p, err
	}
	d.ovs.SetIntegration(facts.integration)
	if _, err := settings.BGP(d.cfg, n.id, false); err != nil {
		return p, err
	}
	p.Identity, p.UnderlayMTU = n.identity(facts), n.mtu
	return p, n.plan(ctx, &p)
}
