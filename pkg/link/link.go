package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// attempts bounds the retries of a dump; a node whose links change faster than
// this many dumps has other troubles.
const attempts = 10

// Dump calls fn until it was not interrupted by a change of what it reads.
func Dump[T any](fn func() (T, error)) (T, error) {
	var v T
	var err error
	for range attempts {
		if v, err = fn(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return v, err
		}
	}
	return v, fmt.Errorf("after %d attempts: %w", attempts, err)
}

// Facts reads the links of one network namespace.
type Facts struct {
	ns netns.Namespace
}

// New reads nothing yet.
func New(ns netns.Namespace) *Facts { return &Facts{ns: ns} }

// Address is one address of a link.
type Address struct {
	Link string
	// Below is the device that Link is a VLAN or macvlan device of, or empty.
	Below string
	// Prefix is the address with the length of its network.
	Prefix netip.Prefix
	// Global tells that the address's scope reaches beyond the link.
	Global bool
}

// Addresses lists all addresses of all links, in the kernel's order.
func (f *Facts) Addresses() ([]Address, error) {
	_, addresses, err := f.Host().Read(true)
	return addresses, err
}

func addressesOf(links []netlink.Link, addrs []netlink.Addr) (out []Address) {
	names := make(map[int]string, len(links))
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	below := lowerDevices(links)
	for _, a := range addrs {
		if p, ok := prefix(a.IPNet); ok {
			out = append(out, Address{Link: names[a.LinkIndex], Below: names[below[a.LinkIndex]], Prefix: p, Global: global(a.Scope, p.Addr())})
		}
	}
	return out
}

// lowerDevices is the device below each VLAN and macvlan device, by index. (Of a
// veth the kernel gives the other end in the same place.)
func lowerDevices(links []netlink.Link) map[int]int {
	below := make(map[int]int)
	for _, l := range links {
		if l.Type() == "vlan" || l.Type() == "macvlan" {
			below[l.Attrs().Index] = l.Attrs().ParentIndex
		}
	}
	return below
}

func prefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), ones), ok
}

func global(scope int, a netip.Addr) bool {
	return scope < unix.RT_SCOPE_LINK && a.IsGlobalUnicast()
}

// VTEP is the node's tunnel endpoint address: the configured one, else the
// first global address on lo (IPv4 before IPv6), else encapIP
// (Open_vSwitch.external_ids:ovn-encap-ip of the local vswitch database).
// Unset addresses are the zero Addr.
func (f *Facts) VTEP(configured, encapIP netip.Addr) (netip.Addr, error) {
	if configured.IsValid() {
		return configured.Unmap(), nil
	}
	addrs, err := f.Addresses()
	if err != nil {
		return netip.Addr{}, err
	}
	var v6 netip.Addr
	for _, a := range addrs {
		if a.Link != "lo" || !a.Global {
			continue
		}
		if a.Prefix.Addr().Is4() {
			return a.Prefix.Addr(), nil
		}
		if !v6.IsValid() {
			v6 = a.Prefix.Addr()
		}
	}
	if v6.IsValid() {
		return v6, nil
	}
	if encapIP.IsValid() {
		return encapIP.Unmap(), nil
	}
	return netip.Addr{}, errors.New("no VTEP address: set it in the configuration, put a global address on lo, or set external_ids:ovn-encap-ip")
}

// Underlay is the way of outer packets.
type Underlay struct {
	Ifindex int
	Name    string
	// MTU is the largest outer IP packet in bytes that leaves unfragmented: the
	// device's, or the route's where that is smaller.
	MTU int
}

// Towards is the underlay for packets to dst, a remote VTEP. For an address of
// the node itself it is the device that holds the address; if that is lo, the
// smallest MTU of the devices that hold a default route, or any global address. An address with
// a zone is on that link.
func (f *Facts) Towards(dst netip.Addr) (Underlay, error) {
	var u Underlay
	err := f.ns.Netlink(func(h *netlink.Handle) error {
		if dst.Zone() != "" {
			l, err := h.LinkByName(dst.Zone())
			if err != nil {
				return fmt.Errorf("link %s: %w", dst.Zone(), err)
			}
			u = Underlay{Ifindex: l.Attrs().Index, Name: l.Attrs().Name, MTU: l.Attrs().MTU}
			return nil
		}
		routes, err := h.RouteGet(dst.AsSlice())
		if err != nil {
			return fmt.Errorf("looking up the route to %s: %w", dst, err)
		}
		if len(routes) == 0 {
			return fmt.Errorf("no route to %s", dst)
		}
		if routes[0].Type == unix.RTN_LOCAL {
			u, err = holder(h, dst)
			return err
		}
		u, err = device(h, routes[0].LinkIndex)
		if err != nil {
			return fmt.Errorf("device of the route to %s: %w", dst, err)
		}
		if m := routes[0].MTU; m > 0 && m < u.MTU {
			u.MTU = m
		}
		return nil
	})
	return u, err
}

// ByDefault tells whether the route to dst is a default route: it leads anywhere, also
// where nobody knows dst.
func (f *Facts) ByDefault(dst netip.Addr) (yes bool, err error) {
	if dst.Zone() != "" {
		return false, nil
	}
	err = f.ns.Netlink(func(h *netlink.Handle) error {
		routes, err := h.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true})
		if err != nil {
			return fmt.Errorf("looking up the route to %s: %w", dst, err)
		}
		for _, r := range routes {
			if r.Dst == nil {
				yes = true
			} else if ones, _ := r.Dst.Mask.Size(); ones == 0 {
				yes = true
			}
		}
		return nil
	})
	return yes, err
}

// Takes tells whether the node takes packets for an address: it has the address, on a device
// that is up.
func (f *Facts) Takes(a netip.Addr) (yes bool, err error) {
	err = f.ns.Netlink(func(h *netlink.Handle) error {
		routes, err := h.RouteGet(a.AsSlice())
		for _, none := range []error{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL} {
			if errors.Is(err, none) {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("looking up the route to %s: %w", a, err)
		}
		yes = len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL
		return nil
	})
	return yes, err
}

func device(h *netlink.Handle, index int) (Underlay, error) {
	l, err := h.LinkByIndex(index)
	if err != nil {
		return Underlay{}, fmt.Errorf("reading link %d: %w", index, err)
	}
	return Underlay{Ifindex: index, Name: l.Attrs().Name, MTU: l.Attrs().MTU}, nil
}

// holder finds the device of one of the node's own addresses. An address on lo
// says nothing about the wire, so the uplinks are asked instead.
func holder(h *netlink.Handle, addr netip.Addr) (Underlay, error) {
	addrs, err := Dump(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return Underlay{}, fmt.Errorf("listing addresses: %w", err)
	}
	var uplinks []int
	for _, a := range addrs {
		p, ok := prefix(a.IPNet)
		l, err := h.LinkByIndex(a.LinkIndex)
		if !ok || err != nil || l.Attrs().Flags&net.FlagLoopback != 0 {
			continue
		}
		if p.Addr() == addr.Unmap() {
			return device(h, a.LinkIndex)
		}
		if global(a.Scope, p.Addr()) {
			uplinks = append(uplinks, a.LinkIndex)
		}
	}
	routes, err := Dump(func() ([]netlink.Route, error) { return h.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return Underlay{}, fmt.Errorf("listing routes: %w", err)
	}
	if d := defaultDevices(routes); len(d) > 0 {
		uplinks = d
	}
	var least Underlay
	for _, i := range uplinks {
		if u, err := device(h, i); err == nil && (least.MTU == 0 || u.MTU < least.MTU) {
			least = u
		}
	}
	if least.MTU == 0 {
		return Underlay{}, fmt.Errorf("no link besides lo carries a global address, so the MTU of the underlay of %s is not known", addr)
	}
	return least, nil
}

func defaultDevices(routes []netlink.Route) []int {
	var out []int
	for _, r := range routes {
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones != 0 {
				continue
			}
		}
		if r.LinkIndex != 0 {
			out = append(out, r.LinkIndex)
		}
		for _, hop := range r.MultiPath {
			out = append(out, hop.LinkIndex)
		}
	}
	return out
}
