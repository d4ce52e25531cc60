package health

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/loop"
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

// Keeper makes pins again that are gone.
type Keeper interface{ KeepPins() error }

// WatchPins has the pins made again when their bpffs is unmounted, or another file system is
// mounted over it, until ctx ends. Nothing that forwards changes meanwhile. keepers are those who
// have pins, by directory.
func WatchPins(ctx context.Context, reg *status.Registry, keepers func() map[string]Keeper) error {
	mounts := loop.NewSignal()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return kernel.WatchMounts(ctx, mounts.Send) })
	group.Go(func() error {
		return loop.Every(ctx, pinLook, mounts, func() { reg.Reporter(pinReports).Replace(keepPins(keepers())) })
	})
	return group.Wait()
}

// keepPins looks at each directory of pins, and tells those whose pins cannot be made again.
func keepPins(keepers map[string]Keeper) (lost []status.Object) {
	for dir, k := range keepers {
		if err := k.KeepPins(); err != nil {
			lost = append(lost, status.Object{Kind: "pins", Key: dir, State: status.Error, Reason: reason.PinsLost, Error: err.Error()})
		}
	}
	return lost
}
