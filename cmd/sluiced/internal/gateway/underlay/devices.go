package underlay

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// devicesLook is how often the routes to the neighbours are looked at without an event:
// routes make none.
const devicesLook = 10 * time.Second

// WatchDevices keeps the devices up to date where packets for the default VRF come in:
// those of the configuration, else those of the routes to the neighbours. pinned lists those of an
// earlier start.
func WatchDevices(ctx context.Context, c *config.Config, pinned reconcile.Lister[string, intent.UnderlayDevice], t *tables.Tables, reg *status.Registry, log *slog.Logger) error {
	rows := tables.Of(t, intent.UnderlayDevices)
	if !c.Exposure.Used() {
		// What an earlier start put there goes.
		t.Pipeline.Update(func() { rows.Set(nil) })
		return nil
	}
	looks := loop.NewSignal()
	defer reg.Reporter(deviceReports).Replace(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.WatchLinks(ctx, netns.Namespace{}, looks.Send) })
	group.Go(func() error {
		// Those of an earlier start, until their routes are found again.
		pinned, err := pinned.List(ctx)
		if err != nil {
			return fmt.Errorf("devices of the underlay: %w", err)
		}
		left := map[string]intent.UnderlayDevice{}
		for name := range pinned {
			left[name] = intent.UnderlayDevice{Name: name}
		}
		last := newLastRoutes(c, log, left)
		return loop.Every(ctx, devicesLook, looks, func() {
			devices := last.devices()
			reg.Reporter(deviceReports).Replace(lackingDevices(devices, last.lost))
			t.Pipeline.Update(func() {
				rows.Set(devices)
				rows.Relist() // the kernel detaches programs from a device that goes
			})
		})
	})
	return group.Wait()
}

// Devices are those where packets for the default VRF come in, without regard to an earlier start.
func Devices(c *config.Config, log *slog.Logger) map[string]intent.UnderlayDevice {
	return newLastRoutes(c, log, nil).devices()
}
