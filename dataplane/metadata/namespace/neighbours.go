package namespace

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
)

// permanent is the entry by which the kernel knows a neighbour without asking.
func permanent(l netlink.Link, g intent.PortAddress) *netlink.Neigh {
	family := netlink.FAMILY_V4
	if g.Addr.Is6() {
		family = netlink.FAMILY_V6
	}
	return &netlink.Neigh{LinkIndex: l.Attrs().Index, Family: family, State: netlink.NUD_PERMANENT, IP: g.Addr.AsSlice(), HardwareAddr: hardware(g.MAC)}
}

// neighboursOf are the permanent ones of a device: in a namespace of Sluice's nobody else
// makes any.
func neighboursOf(h *netlink.Handle, l netlink.Link) (intent.PortAddressSet, error) {
	all, err := link.Dump(func() ([]netlink.Neigh, error) { return h.NeighList(l.Attrs().Index, netlink.FAMILY_ALL) })
	if err != nil {
		return "", fmt.Errorf("neighbours of %s: %w", l.Attrs().Name, err)
	}
	var out []intent.PortAddress
	for _, n := range all {
		addr, ok := netip.AddrFromSlice(n.IP)
		if ok && n.State&netlink.NUD_PERMANENT != 0 && len(n.HardwareAddr) == 6 {
			out = append(out, intent.PortAddress{MAC: intent.MAC(n.HardwareAddr), Addr: addr.Unmap()})
		}
	}
	return intent.NewPortAddressSet(out...), nil
}

// settleNeighbours makes these the permanent neighbours of a device. One that is not
// wanted any more is found by asking from then on.
func settleNeighbours(h *netlink.Handle, device string, wanted intent.PortAddressSet) error {
	l, err := kernel.Find(h, device)
	if err != nil || l == nil {
		return errors.Join(err, fmt.Errorf("device %s has gone", device))
	}
	have, err := neighboursOf(h, l)
	if err != nil || have == wanted {
		return err
	}
	now, next := have.All(), wanted.All()
	var errs []error
	for _, g := range now {
		if slices.ContainsFunc(next, func(w intent.PortAddress) bool { return w.Addr == g.Addr }) {
			continue // if with another MAC, it is replaced
		}
		if err := h.NeighDel(permanent(l, g)); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("removing neighbour %s of %s: %w", g, device, err))
		}
	}
	for _, g := range next {
		if slices.Contains(now, g) || g.Addr.Is6() && !HasIPv6() {
			continue
		}
		if err := h.NeighSet(permanent(l, g)); err != nil {
			errs = append(errs, fmt.Errorf("neighbour %s of %s: %w", g, device, err))
		}
	}
	return errors.Join(errs...)
}
