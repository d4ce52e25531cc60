package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// UnderlayProtocol is the protocol number (rtm_protocol) of the routes of the
// underlay in the main table, which no other program is known to use. It is not
// RouteProtocol: the two are told apart, and one can be flushed without the other.
const UnderlayProtocol = 116

// UnderlayRoutes is the driver of the routes that the node itself uses: rows of the
// kernel's main table with UnderlayProtocol. It never changes another route.
type UnderlayRoutes struct{ ns netns.Namespace }

var _ reconcile.Driver[netip.Prefix, intent.UnderlayRoute] = (*UnderlayRoutes)(nil)

// NewUnderlayRoutes does no I/O.
func NewUnderlayRoutes(ns netns.Namespace) *UnderlayRoutes { return &UnderlayRoutes{ns: ns} }

// mainTable is the main table at one moment.
type mainTable struct {
	ours   map[netip.Prefix][]fibRoute
	others map[netip.Prefix][]fibRoute
	index  map[string]int
	names  map[int]string
}

func readMain(h *netlink.Handle) (*mainTable, error) {
	t := &mainTable{ours: map[netip.Prefix][]fibRoute{}, others: map[netip.Prefix][]fibRoute{}, index: map[string]int{}, names: map[int]string{}}
	links, err := link.Dump(h.LinkList)
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	for _, l := range links {
		t.index[l.Attrs().Name], t.names[l.Attrs().Index] = l.Attrs().Index, l.Attrs().Name
	}
	routes, err := tableRoutes(unix.RT_TABLE_MAIN)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		of := t.others
		if r.protocol == UnderlayProtocol {
			of = t.ours
		}
		of[r.prefix] = append(of[r.prefix], r)
	}
	return t, nil
}

// List implements reconcile.Driver. A route that is not as Apply leaves it has the
// zero value.
func (d *UnderlayRoutes) List(context.Context) (map[netip.Prefix]intent.UnderlayRoute, error) {
	out := map[netip.Prefix]intent.UnderlayRoute{}
	err := d.ns.Netlink(func(h *netlink.Handle) error {
		t, err := readMain(h)
		if err != nil {
			return err
		}
		for p, routes := range t.ours {
			out[p] = intent.UnderlayRoute{}
			if len(routes) == 1 {
				out[p] = t.row(routes[0])
			}
		}
		return nil
	})
	return out, err
}

func (t *mainTable) row(r fibRoute) intent.UnderlayRoute {
	hops := make([]intent.UnderlayHop, 0, len(r.hops))
	for _, h := range r.hops {
		name := t.names[h.ifindex]
		if name == "" || !h.gateway.IsValid() || h.onlink || h.key != (tunnelKey{}) {
			return intent.UnderlayRoute{}
		}
		hops = append(hops, intent.UnderlayHop{Via: h.gateway, Device: name})
	}
	if len(hops) == 0 || r.kind != unix.RTN_UNICAST || r.mtu != 0 {
		return intent.UnderlayRoute{}
	}
	return intent.UnderlayRoute{Prefix: r.prefix, Metric: r.metric, Source: r.source, Hops: intent.NewUnderlayHops(hops...)}
}

// Apply implements reconcile.Driver.
func (d *UnderlayRoutes) Apply(ctx context.Context, rows []reconcile.Row[netip.Prefix, intent.UnderlayRoute]) []error {
	return d.each(len(rows), func(h *netlink.Handle, t *mainTable, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return t.apply(h, rows[i].Value)
	})
}

// Delete implements reconcile.Driver.
func (d *UnderlayRoutes) Delete(ctx context.Context, keys []netip.Prefix) []error {
	return d.each(len(keys), func(h *netlink.Handle, t *mainTable, i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return t.remove(h, keys[i], func(fibRoute) bool { return true })
	})
}

// each calls do for a number of rows, with the main table as it is before them.
func (d *UnderlayRoutes) each(count int, do func(*netlink.Handle, *mainTable, int) error) []error {
	errs := make([]error, count)
	err := d.ns.Netlink(func(h *netlink.Handle) error {
		t, err := readMain(h)
		if err != nil {
			return err
		}
		for i := range errs {
			errs[i] = do(h, t, i)
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = cmp.Or(errs[i], err)
		}
	}
	return reconcile.Results(errs)
}

// apply makes one route. One of other programs is never replaced: there is no such
// route in its place, or the kernel refuses to add a second one.
func (t *mainTable) apply(h *netlink.Handle, row intent.UnderlayRoute) error {
	r, err := t.encode(row)
	if err != nil {
		return err
	}
	same := func(o fibRoute) bool { return o.metric == r.metric }
	switch i := slices.IndexFunc(t.others[r.prefix], same); {
	case i >= 0:
		return fmt.Errorf("route %s metric %d is there with protocol %d: %w", r.prefix, r.metric, t.others[r.prefix][i].protocol, reconcile.ErrForeign)
	case slices.ContainsFunc(t.ours[r.prefix], same):
		err = r.replace(h)
	default:
		if err = h.RouteAdd(r.message()); errors.Is(err, unix.EEXIST) {
			err = reconcile.ErrForeign
		}
		if err != nil {
			err = fmt.Errorf("route %s metric %d: %w", r.prefix, r.metric, err)
		}
	}
	if err != nil {
		return err
	}
	// What an earlier metric left goes when its successor is there.
	return t.remove(h, r.prefix, func(o fibRoute) bool { return !same(o) })
}

func (t *mainTable) encode(row intent.UnderlayRoute) (*fibRoute, error) {
	r := &fibRoute{table: unix.RT_TABLE_MAIN, prefix: row.Prefix, kind: unix.RTN_UNICAST, protocol: UnderlayProtocol, metric: row.Metric, source: row.Source}
	for _, hop := range row.Hops.All() {
		i, ok := t.index[hop.Device]
		if !ok {
			return nil, fmt.Errorf("route %s: %w for device %s", row.Prefix, reconcile.ErrNotReady, hop.Device)
		}
		r.hops = append(r.hops, newHop(i, hop.Via))
	}
	if len(r.hops) == 0 {
		return nil, fmt.Errorf("route %s leads nowhere", row.Prefix)
	}
	return r, nil
}

func newHop(ifindex int, via netip.Addr) hop { return hop{ifindex: ifindex, gateway: via} }

func (t *mainTable) remove(h *netlink.Handle, p netip.Prefix, which func(fibRoute) bool) error {
	var errs []error
	for _, r := range t.ours[p] {
		if which(r) {
			// Without hops all of them go.
			errs = append(errs, removeRoute(h, fibRoute{table: r.table, prefix: r.prefix, kind: r.kind, protocol: r.protocol, metric: r.metric}))
		}
	}
	return errors.Join(errs...)
}
