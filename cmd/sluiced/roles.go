package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// runner is a node that was started.
type runner interface {
	// run returns the facts for the next one.
	run(ctx context.Context) (nodeFacts, error)
}

func (d *daemon) startRunner(ctx context.Context, facts nodeFacts) (runner, error) {
	return d.startNode(ctx, facts)
}

// runNodes keeps a node running for the latest facts, until ctx ends. A start that
// fails is tried again. A node that fails later ends the process: its BGP server
// would go on beside that of the next one. Forwarding is pinned, and whoever runs
// sluiced starts it again.
func (d *daemon) runNodes(ctx context.Context, start func(context.Context, nodeFacts) (runner, error)) error {
	var facts nodeFacts
	for ctx.Err() == nil {
		if !facts.gateway || facts.systemID == "" {
			if facts.systemID != "" {
				d.retire(ctx)
			}
			select {
			case <-ctx.Done():
			case facts = <-d.facts:
			case <-time.After(plane.Retry):
			}
			continue
		}
		n, err := start(ctx, facts)
		if err == nil {
			if facts, err = n.run(ctx); err != nil {
				return fmt.Errorf("gateway node: %w", err)
			}
			continue
		}
		if ctx.Err() != nil {
			break
		}
		d.reg.SetCondition("dataplane", false, reason.StartFailed, plane.StartFailed(err))
		select {
		case <-ctx.Done():
		case facts = <-d.facts:
		case <-time.After(plane.Retry):
		}
	}
	return nil
}

// retire removes what this node programmed while it was a gateway node: once OVN
// says for sure that it is none.
func (d *daemon) retire(ctx context.Context) {
	if !d.steps.OVNInSync() {
		return
	}
	things, err := owned.List(ctx, d.ovs, d.cfg.Dataplane.BPFFS)
	errs := []error{err}
	for _, t := range things {
		d.log.Info("no gateway port needs this node; removing", "object", t.What)
		errs = append(errs, t.Remove(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		d.reg.SetCondition("dataplane", false, reason.Leftovers, err.Error())
		return
	}
	d.reg.SetCondition("dataplane", true, reason.Idle, "no gateway port needs this node")
	d.reg.SetCondition("bgp", true, reason.Idle, "no gateway port needs this node")
}
