package kernel

import (
	"context"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// fib is the routes of all tables and what the devices know of their neighbours.
type fib struct {
	tables     map[uint32][]fibRoute
	addresses  map[int][]netlink.Addr
	neighbours map[neighbour]intent.MAC
	// forwarding is where VXLAN devices send frames for a MAC.
	forwarding map[station]netip.Addr
}

func takeFIB(h *netlink.Handle) (*fib, error) {
	routes, err := tableRoutes(0)
	if err != nil {
		return nil, err
	}
	f := &fib{tables: map[uint32][]fibRoute{}}
	for _, r := range routes {
		f.tables[r.table] = append(f.tables[r.table], r)
	}
	devices, err := takeDevices(h)
	if err != nil {
		return nil, err
	}
	f.addresses, f.neighbours, f.forwarding = devices.addresses, devices.neighbours, devices.forwarding
	return f, nil
}

// takeDevices is without the routes.
func takeDevices(h *netlink.Handle) (f *fib, err error) {
	f = &fib{tables: map[uint32][]fibRoute{}}
	if f.addresses, err = addresses(h); err != nil {
		return nil, err
	}
	if f.neighbours, err = neighbours(h); err != nil {
		return nil, err
	}
	f.forwarding, err = forwardingTable(h)
	return f, err
}

func (f *fib) has(r fibRoute) bool {
	return slices.ContainsFunc(f.tables[r.table], func(o fibRoute) bool {
		// What leads nowhere has a device, lo, for IPv6 alone.
		return o.prefix == r.prefix && o.kind == r.kind && o.protocol == r.protocol && o.metric == r.metric
	})
}

// bare tells whether a device has an address as bareAddress leaves it.
func (f *fib) bare(ifindex int, addr netip.Addr, table uint32) bool {
	there := slices.ContainsFunc(f.addresses[ifindex], func(a netlink.Addr) bool { return addrOf(a) == addr })
	host := netip.PrefixFrom(addr, addr.BitLen())
	return there && !slices.ContainsFunc(f.tables[table], func(r fibRoute) bool {
		return r.kind == unix.RTN_LOCAL && r.prefix == host
	})
}

func (d VRFs) intact(ctx context.Context, s *snapshot, f *fib, v intent.KernelVRF) bool {
	vrf, ok := s.vrf(v.VNI)
	if !ok || !up(vrf) || !isSettled(vrf, routing) {
		return false
	}
	for _, any := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if !f.has(lastRoute(vrf.Table, any)) {
			return false
		}
	}
	bridge := s.byMark[bridgeOf(v.VNI).mark]
	if bridge == nil || bridge.Attrs().MTU != innerMTU || !f.bare(bridge.Attrs().Index, anchor, vrf.Table) ||
		!d.p.isEnslaved(ctx, bridge, vrf, d.p.constants().RouterMAC, loose, GuardedDevice{VNI: v.VNI}) {
		return false
	}
	if dummy := s.byMark[dummyOf(v.VNI).mark]; d.p.config.Dummy && (dummy == nil || !up(dummy) || dummy.Attrs().MasterIndex != vrf.Index) ||
		!d.p.config.Dummy && dummy != nil {
		return false
	}
	inner, outer, vxlan := s.byMark[innerOf(v.VNI).mark], s.byMark[outerOf(v.VNI).mark], s.byMark[vxlanOf(v.VNI).mark]
	if d.p.config.Whole {
		waits := s.fabricCarries()
		return (waits || inner == nil && outer == nil) && vxlan != nil && d.usable(vxlan, v.VNI, d.p.localVTEP()) &&
			up(vxlan) != waits && isPort(vxlan, bridge)
	}
	return outer != nil && up(outer) && isClosed(outer) && outer.Attrs().MTU == innerMTU && vxlan == nil &&
		inner != nil && up(inner) && isPort(inner, bridge)
}

// noteInward remembers by which device the packets of a VRF come in, in whichever form.
func (d VRFs) noteInward(s *snapshot, vni intent.VNI) {
	outer, vxlan := s.byMark[outerOf(vni).mark], s.byMark[vxlanOf(vni).mark]
	switch {
	case vxlan != nil && up(vxlan):
		d.p.setInward(vni, vxlan.Attrs().Index)
	case outer != nil && up(outer):
		d.p.setInward(vni, outer.Attrs().Index)
	default:
		d.p.setInward(vni, 0)
	}
}

func isPort(l, bridge netlink.Link) bool {
	return isClosed(l) && l.Attrs().MTU == innerMTU && l.Attrs().MasterIndex == bridge.Attrs().Index
}

// isEnslaved tells whether a device is as enslave leaves it, and up. The guard is
// put once on a device that an earlier process made: its pins may be gone.
func (p *Path) isEnslaved(ctx context.Context, l netlink.Link, vrf *netlink.Vrf, mac intent.MAC, knobs []knob, g GuardedDevice) bool {
	a := l.Attrs()
	if !up(l) || a.MasterIndex != vrf.Index || string(a.HardwareAddr) != string(mac[:]) || !isSettled(l, knobs) {
		return false
	}
	g.Name, g.IfIndex = a.Name, a.Index
	if p.guards(g) {
		if p.config.Guarding == nil {
			return true
		}
		ok, err := p.config.Guarding(g)
		return ok && err == nil
	}
	return p.guard(ctx, g) == nil
}

func (p *Path) guards(g GuardedDevice) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guarded[g.IfIndex] == g
}
