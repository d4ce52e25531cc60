package kernel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

const (
	// LearnedProtocol is the protocol number (rtm_protocol) of the routes that
	// ovn-controller is to take into OVN, and of no other. It takes none of 84, its
	// own, and from 25.03.1 on none up to 4, those of people and the kernel.
	LearnedProtocol = 117
	// learnedMetric is beside those of ovn-controller's blackholes, 100 and 1000.
	learnedMetric = 174
)

// learnedDevice is what the routes are through: an IPv6 route needs a device that has
// IPv6 and is no loopback. A bridge without ports neither gets nor sends a packet.
var learnedDevice = named{
	name: intent.LearnedDevice, kind: "bridge", mark: "sluice:learned",
	mac: intent.MAC{0xfe, 0x73, 0x6c, 0x75, 0xff, 0xfe},
}

var learnedKnobs = with(closed, knob{"ipv6", "disable_ipv6", "0"})

// LearnedRoutes is the driver of what OVN learns: routes with LearnedProtocol through a
// device of their own, in routing tables that only ovn-controller reads. It never
// changes another route. The device is there while a route is.
type LearnedRoutes struct{ ns netns.Namespace }

var _ reconcile.Driver[intent.LearnedKey, intent.LearnedRoute] = (*LearnedRoutes)(nil)

// NewLearnedRoutes does no I/O.
func NewLearnedRoutes(ns netns.Namespace) *LearnedRoutes { return &LearnedRoutes{ns: ns} }

// List implements reconcile.Driver. A route that is not as Apply leaves it has the zero
// value.
func (d *LearnedRoutes) List(context.Context) (map[intent.LearnedKey]intent.LearnedRoute, error) {
	out := map[intent.LearnedKey]intent.LearnedRoute{}
	err := d.ns.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return err
		}
		device := s.byMark[learnedDevice.mark]
		if device == nil {
			return nil // the kernel takes the routes away with it
		}
		routes, err := learnedRoutes(0)
		if err != nil {
			return err
		}
		sound := up(device) && isSettled(device, learnedKnobs)
		for _, r := range routes {
			k := intent.LearnedKey{Table: r.table, Prefix: r.prefix}
			_, twice := out[k]
			out[k] = intent.LearnedRoute{}
			if !twice && sound && len(r.hops) == 1 {
				row := intent.LearnedRoute{Key: k, Via: r.hops[0].gateway}
				if want := encodeLearned(row, device); want.equal(&r) {
					out[k] = row
				}
			}
		}
		return nil
	})
	return out, err
}

// learnedRoutes are Sluice's in a table; 0 means all tables.
func learnedRoutes(table uint32) ([]fibRoute, error) {
	all, err := tableRoutes(table)
	return slices.DeleteFunc(all, func(r fibRoute) bool { return r.protocol != LearnedProtocol }), err
}

func encodeLearned(row intent.LearnedRoute, device netlink.Link) *fibRoute {
	return &fibRoute{
		table: row.Key.Table, prefix: row.Key.Prefix, kind: unix.RTN_UNICAST, protocol: LearnedProtocol, metric: learnedMetric,
		hops: []hop{{ifindex: device.Attrs().Index, gateway: row.Via, onlink: true}},
	}
}

// Apply implements reconcile.Driver.
func (d *LearnedRoutes) Apply(ctx context.Context, rows []reconcile.Row[intent.LearnedKey, intent.LearnedRoute]) []error {
	errs := make([]error, len(rows))
	err := d.ns.Netlink(func(h *netlink.Handle) error {
		device, err := ensureLearned(h)
		if err != nil {
			return err
		}
		tables := map[uint32]learnedTable{}
		for i, r := range rows {
			if errs[i] = ctx.Err(); errs[i] != nil {
				continue
			}
			if errs[i] = refuseLearned(r.Value); errs[i] != nil {
				continue
			}
			t, read := tables[r.Key.Table]
			if !read {
				if t, errs[i] = readLearnedTable(r.Key.Table); errs[i] != nil {
					continue
				}
				tables[r.Key.Table] = t
			}
			errs[i] = t.apply(h, encodeLearned(r.Value, device))
		}
		return nil
	})
	return all(errs, err)
}

// refuseLearned keeps routes out of tables that packets may be sent by.
func refuseLearned(r intent.LearnedRoute) error {
	switch {
	case !intent.CanLearn(r.Key.Table):
		return fmt.Errorf("route %s: Sluice writes no route into this table", r.Key)
	case !r.Via.IsValid() || r.Via.Is4() != r.Key.Prefix.Addr().Is4():
		return fmt.Errorf("route %s: no next hop of its family", r.Key)
	}
	return nil
}

// ensureLearned makes the device, or mends it.
func ensureLearned(h *netlink.Handle) (netlink.Link, error) {
	s, err := takeSnapshot(h)
	if err != nil {
		return nil, err
	}
	l, err := s.ours(learnedDevice)
	if err != nil {
		return nil, err
	}
	if l == nil {
		attrs, off := netlink.NewLinkAttrs(), false
		if l, err = s.create(learnedDevice, &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &off}); err != nil {
			return nil, err
		}
	}
	if err := settle(h, l, learnedKnobs); err != nil {
		return nil, err
	}
	if !up(l) {
		if err := h.LinkSetUp(l); err != nil {
			return nil, fmt.Errorf("setting %s up: %w", learnedDevice.name, err)
		}
	}
	return l, nil
}

// learnedTable is what a table has to each destination: of ours, and of others with
// their metric.
type learnedTable struct {
	ours   map[netip.Prefix][]fibRoute
	others map[netip.Prefix]uint8 // protocols of those with learnedMetric
}

func readLearnedTable(table uint32) (learnedTable, error) {
	t := learnedTable{map[netip.Prefix][]fibRoute{}, map[netip.Prefix]uint8{}}
	routes, err := tableRoutes(table)
	for _, r := range routes {
		switch {
		case r.protocol == LearnedProtocol:
			t.ours[r.prefix] = append(t.ours[r.prefix], r)
		case r.metric == learnedMetric:
			t.others[r.prefix] = r.protocol
		}
	}
	return t, err
}

// apply makes one route. One of other programs is never replaced.
func (t learnedTable) apply(h *netlink.Handle, r *fibRoute) error {
	if protocol, there := t.others[r.prefix]; there {
		return fmt.Errorf("route %s of table %d, metric %d, is there with protocol %d: %w", r.prefix, r.table, r.metric, protocol, reconcile.ErrForeign)
	}
	ours := t.ours[r.prefix]
	if len(ours) == 1 && ours[0].metric == r.metric {
		return r.replace(h)
	}
	for _, old := range ours { // somebody has changed them
		if err := removeLearned(h, old); err != nil {
			return err
		}
	}
	err := h.RouteAdd(r.message())
	if errors.Is(err, unix.EEXIST) {
		err = reconcile.ErrForeign
	}
	if err != nil {
		return fmt.Errorf("route %s of table %d: %w", r.prefix, r.table, err)
	}
	return nil
}

// removeLearned removes a route whatever it leads through.
func removeLearned(h *netlink.Handle, r fibRoute) error {
	return removeRoute(h, fibRoute{table: r.table, prefix: r.prefix, protocol: LearnedProtocol, metric: r.metric})
}

// Delete implements reconcile.Driver.
func (d *LearnedRoutes) Delete(ctx context.Context, keys []intent.LearnedKey) []error {
	errs := make([]error, len(keys))
	err := d.ns.Netlink(func(h *netlink.Handle) error {
		there, err := learnedRoutes(0)
		if err != nil {
			return err
		}
		byKey := map[intent.LearnedKey][]fibRoute{}
		for _, r := range there {
			k := intent.LearnedKey{Table: r.table, Prefix: r.prefix}
			byKey[k] = append(byKey[k], r)
		}
		for i, k := range keys {
			if errs[i] = ctx.Err(); errs[i] != nil {
				continue
			}
			for _, r := range byKey[k] {
				errs[i] = errors.Join(errs[i], removeLearned(h, r))
			}
			if errs[i] == nil {
				delete(byKey, k)
			}
		}
		if len(byKey) > 0 {
			return nil
		}
		return removeLearnedDevice(h)
	})
	return all(errs, err)
}

// Remove removes the device, and with it all routes. What others made stays.
func (d *LearnedRoutes) Remove() error {
	return d.ns.Netlink(removeLearnedDevice)
}

func removeLearnedDevice(h *netlink.Handle) error {
	s, err := takeSnapshot(h)
	if err != nil {
		return err
	}
	return s.removeNamed(learnedDevice)
}

// Exists tells whether the device is there.
func (d *LearnedRoutes) Exists() (there bool, err error) {
	err = d.ns.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return err
		}
		l := s.byName[learnedDevice.name]
		there = s.byMark[learnedDevice.mark] != nil || l != nil && unfinished(l, learnedDevice.kind, learnedDevice.mac)
		return nil
	})
	return there, err
}
