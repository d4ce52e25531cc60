package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Path is what the kernel does now with a packet of this node to an address.
type Path struct {
	// Refused is why it drops the packet, in words of `ip route`: no route, unreachable,
	// blackhole, prohibit. Empty: it sends it.
	Refused string
	// Device is the link that the packet leaves by.
	Device string
	// MTU is the largest packet in bytes that fits: the least of DeviceMTU, the route's, and
	// the one that the kernel has learned of the way to the address (RFC 1191, RFC 8201).
	MTU, DeviceMTU int
	// Default tells that the route is a default route. It is asked for by Query.Default.
	Default bool
}

// Query says for which packets a path is looked up.
type Query struct {
	// Source is the packets' source. An address of the other family has none.
	Source netip.Addr
	// Default has Path.Default filled in, which takes a second lookup.
	Default bool
}

// Paths looks up the path to each address. An address with a zone is looked up on that link.
// The lookup is the kernel's own, with its rules; it changes nothing.
func (f *Facts) Paths(q Query, to []netip.Addr) (map[netip.Addr]Path, error) {
	out := make(map[netip.Addr]Path, len(to))
	err := f.ns.Netlink(func(h *netlink.Handle) error {
		links := lookedUp{h: h, known: map[int]Underlay{}}
		for _, a := range to {
			p, err := links.path(q, a)
			if err != nil {
				return fmt.Errorf("looking up the route to %s: %w", a, err)
			}
			out[a] = p
		}
		return nil
	})
	return out, err
}

// lookedUp reads each link once.
type lookedUp struct {
	h     *netlink.Handle
	known map[int]Underlay
}

func (l *lookedUp) path(q Query, to netip.Addr) (Path, error) {
	options := netlink.RouteGetOptions{}
	if q.Source.IsValid() && q.Source.Is4() == to.Is4() && to.Zone() == "" {
		options.SrcAddr = q.Source.AsSlice()
	}
	route, refused, err := l.get(to, options)
	if refused != "" && options.SrcAddr != nil && !l.own(q.Source) {
		// The kernel refuses packets from an address that the node has not, which is no fault
		// of the way there.
		options.SrcAddr = nil
		route, refused, err = l.get(to, options)
	}
	if refused != "" || err != nil {
		return Path{Refused: refused}, err
	}
	u, err := l.link(route.LinkIndex)
	if err != nil {
		return Path{}, err
	}
	p := Path{Device: u.Name, MTU: u.MTU, DeviceMTU: u.MTU}
	if route.MTU > 0 && route.MTU < p.MTU {
		p.MTU = route.MTU
	}
	if q.Default {
		options.FIBMatch = true
		if route, _, err = l.get(to, options); err == nil && route.Dst != nil {
			ones, _ := route.Dst.Mask.Size()
			p.Default = ones == 0
		} else {
			p.Default = err == nil
		}
	}
	return p, err
}

// own tells whether an address is the node's.
func (l *lookedUp) own(a netip.Addr) bool {
	route, _, err := l.get(a, netlink.RouteGetOptions{})
	return err == nil && route.Type == unix.RTN_LOCAL
}

// Words of `ip route` for routes that lead nowhere.
const (
	noRoute     = "no route"
	unreachable = "unreachable"
	blackhole   = "blackhole"
	prohibit    = "prohibit"
)

// get asks the kernel once. IPv4 answers with an error for a route that leads nowhere, IPv6
// with the route.
func (l *lookedUp) get(to netip.Addr, options netlink.RouteGetOptions) (route netlink.Route, refused string, err error) {
	options.Oif = to.Zone()
	routes, err := l.h.RouteGetWithOptions(to.WithZone("").AsSlice(), &options)
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.As(err, new(netlink.LinkNotFoundError)), err == nil && len(routes) == 0:
		return route, noRoute, nil
	case errors.Is(err, unix.EHOSTUNREACH):
		return route, unreachable, nil
	case errors.Is(err, unix.EINVAL):
		return route, blackhole, nil
	case errors.Is(err, unix.EACCES):
		return route, prohibit, nil
	case err != nil:
		return route, "", err
	}
	switch routes[0].Type {
	case unix.RTN_UNREACHABLE:
		refused = unreachable
	case unix.RTN_BLACKHOLE:
		refused = blackhole
	case unix.RTN_PROHIBIT:
		refused = prohibit
	}
	return routes[0], refused, nil
}

// link reads a link. One that is gone by now has an MTU of 0, and an event follows.
func (l *lookedUp) link(index int) (Underlay, error) {
	if u, ok := l.known[index]; ok {
		return u, nil
	}
	u, err := device(l.h, index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		u, err = Underlay{}, nil
	}
	l.known[index] = u
	return u, err
}
