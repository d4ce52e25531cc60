package main

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

const (
	// hostPause is between two looks at the addresses: they change together.
	hostPause = 100 * time.Millisecond
	// hostRetry follows a look that failed.
	hostRetry = time.Second
)

// watchHost tells the follower which addresses the node itself has on which
// device: who has one on a provider bridge is a neighbour there.
func (d *daemon) watchHost(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return kernel.WatchAddresses(ctx, netns.Namespace{}, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	group.Go(func() error {
		var retry <-chan time.Time
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			case <-retry:
			}
			retry = nil
			addresses, err := link.New(netns.Namespace{}).Addresses()
			if err != nil {
				d.log.Warn("the addresses of the node cannot be read", "error", err)
				retry = time.After(hostRetry)
				continue
			}
			select {
			case <-ctx.Done():
				return nil
			case d.host <- hostAddresses(addresses):
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(hostPause):
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
