package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// waysLook is how often the ways to the neighbours are looked at without an event:
// routes make none.
const waysLook = 10 * time.Second

// watchWays keeps the devices up to date where packets for the default VRF come in:
// those of the configuration, else those of the ways to the neighbours.
func (n *node) watchWays(ctx context.Context) error {
	if !n.d.cfg.Exposure.Used() {
		// What an earlier start put there goes.
		n.tables.Pipeline.Update(func() { tables.Of(n.tables, intent.UnderlayDevices).Set(nil) })
		return nil
	}
	looks := make(chan struct{}, 1)
	look := func() {
		select {
		case looks <- struct{}{}:
		default:
		}
	}
	defer n.d.reg.Reporter(deviceReports).Replace(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.WatchLinks(ctx, netns.Namespace{}, look) })
	group.Go(func() error {
		tick := beat.New(waysLook)
		defer tick.Stop()
		// Those of an earlier start, until their ways are found again.
		pinned, err := n.dp.UnderlayDevices().List(ctx)
		if err != nil {
			return fmt.Errorf("devices of the underlay: %w", err)
		}
		left := map[string]intent.UnderlayDevice{}
		for name := range pinned {
			left[name] = intent.UnderlayDevice{Name: name}
		}
		ways := newUnderlayWays(n.d.cfg, n.d.log, left)
		for {
			devices := ways.devices()
			n.d.reg.Reporter(deviceReports).Replace(lackingDevices(devices, ways.lost))
			n.tables.Pipeline.Update(func() {
				tables.Of(n.tables, intent.UnderlayDevices).Set(devices)
				tables.Of(n.tables, intent.UnderlayDevices).Relist() // the kernel takes programs off a device that goes
			})
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			case <-looks:
			}
		}
	})
	return group.Wait()
}
