package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// bridge makes br-<vni>: what is for the router MAC goes to the VRF's routes. It is
// left down when it is new.
func (d VRFs) bridge(ctx context.Context, s *snapshot, vrf *netlink.Vrf, vni intent.VNI) (netlink.Link, error) {
	n := bridgeOf(vni)
	l, err := s.ours(n)
	if err != nil {
		return nil, err
	}
	if l == nil {
		attrs, off := netlink.NewLinkAttrs(), false
		if l, err = s.create(n, &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &off}); err != nil {
			return nil, err
		}
	}
	if err := d.p.enslave(ctx, s, l, vrf, d.p.constants().RouterMAC, loose, GuardedDevice{VNI: vni}); err != nil {
		return nil, err
	}
	return l, setMTU(s.h, l, innerMTU)
}

// enslave makes a device that routes one of the VRF, with the guard on it before.
func (p *Path) enslave(ctx context.Context, s *snapshot, l netlink.Link, vrf *netlink.Vrf, mac intent.MAC, knobs []knob, g GuardedDevice) error {
	a := l.Attrs()
	if string(a.HardwareAddr) != string(mac[:]) {
		if err := s.h.LinkSetHardwareAddr(l, hardware(mac)); err != nil {
			return fmt.Errorf("address %s of %s: %w", mac, a.Name, err)
		}
	}
	// Guard first: what the kernel would deliver to the node must never get in.
	g.Name, g.IfIndex = a.Name, a.Index
	if err := p.guard(ctx, g); err != nil {
		return err
	}
	if a.MasterIndex != vrf.Index {
		if err := s.h.LinkSetMaster(l, vrf); err != nil {
			return fmt.Errorf("making %s one of %s: %w", a.Name, vrf.Name, err)
		}
	}
	return settle(s.h, l, knobs)
}

func setMTU(h *netlink.Handle, l netlink.Link, mtu int) error {
	if l.Attrs().MTU == mtu {
		return nil
	}
	if err := h.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("setting MTU %d of %s: %w", mtu, l.Attrs().Name, err)
	}
	return nil
}

// inward makes vx-<vni>, through which fabric_in hands over the VRF's packets.
func (d VRFs) inward(s *snapshot, bridge netlink.Link, vni intent.VNI) error {
	if !s.fabricCarries() && len(s.carriers(d.p.config.Port)) > 0 {
		return fmt.Errorf("%w for %s to take the UDP port over", reconcile.ErrNotReady, FabricName)
	}
	if err := s.removeNamed(vxlanOf(vni)); err != nil {
		return err
	}
	inner, outer, err := s.pairOf(innerOf(vni), outerOf(vni), innerMTU)
	if err != nil {
		return err
	}
	for _, l := range []netlink.Link{inner, outer} {
		if err := errors.Join(failClosed(s.h, l), setMTU(s.h, l, innerMTU)); err != nil {
			return err
		}
	}
	if err := join(s.h, inner, bridge); err != nil {
		return err
	}
	if err := s.h.LinkSetUp(outer); err != nil {
		return fmt.Errorf("setting %s up: %w", outer.Attrs().Name, err)
	}
	d.p.setInward(vni, outer.Attrs().Index)
	return nil
}

// join makes a device a port of the bridge.
func join(h *netlink.Handle, l, bridge netlink.Link) error {
	if err := enter(h, l, bridge); err != nil {
		return err
	}
	if err := h.LinkSetUp(l); err != nil {
		return fmt.Errorf("setting %s up: %w", l.Attrs().Name, err)
	}
	return nil
}

// enter is join without setting it up.
func enter(h *netlink.Handle, l, bridge netlink.Link) error {
	if l.Attrs().MasterIndex == bridge.Attrs().Index {
		return nil
	}
	if err := h.LinkSetMaster(l, bridge); err != nil {
		return fmt.Errorf("making %s a port of %s: %w", l.Attrs().Name, bridge.Attrs().Name, err)
	}
	return nil
}

// vxlan makes vxlan-<vni>, where the whole node is on the kernel path.
func (d VRFs) vxlan(s *snapshot, bridge netlink.Link, vni intent.VNI) error {
	n, local := vxlanOf(vni), d.p.localVTEP()
	if !local.IsValid() {
		return errors.New("the node has no VTEP address")
	}
	waits := s.fabricCarries()
	if !waits {
		if err := s.removeNamed(innerOf(vni), outerOf(vni)); err != nil {
			return err
		}
		d.p.setInward(vni, 0)
	}
	l, err := s.ours(n)
	if err != nil {
		return err
	}
	if l == nil || !d.usable(l, vni, local) {
		// Asked before anything goes.
		if err := portHolder(s.h, d.p.config.Port); err != nil {
			return err
		}
		if err := s.removeNamed(n); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		v := &netlink.Vxlan{LinkAttrs: attrs, VxlanId: int(vni), SrcAddr: net.IP(local.AsSlice()), Port: int(d.p.config.Port),
			UDPCSum: !d.p.config.ZeroChecksum, UDP6ZeroCSumTx: d.p.config.ZeroChecksum, UDP6ZeroCSumRx: true, TTL: outerTTL}
		if l, err = s.create(n, v); err != nil {
			return err
		}
	}
	if err := errors.Join(failClosed(s.h, l), setMTU(s.h, l, innerMTU), enter(s.h, l, bridge)); err != nil || waits {
		return err
	}
	if !up(l) {
		if err := d.p.keepOut(); err != nil {
			return err
		}
		if err := changeOver(s.h, nil, []netlink.Link{l}, d.p.config.Port); err != nil {
			return err
		}
	}
	d.p.setInward(vni, l.Attrs().Index)
	return nil
}

// usable tells whether a VXLAN device of ours can be kept.
func (d VRFs) usable(l netlink.Link, vni intent.VNI, local netip.Addr) bool {
	v, ok := l.(*netlink.Vxlan)
	if !ok {
		return false
	}
	src, _ := netip.AddrFromSlice(v.SrcAddr)
	return !v.FlowBased && !v.Learning && v.VxlanId == int(vni) && v.Port == int(d.p.config.Port) && src.Unmap() == local
}

// localVTEP is the address of VXLAN devices: of IPv4 if there is one.
func (p *Path) localVTEP() netip.Addr {
	n := p.constants()
	if n.VTEP4.IsValid() {
		return n.VTEP4
	}
	return n.VTEP6
}

func isOurs(l netlink.Link) bool {
	return slices.ContainsFunc(l.Attrs().AltNames, func(name string) bool { return strings.HasPrefix(name, "sluice:") })
}

// dummy makes lo-<vni>, for the addresses of local routes.
func (d VRFs) dummy(s *snapshot, vrf *netlink.Vrf, vni intent.VNI) error {
	n := dummyOf(vni)
	l, err := s.ours(n)
	if err != nil {
		return err
	}
	if l == nil {
		if l, err = s.create(n, &netlink.Dummy{LinkAttrs: netlink.NewLinkAttrs()}); err != nil {
			return err
		}
	}
	if l.Attrs().MasterIndex != vrf.Index {
		if err := s.h.LinkSetMaster(l, vrf); err != nil {
			return fmt.Errorf("making %s one of %s: %w", n.name, vrf.Name, err)
		}
	}
	if err := settle(s.h, l, with(closed, knob{"ipv6", "disable_ipv6", "0"})); err != nil {
		return err
	}
	if err := s.h.LinkSetUp(l); err != nil {
		return fmt.Errorf("setting %s up: %w", n.name, err)
	}
	return nil
}

// bareAddress gives a device an address without the route that makes it the
// node's own: the kernel takes it as the source of what it says itself, and goes
// on to forward what is for it.
func bareAddress(h *netlink.Handle, l netlink.Link, addr netip.Addr, scope int, table uint32) error {
	a := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(addr, addr.BitLen())), Scope: scope}
	if addr.Is6() {
		a.Scope, a.Flags = 0, unix.IFA_F_NODAD|unix.IFA_F_NOPREFIXROUTE
		if err := h.AddrAdd(l, a); err == nil && up(l) {
			return awaitLocalRoute(h, localRoute(addr, l.Attrs().Index, table))
		}
	}
	if err := h.AddrReplace(l, a); err != nil {
		return fmt.Errorf("address %s of %s: %w", addr, l.Attrs().Name, err)
	}
	return removeRoute(h, localRoute(addr, l.Attrs().Index, table))
}

// localRoutePatience bounds the wait for the kernel.
const localRoutePatience = time.Second

// awaitLocalRoute removes the route that comes with a new IPv6 address: the kernel
// makes it by itself some time after the address (addrconf_dad_work).
func awaitLocalRoute(h *netlink.Handle, r fibRoute) error {
	m := r.message()
	m.Scope = unix.RT_SCOPE_NOWHERE // any
	for deadline := time.Now().Add(localRoutePatience); ; time.Sleep(time.Millisecond) {
		err := h.RouteDel(m)
		if err == nil || !gone(err) {
			return err
		}
		if time.Now().After(deadline) {
			return nil // it is seen when it is listed
		}
	}
}

func localRoute(addr netip.Addr, ifindex int, table uint32) fibRoute {
	return fibRoute{table: table, prefix: netip.PrefixFrom(addr, addr.BitLen()), kind: unix.RTN_LOCAL, hops: []hop{{ifindex: ifindex}}}
}

func removeAddress(h *netlink.Handle, l netlink.Link, addr netip.Addr) error {
	err := h.AddrDel(l, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(addr, addr.BitLen()))})
	if err != nil && !gone(err) {
		return fmt.Errorf("removing address %s of %s: %w", addr, l.Attrs().Name, err)
	}
	return nil
}

func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENODEV)
}
