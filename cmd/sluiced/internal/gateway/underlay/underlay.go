// Package underlay is the node's own part in the routed fabric: what it announces as plain unicast,
// which learned routes it uses, and the devices by which packets for exposed addresses come in.
package underlay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Node is the node as a member of the underlay.
type Node struct {
	tables  *tables.Underlay
	cfg     config.Underlay
	resolve underlay.Config
	speaker Unicast
	log     *slog.Logger
	looks   loop.Signal // links have changed

	mu      sync.Mutex
	last    underlay.Result
	learned map[netip.Prefix]underlay.Learned
}

// Unicast is BGP's plain unicast: bgp.GoBGP.
type Unicast interface {
	UnicastAnnouncements() reconcile.Driver[netip.Prefix, intent.UnderlayAnnouncement]
	UnicastInSync() bool
	UnicastChanged() <-chan struct{}
	Unicast() ([]underlay.Learned, bool)
}

const (
	// underlayLook is how often the links are looked at without an event.
	underlayLook = 10 * time.Second
	// underlayPause lets the routes of one burst be one change.
	underlayPause = 10 * time.Millisecond
)

// New makes the tables. Routes of an earlier start are taken up, or removed if the node is to
// install none any more. gate keeps the VTEP's announcement back.
func New(c config.Underlay, vtep netip.Addr, routes reconcile.Driver[netip.Prefix, intent.UnderlayRoute], speaker Unicast, gate func() error, reg *status.Registry, log *slog.Logger) *Node {
	u := &Node{cfg: c, resolve: settings.Underlay(c, vtep), speaker: speaker, log: log, looks: loop.NewSignal()}
	u.tables = tables.NewUnderlay(drivers(routes, speaker.UnicastAnnouncements()), tables.UnderlaySources{
		BGP: func() bool { return speaker.UnicastInSync() || !c.Install.Enabled }, Fabric: gate,
	}, tables.Options{Status: reg, Log: log})
	u.tables.Pipeline.Update(func() {
		tables.Of(u.tables, intent.UnderlayAnnouncements).Set(settings.UnderlayAnnouncements(c.Announce, vtep))
	})
	return u
}

func drivers(routes reconcile.Driver[netip.Prefix, intent.UnderlayRoute], announcements reconcile.Driver[netip.Prefix, intent.UnderlayAnnouncement]) tables.Drivers {
	d := tables.Drivers{}
	tables.Drive(d, intent.UnderlayRoutes, routes)
	tables.Drive(d, intent.UnderlayAnnouncements, announcements)
	return d
}

// Tables are those of the underlay.
func (u *Node) Tables() *tables.Underlay { return u.tables }

// Shown tells whether the node has a part in the underlay, or had one and something is left of it.
func (u *Node) Shown() bool {
	routes := tables.Of(u.tables, intent.UnderlayRoutes)
	return u.cfg.Used() || routes.Stats().Actual > 0 || u.tables.Pipeline.ListError(routes.Name()) != nil
}

// Settled tells whether BGP has all that is to be announced.
func (u *Node) Settled() bool { return tables.Of(u.tables, intent.UnderlayAnnouncements).Settled() }

// FabricChanged has the announcements looked at that the gate keeps back.
func (u *Node) FabricChanged() { u.tables.Pipeline.Update(u.tables.FabricChanged) }

// LinksChanged has the learned routes resolved anew soon.
func (u *Node) LinksChanged() { u.looks.Send() }

// Run follows what is learned and the links until ctx ends.
func (u *Node) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return u.tables.Pipeline.Run(ctx) })
	if !u.cfg.Install.Enabled {
		u.tables.Pipeline.Update(func() { tables.Of(u.tables, intent.UnderlayRoutes).Set(nil) })
		return group.Wait()
	}
	group.Go(func() error {
		tick := beat.New(underlayLook)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				u.resolveRoutes(true)
			case <-u.looks:
				u.resolveRoutes(true)
			case <-u.speaker.UnicastChanged():
				u.resolveRoutes(false)
				time.Sleep(underlayPause)
			}
		}
	})
	return group.Wait()
}

// resolveRoutes decides anew which learned routes are used. When links have
// changed the kernel may have dropped some by itself: they are read back.
func (u *Node) resolveRoutes(links bool) {
	facts, err := link.New(netns.Namespace{}).Links()
	if err != nil {
		u.log.Warn("the links cannot be read; routes of the underlay stay as they are", slog.Any("error", err))
		return
	}
	learned, _ := u.speaker.Unicast()
	r := underlay.Resolve(learned, Links(facts), u.resolve)
	u.mu.Lock()
	u.last, u.learned = r, make(map[netip.Prefix]underlay.Learned, len(learned))
	for _, l := range learned {
		u.learned[l.Prefix] = l
	}
	u.mu.Unlock()
	u.tables.Pipeline.Update(func() {
		tables.Of(u.tables, intent.UnderlayRoutes).Set(r.Rows)
		if links {
			tables.Of(u.tables, intent.UnderlayRoutes).Relist()
		}
	})
}

// Links are the links that routes may resolve over.
func Links(facts []link.Link) []underlay.Link {
	out := make([]underlay.Link, 0, len(facts))
	for _, l := range facts {
		out = append(out, underlay.Link{Name: l.Name, Index: l.Index, Carrier: l.Carrier, Loopback: l.Loopback, Prefixes: l.Prefixes})
	}
	return out
}

// Routes are those learned, installed or not, and those that an earlier start left.
func (u *Node) Routes() []status.UnderlayRoute {
	wanted, actual := tables.Of(u.tables, intent.UnderlayRoutes).Rows()
	u.mu.Lock()
	defer u.mu.Unlock()
	out := []status.UnderlayRoute{}
	for prefix, row := range wanted {
		r := status.UnderlayRoute{Prefix: prefix, State: status.UnderlayInstalled, Hops: row.Hops, Metric: row.Metric, Source: row.Source, Stale: u.learned[prefix].Stale}
		if ok, err := tables.Of(u.tables, intent.UnderlayRoutes).State(prefix); !ok && err != nil {
			r.State, r.Error = status.UnderlayError, err.Error()
			if errors.Is(err, reconcile.ErrNotReady) {
				r.State = status.UnderlayWaiting
			}
		}
		out = append(out, r)
	}
	for prefix, row := range actual {
		if _, ok := wanted[prefix]; !ok {
			out = append(out, status.UnderlayRoute{Prefix: prefix, State: status.UnderlayStale, Hops: row.Hops, Metric: row.Metric, Source: row.Source})
		}
	}
	for _, r := range u.last.Refused {
		out = append(out, status.UnderlayRoute{Prefix: r.Prefix, State: status.UnderlayRefused, Reason: r.Reason, Stale: u.learned[r.Prefix].Stale})
	}
	slices.SortFunc(out, func(a, b status.UnderlayRoute) int { return ComparePrefixes(a.Prefix, b.Prefix) })
	return out
}

// ComparePrefixes orders by address, then length.
func ComparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
