package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// watchPause is between a lost subscription and the next.
const watchPause = time.Second

// Watch calls changed when a link of Sluice's names may have changed, until ctx
// ends, and at first. Links change together: several may be one call.
func Watch(ctx context.Context, ns netns.Namespace, changed func()) error {
	return WatchNamed(ctx, ns, maySluices, changed)
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

// WatchLinks is Watch for links of any name, but tells only what changes attributes of theirs:
// their addresses, too, go with them.
func WatchLinks(ctx context.Context, ns netns.Namespace, changed func()) error {
	return watchLinks(ctx, ns, newLooked, changed)
}

// newLooked tells which updates of a subscription change attributes. The next subscription has
// another one: a link may have changed while updates were dropped.
func newLooked() func(netlink.LinkUpdate) bool {
	known := map[int]attributes{}
	return func(u netlink.LinkUpdate) bool {
		index := u.Attrs().Index
		switch {
		case u.IfInfomsg.Family == unix.AF_BRIDGE: // of a port as its bridge has it
			return false
		case u.Header.Type == unix.RTM_DELLINK:
			delete(known, index)
			return true
		}
		now := attributesOf(u.Link)
		was, seen := known[index]
		known[index] = now
		return !seen || now != was
	}
}

// attributes are those that anybody looks at who follows links of any name.
type attributes struct {
	name, kind                     string
	flags                          uint32
	mtu, master, parent, namespace int
}

func attributesOf(l netlink.Link) attributes {
	a := l.Attrs()
	return attributes{
		name: a.Name, kind: l.Type(), flags: a.RawFlags & (unix.IFF_UP | unix.IFF_RUNNING | unix.IFF_LOWER_UP | unix.IFF_LOOPBACK),
		mtu: a.MTU, master: a.MasterIndex, parent: a.ParentIndex, namespace: a.NetNsID,
	}
}

// WatchNamed is Watch for links of the names that of is true for. It is called from
// another goroutine.
func WatchNamed(ctx context.Context, ns netns.Namespace, of func(name string) bool, changed func()) error {
	named := func(u netlink.LinkUpdate) bool { return of(u.Attrs().Name) }
	return watchLinks(ctx, ns, func() func(netlink.LinkUpdate) bool { return named }, changed)
}

// watchLinks has of begin with each subscription.
func watchLinks(ctx context.Context, ns netns.Namespace, of func() func(netlink.LinkUpdate) bool, changed func()) error {
	for ctx.Err() == nil {
		// The kernel drops what is not read in time and ends the subscription;
		// what happens until the next one is not known.
		if err := subscription(ctx, ns, of(), changed); err != nil {
			return err
		}
		loop.Sleep(ctx, watchPause)
	}
	return nil
}

func subscription(ctx context.Context, ns netns.Namespace, of func(netlink.LinkUpdate) bool, changed func()) error {
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
	changed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case u, ok := <-updates:
			if !ok {
				return nil
			}
			if of(u) {
				changed()
			}
		}
	}
}
