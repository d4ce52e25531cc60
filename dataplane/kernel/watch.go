package kernel

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// watchPause is between a lost subscription and the next.
const watchPause = time.Second

// Watch calls changed when a link of Sluice's names may have changed, until ctx
// ends. Links change together: several may be one call.
func Watch(ctx context.Context, ns netns.Namespace, changed func()) error {
	for ctx.Err() == nil {
		// The kernel drops what is not read in time and ends the subscription;
		// what happened meanwhile is not known.
		if err := subscription(ctx, ns, changed); err != nil {
			return err
		}
		changed()
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
	return nil
}

func subscription(ctx context.Context, ns netns.Namespace, changed func()) error {
	updates, done := make(chan netlink.LinkUpdate, 64), make(chan struct{})
	err := ns.Do(func() error {
		return netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{ErrorCallback: func(error) {}})
	})
	if err != nil {
		close(done)
		return fmt.Errorf("following links: %w", err)
	}
	defer func() {
		close(done)
		for range updates { // closed by the reader's end
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case u, ok := <-updates:
			if !ok {
				return nil
			}
			if strings.HasPrefix(u.Attrs().Name, "sluice") {
				changed()
			}
		}
	}
}
