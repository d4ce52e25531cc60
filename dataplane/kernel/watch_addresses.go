package kernel

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// WatchAddresses calls changed when an address of any device may have changed,
// until ctx ends, and at first: several changes may be one call.
func WatchAddresses(ctx context.Context, ns netns.Namespace, changed func()) error {
	for ctx.Err() == nil {
		// As in Watch: what happened between two subscriptions is not known.
		if err := addressSubscription(ctx, ns, changed); err != nil {
			return err
		}
		loop.Sleep(ctx, watchPause)
	}
	return nil
}

func addressSubscription(ctx context.Context, ns netns.Namespace, changed func()) error {
	updates, done := make(chan netlink.AddrUpdate, 64), make(chan struct{})
	err := ns.Do(func() error {
		return netlink.AddrSubscribeWithOptions(updates, done, netlink.AddrSubscribeOptions{ErrorCallback: func(error) {}})
	})
	if err != nil {
		close(done)
		return fmt.Errorf("following addresses: %w", err)
	}
	defer func() {
		close(done)
		for range updates { // closed by the reader's end
		}
	}()
	changed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-updates:
			if !ok {
				return nil
			}
			changed()
		}
	}
}
