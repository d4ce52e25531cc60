package main

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/beat"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// fabricPart is the node's own part in the routed fabric: what it announces as
// plain unicast, and which learned routes it uses.
type fabricPart struct {
	tables *tables.Underlay
	config underlay.Config
	looks  chan struct{} // capacity 1: links have changed

	mu      sync.Mutex
	last    underlay.Result
	learned map[netip.Prefix]underlay.Learned
}

const (
	// underlayLook is how often the links are looked at without an event.
	underlayLook = 10 * time.Second
	// underlayPause lets the routes of one burst be one change.
	underlayPause = 10 * time.Millisecond
)

// newUnderlay makes the tables. Routes of an earlier start are taken up, or taken
// off if the node is to install none any more.
func (n *node) newUnderlay() {
	c := n.d.cfg.Underlay
	p := &fabricPart{looks: make(chan struct{}, 1), config: settings.Underlay(c, n.id.VTEP)}
	drivers := tables.Drivers{}
	tables.Drive(drivers, intent.UnderlayRoutes, kernel.NewUnderlayRoutes(netns.Namespace{}))
	tables.Drive(drivers, intent.UnderlayAnnouncements, n.speaker.UnicastAnnouncements())
	p.tables = tables.NewUnderlay(drivers, tables.UnderlaySources{
		BGP:    func() bool { return n.speaker.UnicastInSync() || !c.Install.Enabled },
		Fabric: n.fabricGate,
	}, tables.Options{Status: n.d.reg, Log: n.d.log})
	p.tables.Pipeline.Update(func() {
		tables.Of(p.tables, intent.UnderlayAnnouncements).Set(settings.UnderlayAnnouncements(c.Announce, n.id.VTEP))
	})
	n.underlay = p
}

// pipelines are those of the node, with that of the underlay where it has a part in
// it, or had one and something is left of it.
func (n *node) pipelines() []*reconcile.Pipeline {
	out := []*reconcile.Pipeline{n.tables.Pipeline}
	if t := n.underlay.tables; n.d.cfg.Underlay.Used() || tables.Of(t, intent.UnderlayRoutes).Stats().Actual > 0 || t.Pipeline.ListError(tables.Of(t, intent.UnderlayRoutes).Name()) != nil {
		out = append(out, n.underlay.tables.Pipeline)
	}
	return out
}

func (n *node) stages() (out []reconcile.Stage) {
	for _, p := range n.pipelines() {
		out = append(out, p.Stages()...)
	}
	return out
}

// stageHeld is why nothing of a table is removed; empty if it is.
func (n *node) stageHeld(s reconcile.Stage) string {
	if slices.Contains(n.underlay.tables.Pipeline.Stages(), s) {
		return n.underlay.tables.Held(s)
	}
	return n.tables.Held(s)
}

// runUnderlay follows what is learned and the links until ctx ends.
func (n *node) runUnderlay(ctx context.Context) error {
	p := n.underlay
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.tables.Pipeline.Run(ctx) })
	if !n.d.cfg.Underlay.Install.Enabled {
		p.tables.Pipeline.Update(func() { tables.Of(p.tables, intent.UnderlayRoutes).Set(nil) })
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
				n.resolveUnderlay(true)
			case <-p.looks:
				n.resolveUnderlay(true)
			case <-n.speaker.UnicastChanged():
				n.resolveUnderlay(false)
				time.Sleep(underlayPause)
			}
		}
	})
	return group.Wait()
}

func (p *fabricPart) look() {
	select {
	case p.looks <- struct{}{}:
	default:
	}
}

// resolveUnderlay decides anew which learned routes are used. When links have
// changed the kernel may have dropped some by itself: they are read back.
func (n *node) resolveUnderlay(links bool) {
	p := n.underlay
	facts, err := link.New(netns.Namespace{}).Links()
	if err != nil {
		n.d.log.Warn("the links cannot be read; routes of the underlay stay as they are", slog.Any("error", err))
		return
	}
	learned, _ := n.speaker.Unicast()
	r := underlay.Resolve(learned, resolveLinks(facts), p.config)
	p.mu.Lock()
	p.last, p.learned = r, make(map[netip.Prefix]underlay.Learned, len(learned))
	for _, l := range learned {
		p.learned[l.Prefix] = l
	}
	p.mu.Unlock()
	p.tables.Pipeline.Update(func() {
		tables.Of(p.tables, intent.UnderlayRoutes).Set(r.Rows)
		if links {
			tables.Of(p.tables, intent.UnderlayRoutes).Relist()
		}
	})
}

func resolveLinks(facts []link.Link) []underlay.Link {
	out := make([]underlay.Link, 0, len(facts))
	for _, l := range facts {
		out = append(out, underlay.Link{Name: l.Name, Index: l.Index, Carrier: l.Carrier, Loopback: l.Loopback, Prefixes: l.Prefixes})
	}
	return out
}
