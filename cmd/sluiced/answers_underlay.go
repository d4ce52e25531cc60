package main

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	"errors"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// underlayStatus is the answer to "sluicectl underlay".
func (n *node) underlayStatus(ctx context.Context) (status.Underlay, error) {
	p := n.underlay
	sessions, err := n.speaker.Status(ctx)
	if err != nil {
		return status.Underlay{}, err
	}
	_, inSync := n.speaker.Unicast()
	out := status.Underlay{Install: n.d.cfg.Underlay.Install.Enabled, InSync: inSync, Announcements: []status.UnderlayAnnouncement{}, Routes: p.routes()}
	wanted, _ := tables.Of(p.tables, intent.UnderlayAnnouncements).Rows()
	for _, prefix := range slices.SortedFunc(maps.Keys(wanted), comparePrefixes) {
		a := status.UnderlayAnnouncement{Prefix: prefix, VTEP: wanted[prefix].VTEP}
		var err error
		if a.Announced, err = tables.Of(p.tables, intent.UnderlayAnnouncements).State(prefix); err != nil {
			a.Error = err.Error()
		}
		if family := familyOf(intent.DefaultVRF, prefix); a.Announced && !sessions.Carries(family) {
			a.Announced, a.Error = false, "no neighbour with a session takes routes of family "+family.String()
		}
		out.Announcements = append(out.Announcements, a)
	}
	return out, nil
}

// routes are those learned, installed or not, and those that an earlier start left.
func (p *fabricPart) routes() []status.UnderlayRoute {
	wanted, actual := tables.Of(p.tables, intent.UnderlayRoutes).Rows()
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []status.UnderlayRoute{}
	for prefix, row := range wanted {
		r := status.UnderlayRoute{Prefix: prefix, State: status.UnderlayInstalled, Hops: row.Hops, Metric: row.Metric, Source: row.Source, Stale: p.learned[prefix].Stale}
		if ok, err := tables.Of(p.tables, intent.UnderlayRoutes).State(prefix); !ok && err != nil {
			r.State, r.Error = status.UnderlayError, err.Error()
			if errors.Is(err, reconcile.ErrNotReady) {
				r.State = status.UnderlayWaiting
			}
		}
		out = append(out, r)
	}
	for prefix, row := range actual {
		if _, ok := wanted[prefix]; !ok {
			out = append(out, status.UnderlayRoute{Prefix: prefix, State: status.UnderlayKept, Hops: row.Hops, Metric: row.Metric, Source: row.Source})
		}
	}
	for _, r := range p.last.Refused {
		out = append(out, status.UnderlayRoute{Prefix: r.Prefix, State: status.UnderlayRefused, Reason: r.Reason, Stale: p.learned[r.Prefix].Stale})
	}
	slices.SortFunc(out, func(a, b status.UnderlayRoute) int { return comparePrefixes(a.Prefix, b.Prefix) })
	return out
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// underlayMetrics counts the same.
func (n *node) underlayMetrics() (nodemetrics.Underlay, error) {
	out := nodemetrics.Underlay{Refused: map[string]int{}}
	for _, r := range n.underlay.routes() {
		switch r.State {
		case status.UnderlayInstalled:
			out.Installed++
			out.Hops += len(r.Hops.All())
		case status.UnderlayRefused:
			out.Refused[r.Reason]++
		}
	}
	return out, nil
}
