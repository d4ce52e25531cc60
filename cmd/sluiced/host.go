package main

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
	"github.com/ovn-sluice/sluice/pkg/netns"
)

const (
	// hostPause is between two looks at links and addresses: they change together.
	hostPause = 100 * time.Millisecond
	// hostRetry follows a look that failed.
	hostRetry = time.Second
)

// hostFacts are the links and addresses of the node.
type hostFacts struct {
	links     []link.Link
	addresses []link.Address
}

func readHost() (h hostFacts, err error) {
	h.links, h.addresses, err = link.New(netns.Namespace{}).Host().Read(true)
	return h, err
}

// watchHost follows the links and addresses of the node. It tells the follower which addresses
// the node has on which device, since who has one on a provider bridge is a neighbour there,
// and the node at work what its sessions, routes and VTEP rest on.
func (d *daemon) watchHost(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	var linksChanged atomic.Bool // a node has hundreds of links: a change of an address has none of them read
	group.Go(func() error { return kernel.WatchAddresses(ctx, netns.Namespace{}, d.lookAtHost) })
	group.Go(func() error {
		return kernel.WatchLinks(ctx, netns.Namespace{}, func() { linksChanged.Store(true); d.lookAtHost() })
	})
	group.Go(func() error {
		read := link.New(netns.Namespace{}).Host()
		var retry <-chan time.Time
		var told ovn.HostAddresses
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-d.hostLooks:
			case <-retry:
			}
			retry = nil
			var host hostFacts
			var err error
			if host.links, host.addresses, err = read.Read(linksChanged.Swap(false)); err != nil {
				linksChanged.Store(true)
				d.log.Warn("the links and addresses of the node cannot be read", "error", err)
				retry = time.After(hostRetry)
				continue
			}
			d.mu.Lock()
			n := d.node
			d.mu.Unlock()
			if n != nil {
				n.hostChanged(host)
			}
			if now := hostAddresses(host.addresses); told == nil || !maps.EqualFunc(now, told, slices.Equal) {
				select {
				case <-ctx.Done():
					return nil
				case d.host <- now:
				}
				told = now
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

// lookAtHost has links and addresses read soon.
func (d *daemon) lookAtHost() {
	select {
	case d.hostLooks <- struct{}{}:
	default:
	}
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

// hostChanged takes the node's links and addresses.
func (n *node) hostChanged(h hostFacts) {
	n.speaker.LinksChanged(resolveLinks(h.links))
	n.underlay.look()
	n.lookAtVTEP(h)
	select {
	case n.hosts <- struct{}{}:
	default:
	}
}
