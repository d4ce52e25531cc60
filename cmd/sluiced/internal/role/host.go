package role

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

const (
	// hostPause is between two looks at links and addresses: they change together.
	hostPause = 100 * time.Millisecond
	// hostRetry follows a look that failed.
	hostRetry = time.Second
)

// Host are the addresses of the node, whenever they have changed: what ovn.Follower is told.
func (r *Role) Host() <-chan ovn.HostAddresses { return r.host }

// WatchHost follows the links and addresses of the node until ctx ends. It tells the follower which
// addresses the node has on which device, since who has one on a provider bridge is a neighbour
// there, and the gateway what its sessions, routes and VTEP rest on.
func (r *Role) WatchHost(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	var linksChanged atomic.Bool // a node has hundreds of links: a change of an address has none of them read
	group.Go(func() error { return kernel.WatchAddresses(ctx, netns.Namespace{}, r.hostLooks.Send) })
	group.Go(func() error {
		return kernel.WatchLinks(ctx, netns.Namespace{}, func() { linksChanged.Store(true); r.hostLooks.Send() })
	})
	group.Go(func() error {
		read := link.New(netns.Namespace{}).Host()
		var retry <-chan time.Time
		var told ovn.HostAddresses
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-r.hostLooks:
			case <-retry:
			}
			retry = nil
			links, addresses, err := read.Read(linksChanged.Swap(false))
			if err != nil {
				linksChanged.Store(true)
				r.log.Warn("the links and addresses of the node cannot be read", "error", err)
				retry = time.After(hostRetry)
				continue
			}
			if g, err := r.Running(); err == nil {
				g.HostChanged(links, addresses)
			}
			if now := hostAddresses(addresses); told == nil || !maps.EqualFunc(now, told, slices.Equal) {
				select {
				case <-ctx.Done():
					return nil
				case r.host <- now:
				}
				told = now
			}
			if !loop.Sleep(ctx, hostPause) {
				return nil
			}
		}
	})
	return group.Wait()
}

// hostAddresses leaves link-local addresses out: a device that is up has one, and
// no router has it as its next hop but by a list. An address on a VLAN of a bridge
// counts for the whole bridge.
func hostAddresses(list []link.Address) ovn.HostAddresses {
	out := ovn.HostAddresses{}
	add := func(device string, a netip.Addr) {
		if device != "" {
			out[device] = append(out[device], a)
		}
	}
	for _, a := range list {
		if a.Global {
			add(a.Link, a.Prefix.Addr())
			add(a.Below, a.Prefix.Addr())
		}
	}
	return out
}
