// Package dryrun finds out what a daemon that started now would change on this node, and changes
// nothing: it takes no lock and opens no socket and no BGP session, and all that it has of the data
// plane only reads.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/following"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/vrfindex"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// dryRun is one at work.
type dryRun struct {
	*following.Following
	version string
}

// Run makes the plan. What it waits for is said in notes.
func Run(ctx context.Context, cfg *config.Config, version string, notes io.Writer) (status.Plan, error) {
	if err := preflight(cfg); err != nil {
		return status.Plan{}, err
	}
	d, err := newDryRun(cfg, version)
	if err != nil {
		return status.Plan{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var p status.Plan
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return loop.IgnoreEnd(d.Role.WatchHost(ctx)) })
	group.Go(func() error { return loop.IgnoreEnd(d.Follower.Run(ctx)) })
	group.Go(func() error { return d.Taps.Run(ctx) })
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

func newDryRun(cfg *config.Config, version string) (dryRun, error) {
	refuse := func(context.Context, ...ovsdb.Operation) ([]ovsdb.Result, error) { return nil, reconcile.ErrReadOnly }
	f, err := following.New(cfg, slog.New(slog.DiscardHandler), following.With{Version: version, Indices: vrfindex.Peek, Transact: refuse})
	return dryRun{f, version}, err
}

func (d dryRun) plan(ctx context.Context) (status.Plan, error) {
	p, err := d.planRole(ctx)
	changes, metadataErr := d.planMetadata(ctx)
	p.Changes = append(p.Changes, changes...)
	if metadataErr != nil {
		err = errors.Join(err, fmt.Errorf("metadata: %w", metadataErr))
	}
	changes, tapsErr := d.planBalancing(ctx)
	p.Changes = append(p.Changes, changes...)
	if tapsErr != nil {
		err = errors.Join(err, fmt.Errorf("balancing on taps: %w", tapsErr))
	}
	return p, err
}

// planRole is what the node is a gateway for, or was.
func (d dryRun) planRole(ctx context.Context) (status.Plan, error) {
	facts := d.Role.Facts()
	p := status.Plan{Version: d.version, Identity: facts.Identity(), Changes: []status.Change{}, Problems: d.Reg.Problems()}
	if !facts.Gateway {
		things, err := owned.List(ctx, d.Switch, d.Config.Dataplane.BPFFS)
		p.Changes = append(p.Changes, leftovers(things)...)
		return p, err
	}
	g, err := gateway.New(gateway.Config{File: d.Config, Facts: facts, Sizes: d.Sizes, IndexKept: d.Indices.Kept, Rows: d.Follower}, d.Steps, d.Switch, d.Reg, d.Log)
	if err != nil {
		return p, err
	}
	d.Switch.SetIntegration(facts.Integration)
	if _, err := settings.BGP(d.Config, g.Identity(), false); err != nil {
		return p, err
	}
	p.Identity, p.UnderlayMTU = g.Status(facts), g.MTU()
	n := node{Gateway: g, cfg: d.Config, reg: d.Reg, log: d.Log}
	return p, n.plan(ctx, &p)
}
