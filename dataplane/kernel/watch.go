package kernel

import (
	"context"
	"fmt"
	"slices"
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
	return watchLinks(ctx, ns, maySluices, changed)
}

// maySluices tells whether a device may be Sluice's by its name.
func maySluices(name string) bool {
	if strings.HasPrefix(name, "sluice") {
		return true
	}
	return slices.ContainsFunc([]string{"vrf-", "br-", "vx-", "vxlan-", "lo-", "sv", "so"}, func(prefix string) bool {
		vni, ok := strings.CutPrefix(name, prefix)
		return ok && vni != "" && vni[0] >= '0' && vni[0] <= '9'
	})
}

// WatchLinks is Watch for links of any name: their addresses, too, go with them.
func WatchLinks(ctx context.Context, ns netns.Namespace, changed func()) error {
	return watchLinks(ctx, ns, func(string) bool { return true }, changed)
}

// WatchNamed is Watch for links of the names that of is true for. It is called from
// another goroutine.
func WatchNamed(ctx context.Context, ns netns.Namespace, of func(name string) bool, changed func()) error {
	return watchLinks(ctx, ns, of, changed)
}

func watchLinks(ctx context.Context, ns netns.Namespace, of func(string) bool, changed func()) error {
	for ctx.Err() == nil {
		// The kernel drops what is not read in time and ends the subscription;
		// what happened meanwhile is not known.
		if err := subscription(ctx, ns, of, changed); err != nil {
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

func subscription(ctx context.Context, ns netns.Namespace, of func(string) bool, changed func()) error {
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
			if of(u.Attrs().Name) {
				changed()
			}
		}
	}
}
