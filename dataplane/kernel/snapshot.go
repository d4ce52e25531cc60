package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// snapshot is the links of a namespace at one time, kept up to date with what the
// drivers make and remove themselves.
type snapshot struct {
	h       *netlink.Handle
	byIndex map[int]netlink.Link
	byName  map[string]netlink.Link
	byMark  map[string]netlink.Link // Sluice's
}

func takeSnapshot(h *netlink.Handle) (*snapshot, error) {
	links, err := link.Dump(h.LinkList)
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	s := &snapshot{h: h, byIndex: map[int]netlink.Link{}, byName: map[string]netlink.Link{}, byMark: map[string]netlink.Link{}}
	for _, l := range links {
		s.add(l)
	}
	return s, nil
}

func (s *snapshot) add(l netlink.Link) {
	a := l.Attrs()
	s.byIndex[a.Index], s.byName[a.Name] = l, l
	for _, name := range a.AltNames {
		if strings.HasPrefix(name, "sluice:") {
			s.byMark[name] = l
		} else {
			s.byName[name] = l
		}
	}
}

func (s *snapshot) drop(l netlink.Link) {
	a := l.Attrs()
	delete(s.byIndex, a.Index)
	delete(s.byName, a.Name)
	for _, name := range a.AltNames {
		delete(s.byMark, name)
		delete(s.byName, name)
	}
}

// again reads a link once more.
func (s *snapshot) again(name string) (netlink.Link, error) {
	l, err := find(s.h, name)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("%s has gone since it was created", name)
	}
	s.add(l)
	return l, nil
}

// ours is our device, nil if there is none. What a crash left of it is removed.
func (s *snapshot) ours(n named) (netlink.Link, error) {
	if l := s.byMark[n.mark]; l != nil {
		return l, nil
	}
	l := s.byName[n.name]
	if l == nil {
		return nil, nil
	}
	if !unfinished(l, n.kind, n.mac) {
		return nil, fmt.Errorf("device %s: %w", n.name, reconcile.ErrForeign)
	}
	return nil, s.remove(l)
}

func (s *snapshot) remove(l netlink.Link) error {
	if err := s.h.LinkDel(l); err != nil {
		return fmt.Errorf("removing device %s: %w", l.Attrs().Name, err)
	}
	s.drop(l)
	return nil
}

// removeNamed removes devices that are ours; the ends of a pair go together.
func (s *snapshot) removeNamed(names ...named) error {
	for _, n := range names {
		l := s.byMark[n.mark]
		if l == nil {
			if l = s.byName[n.name]; l == nil || !unfinished(l, n.kind, n.mac) {
				continue
			}
		}
		if still, err := find(s.h, l.Attrs().Name); err != nil || still == nil {
			s.drop(l)
			if err != nil {
				return err
			}
			continue
		}
		if err := s.remove(l); err != nil {
			return err
		}
	}
	return nil
}

// create makes a device and marks it; the name and the address of l are set here.
func (s *snapshot) create(n named, l netlink.Link) (netlink.Link, error) {
	a := l.Attrs()
	a.Name, a.HardwareAddr = n.name, hardware(n.mac)
	if err := s.h.LinkAdd(l); err != nil {
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = fmt.Errorf("%w: this kernel has no devices of type %s; load its module, or leave the VRF on the eBPF path", err, l.Type())
		}
		return nil, fmt.Errorf("creating device %s: %w", n.name, err)
	}
	return s.mark(n)
}

func (s *snapshot) mark(n named) (netlink.Link, error) {
	l, err := s.again(n.name)
	if err != nil {
		return nil, err
	}
	if err := s.h.LinkAddAltName(l, n.mark); err != nil {
		return nil, fmt.Errorf("marking device %s: %w", n.name, err)
	}
	return s.again(n.name)
}

// pairOf finds a veth pair by its marks, or makes it anew if an end is missing.
func (s *snapshot) pairOf(a, b named, mtu int) (la, lb netlink.Link, err error) {
	if la, err = s.ours(a); err != nil {
		return nil, nil, err
	}
	if lb, err = s.ours(b); err != nil {
		return nil, nil, err
	}
	if la != nil && lb != nil {
		return la, lb, nil
	}
	for _, half := range []netlink.Link{la, lb} {
		if half != nil {
			if err := s.remove(half); err != nil {
				return nil, nil, err
			}
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.MTU = mtu
	v := &netlink.Veth{LinkAttrs: attrs, PeerName: b.name, PeerHardwareAddr: hardware(b.mac), PeerMTU: uint32(mtu)}
	if la, err = s.create(a, v); err != nil {
		return nil, nil, err
	}
	lb, err = s.mark(b)
	return la, lb, err
}

// vrf is the device of a VRF and its table.
func (s *snapshot) vrf(vni intent.VNI) (*netlink.Vrf, bool) {
	v, ok := s.byMark[vrfOf(vni).mark].(*netlink.Vrf)
	return v, ok
}

// addresses are those of all devices, by ifindex.
func addresses(h *netlink.Handle) (map[int][]netlink.Addr, error) {
	all, err := link.Dump(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	out := map[int][]netlink.Addr{}
	for _, a := range all {
		out[a.LinkIndex] = append(out[a.LinkIndex], a)
	}
	return out, nil
}

func addrOf(a netlink.Addr) netip.Addr {
	if a.IPNet == nil {
		return netip.Addr{}
	}
	ip, _ := netip.AddrFromSlice(a.IP)
	return ip.Unmap()
}

// neighbour is a permanent entry of a device.
type neighbour struct {
	ifindex int
	addr    netip.Addr
}

// neighbours are the permanent ones of all devices, and whose MAC they give.
func neighbours(h *netlink.Handle) (map[neighbour]intent.MAC, error) {
	out := map[neighbour]intent.MAC{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		all, err := link.Dump(func() ([]netlink.Neigh, error) { return h.NeighList(0, family) })
		if err != nil {
			return nil, fmt.Errorf("listing neighbours: %w", err)
		}
		for _, n := range all {
			addr, ok := addrOfNeighbour(n)
			if !ok || n.State&netlink.NUD_PERMANENT == 0 || len(n.HardwareAddr) != 6 {
				continue
			}
			out[neighbour{n.LinkIndex, addr}] = intent.MAC(n.HardwareAddr)
		}
	}
	return out, nil
}

func addrOfNeighbour(n netlink.Neigh) (netip.Addr, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	return a.Unmap(), ok
}

func setNeighbour(h *netlink.Handle, n neighbour, mac intent.MAC) error {
	err := h.NeighSet(&netlink.Neigh{LinkIndex: n.ifindex, Family: family(n.addr), State: netlink.NUD_PERMANENT, IP: n.addr.AsSlice(), HardwareAddr: hardware(mac)})
	if err != nil {
		return fmt.Errorf("neighbour %s with %s: %w", n.addr, mac, err)
	}
	return nil
}

func removeNeighbour(h *netlink.Handle, n neighbour) error {
	err := h.NeighDel(&netlink.Neigh{LinkIndex: n.ifindex, Family: family(n.addr), IP: n.addr.AsSlice()})
	if err != nil && !gone(err) {
		return fmt.Errorf("removing neighbour %s: %w", n.addr, err)
	}
	return nil
}

// station is a MAC behind a VXLAN device.
type station struct {
	ifindex int
	mac     intent.MAC
}

// forwardingTable reads those entries of VXLAN devices that have one destination.
func forwardingTable(h *netlink.Handle) (map[station]netip.Addr, error) {
	all, err := link.Dump(func() ([]netlink.Neigh, error) { return h.NeighList(0, unix.AF_BRIDGE) })
	if err != nil {
		return nil, fmt.Errorf("listing forwarding entries: %w", err)
	}
	out := map[station]netip.Addr{}
	for _, n := range all {
		addr, ok := netip.AddrFromSlice(n.IP)
		if ok && n.Flags&netlink.NTF_SELF != 0 && len(n.HardwareAddr) == 6 {
			out[station{n.LinkIndex, intent.MAC(n.HardwareAddr)}] = addr.Unmap()
		}
	}
	return out, nil
}

func stationEntry(at station, vtep netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: at.ifindex, Family: unix.AF_BRIDGE, State: netlink.NUD_PERMANENT | netlink.NUD_NOARP,
		Flags: netlink.NTF_SELF, IP: vtep.AsSlice(), HardwareAddr: hardware(at.mac)}
}
