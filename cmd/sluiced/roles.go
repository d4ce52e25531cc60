package main

import (
	"context"
	"errors"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/owned"
)

const startRetry = 5 * time.Second

// runNodes keeps a node running for the latest facts, until ctx ends.
func (d *daemon) runNodes(ctx context.Context) error {
	var facts nodeFacts
	for ctx.Err() == nil {
		if !facts.gateway || facts.systemID == "" {
			if facts.systemID != "" {
				d.retire(ctx)
			}
			select {
			case <-ctx.Done():
			case facts = <-d.facts:
			case <-time.After(startRetry):
			}
			continue
		}
		err := d.runNode(ctx, facts, &facts)
		if err != nil && ctx.Err() == nil {
			d.reg.SetCondition("dataplane", false, "start-failed", err.Error())
			select {
			case <-ctx.Done():
			case facts = <-d.facts:
			case <-time.After(startRetry):
			}
		}
	}
	return nil
}

// retire removes what this node programmed while it was a gateway node: once OVN
// says for sure that it is none.
func (d *daemon) retire(ctx context.Context) {
	if !d.ovnInSync() {
		return
	}
	things, err := owned.List(ctx, d.ovs, d.cfg.Dataplane.BPFFS)
	errs := []error{err}
	for _, t := range things {
		d.log.Info("no gateway port needs this node; removing", "object", t.What)
		errs = append(errs, t.Remove(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		d.reg.SetCondition("dataplane", false, "leftovers", err.Error())
		return
	}
	d.reg.SetCondition("dataplane", true, "idle", "no gateway port needs this node")
	d.reg.SetCondition("bgp", true, "idle", "no gateway port needs this node")
}
