package bgp

import (
	"context"
	"net/netip"
	"sync"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// ImportUpdate is a change of the import tables. The first one that a watcher
// gets holds all of both tables.
type ImportUpdate struct {
	// Upserts are of kind RouteRemote.
	Upserts []intent.Route
	Deletes []intent.RouteKey
	// VTEPs and GoneVTEPs change the set of accepted outer sources. An endpoint
	// comes with or before its first route, and goes a while after its last.
	VTEPs     []intent.VTEP
	GoneVTEPs []netip.Addr
	// InSync: the tables are complete, so what is not in them may be deleted.
	InSync bool
}

// feed is what one watcher has not been told yet: keys only, so that its size
// is bounded by the tables and repeated changes merge.
type feed struct {
	routes set[intent.RouteKey]
	vteps  set[netip.Addr]
	inSync bool // as last told
	first  bool
	wake   loop.Signal
}

// imports joins the rib with its watchers.
type imports struct {
	mu     sync.Mutex
	rib    *rib
	feeds  set[*feed]
	inSync bool
	// ended: this node ends its sessions, and what they bring is not taken any more.
	ended bool
	// events counts what may have changed the Status.
	events uint64
}

// publish tells the watchers of changed rows. The caller holds mu.
func (i *imports) publish(keys []intent.RouteKey, vteps []netip.Addr) {
	for f := range i.feeds {
		for _, k := range keys {
			f.routes[k] = struct{}{}
		}
		for _, a := range vteps {
			f.vteps[a] = struct{}{}
		}
		f.wake.Send()
	}
}

// watch calls fn from this goroutine until ctx ends.
func (i *imports) watch(ctx context.Context, fn func(ImportUpdate)) error {
	f := &feed{routes: set[intent.RouteKey]{}, vteps: set[netip.Addr]{}, wake: loop.NewSignal(), first: true}
	i.mu.Lock()
	for vni, vrf := range i.rib.routes {
		for p := range vrf {
			f.routes[intent.RouteKey{VNI: vni, Prefix: p}] = struct{}{}
		}
	}
	for a := range i.rib.vteps {
		f.vteps[a] = struct{}{}
	}
	i.feeds[f] = struct{}{}
	i.mu.Unlock()
	f.wake.Send()
	defer func() {
		i.mu.Lock()
		delete(i.feeds, f)
		i.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.wake:
			if u, ok := i.take(f); ok {
				fn(u)
			}
		}
	}
}

// take reads the present value of everything that the feed has marked.
func (i *imports) take(f *feed) (ImportUpdate, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	u := ImportUpdate{InSync: i.inSync}
	if len(f.routes) == 0 && len(f.vteps) == 0 && f.inSync == i.inSync && !f.first {
		return u, false
	}
	for k := range f.routes {
		if hops, ok := i.rib.routes[k.VNI][k.Prefix]; ok {
			u.Upserts = append(u.Upserts, intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: hops})
		} else {
			u.Deletes = append(u.Deletes, k)
		}
	}
	for a := range f.vteps {
		if _, ok := i.rib.vteps[a]; ok {
			u.VTEPs = append(u.VTEPs, intent.VTEP{Addr: a})
		} else {
			u.GoneVTEPs = append(u.GoneVTEPs, a)
		}
	}
	clear(f.routes)
	clear(f.vteps)
	f.inSync, f.first = i.inSync, false
	return u, true
}
