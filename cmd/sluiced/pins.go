package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

const (
	// pinReports is the source of what is reported of pins.
	pinReports = "pins"
	// pinLook is how often the pins are looked at without an event, or after a failure: what is
	// mounted while a part of the daemon starts is told when nobody keeps its pins yet.
	pinLook = 5 * time.Second
)

// watchPins has the pins made again when their bpffs is unmounted, or another file system is
// mounted over it. Nothing that forwards changes meanwhile.
func (d *daemon) watchPins(ctx context.Context) error {
	mounts := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return kernel.WatchMounts(ctx, func() {
			select {
			case mounts <- struct{}{}:
			default:
			}
		})
	})
	group.Go(func() error {
		tick := time.NewTicker(pinLook)
		defer tick.Stop()
		for {
			d.reg.Reporter(pinReports).Replace(d.keepPins())
			select {
			case <-ctx.Done():
				return nil
			case <-mounts:
			case <-tick.C:
			}
		}
	})
	return group.Wait()
}

// keepPins looks at each directory of pins, and tells those whose pins cannot be made again.
func (d *daemon) keepPins() (lost []status.Object) {
	d.mu.Lock()
	kept := map[string]interface{ KeepPins() error }{}
	pins := d.cfg.Dataplane.BPFFS
	if d.node != nil {
		kept[pins] = d.node.dp
	}
	d.mu.Unlock()
	if r := d.balancing.Running(); r != nil {
		kept[owned.ClientPins(pins)] = r.Dataplane
	}
	if r := d.metadata.Running(); r != nil {
		kept[owned.MetadataPins(pins)] = r.Taps
	}
	for dir, k := range kept {
		if err := k.KeepPins(); err != nil {
			lost = append(lost, status.Object{Kind: "pins", Key: dir, State: status.Error, Reason: reason.PinsLost, Error: err.Error()})
		}
	}
	return lost
}
