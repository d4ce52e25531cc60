package kernel

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Gateways is the driver of intent.KernelGateway.
//
// The key of a segment, without a MAC, stands for a pair without a gateway port:
// it is listed to be deleted.
type Gateways struct{ p *Path }

var _ reconcile.Driver[intent.GatewayKey, intent.KernelGateway] = Gateways{}

// Gateways gives the driver of the ways into OVN.
func (p *Path) Gateways() Gateways { return Gateways{p} }

// portKey is the pair of a gateway.
func portKey(g intent.KernelGateway) intent.VRFPortKey {
	return intent.VRFPortKey{Bridge: g.Key.Bridge, VLAN: g.Key.VLAN, VNI: g.VNI}
}

// gatewaysOn reads the gateway ports of a pair from the marks of its end. One with
// marks of two rows, which a crash left, is not whole.
func gatewaysOn(k intent.VRFPortKey, end netlink.Link) (out map[intent.MAC]intent.KernelGateway, whole map[intent.MAC]bool) {
	out, count := map[intent.MAC]intent.KernelGateway{}, map[intent.MAC]int{}
	for _, name := range end.Attrs().AltNames {
		var g intent.KernelGateway
		mac, ok := readGatewayMark(name, &g)
		if !ok {
			continue
		}
		g = out[mac]
		_, _ = readGatewayMark(name, &g)
		g.Key, g.VNI = intent.GatewayKey{Bridge: k.Bridge, VLAN: k.VLAN, MAC: mac}, k.VNI
		out[mac] = g
		count[mac]++
	}
	whole = map[intent.MAC]bool{}
	for mac, n := range count {
		whole[mac] = n == 2
	}
	return out, whole
}

// List has a gateway with the zero value if anything of its pair, port, neighbours
// or addresses is not as Apply leaves it.
func (d Gateways) List(ctx context.Context) (map[intent.GatewayKey]intent.KernelGateway, error) {
	ports, err := d.p.config.Ports.OurVRFPorts()
	if err != nil {
		return nil, err
	}
	out := map[intent.GatewayKey]intent.KernelGateway{}
	err = d.p.look(takeFIB, func(s *snapshot, f *fib) error {
		all := s.allEnds()
		for k := range ports {
			if _, there := all[k]; !there {
				out[intent.GatewayKey{Bridge: k.Bridge, VLAN: k.VLAN}] = intent.KernelGateway{}
			}
		}
		for k, e := range all {
			if err := d.listPair(ctx, s, f, k, e, out); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

func (d Gateways) listPair(ctx context.Context, s *snapshot, f *fib, k intent.VRFPortKey, e ends, out map[intent.GatewayKey]intent.KernelGateway) error {
	segment := intent.GatewayKey{Bridge: k.Bridge, VLAN: k.VLAN}
	if e.vrf == nil {
		out[segment] = intent.KernelGateway{}
		return nil
	}
	found, whole := gatewaysOn(k, e.vrf)
	if len(found) == 0 {
		out[segment] = intent.KernelGateway{}
		return nil
	}
	intact, err := d.intactEnds(ctx, s, k, e, found)
	if err != nil {
		return fmt.Errorf("%s: %w", e.bridge.Attrs().Name, err)
	}
	for mac, g := range found {
		_, twice := out[g.Key]
		out[g.Key] = intent.KernelGateway{}
		if intact && whole[mac] && !twice && d.intactGateway(s, f, e.vrf, g) {
			out[g.Key] = g
		}
	}
	return nil
}

func (d Gateways) intactEnds(ctx context.Context, s *snapshot, k intent.VRFPortKey, e ends, found map[intent.MAC]intent.KernelGateway) (bool, error) {
	vrf, ok := s.vrf(k.VNI)
	if !ok || e.bridge == nil || !up(e.bridge) || !isClosed(e.bridge) || e.bridge.Attrs().MTU != d.p.config.MTU || e.vrf.Attrs().MTU != d.p.config.MTU {
		return false, nil
	}
	datapath, err := d.p.config.Ports.Datapath(k.Bridge)
	if err != nil || datapath == "netdev" && !offloadsAreOff(e.vrf.Attrs().Name) {
		return false, nil
	}
	if err := d.p.config.Ports.CheckVRFPort(ctx, k, e.bridge.Attrs().Name); err != nil {
		return false, unanswered(err)
	}
	return d.p.isEnslaved(ctx, e.vrf, vrf, d.p.constants().NextHopMAC, endKnobs, guardOf(k, found)), nil
}

func (d Gateways) intactGateway(s *snapshot, f *fib, end netlink.Link, g intent.KernelGateway) bool {
	vrf, ok := s.vrf(g.VNI)
	if !ok || !f.bare(end.Attrs().Index, anchor, vrf.Table) {
		return false
	}
	for _, a := range gatewayAddresses(g, end, vrf) {
		if !f.bare(a.on.Attrs().Index, a.addr, vrf.Table) {
			return false
		}
	}
	for _, v6 := range []bool{false, true} {
		hop, err := f.gatewayHop(end.Attrs().Index, g, v6)
		if err != nil || f.neighbours[neighbour{end.Attrs().Index, hop}] != g.Key.MAC {
			return false
		}
	}
	return true
}

// gatewayHop is what routes to a gateway port lead through: its address, as people
// expect to see it. A handle stands for it where it has none, and for IPv6: the
// kernel takes no gateway that is an address of the VRF too.
func (f *fib) gatewayHop(ifindex int, g intent.KernelGateway, v6 bool) (netip.Addr, error) {
	if !v6 && g.Addr4.IsValid() {
		return g.Addr4, nil
	}
	return f.handle(ifindex, g.Key.MAC, v6)
}

type placed struct {
	on   netlink.Link
	addr netip.Addr
}

func (p placed) key() neighbour { return neighbour{p.on.Attrs().Index, p.addr} }

// gatewayAddresses are those that the kernel takes as sources: towards OVN from
// the device there, towards the fabric, whose device is outside of the VRF, from
// the VRF itself.
func gatewayAddresses(g intent.KernelGateway, end, vrf netlink.Link) []placed {
	all := []placed{{end, g.ICMPSource4}, {end, g.ICMPSource6}, {vrf, g.Addr4}, {vrf, g.Addr6}}
	return slices.DeleteFunc(all, func(p placed) bool { return !p.addr.IsValid() })
}

// guardOf is what the guard of an end is told: of several sources the lowest.
func guardOf(k intent.VRFPortKey, found map[intent.MAC]intent.KernelGateway) GuardedDevice {
	g := GuardedDevice{VNI: k.VNI, FromOVN: true}
	for _, gateway := range found {
		if a := gateway.ICMPSource6; a.IsValid() && (!g.ICMPSource6.IsValid() || a.Less(g.ICMPSource6)) {
			g.ICMPSource6 = a
		}
	}
	return g
}

// Apply makes gateways. A change of an address makes the new one first and moves
// the routes to it.
func (d Gateways) Apply(ctx context.Context, rows []reconcile.Row[intent.GatewayKey, intent.KernelGateway]) []error {
	errs := make([]error, len(rows))
	err := d.p.look(takeDevices, func(s *snapshot, f *fib) error {
		for i, r := range rows {
			if err := d.apply(ctx, s, f, r.Value); err != nil {
				errs[i] = fmt.Errorf("gateway %s of VRF %d: %w", r.Key, r.Value.VNI, err)
			}
		}
		return nil
	})
	return all(errs, err)
}

func (d Gateways) apply(ctx context.Context, s *snapshot, f *fib, g intent.KernelGateway) error {
	if g.Key.IsSegment() {
		return reconcile.Unchanged(fmt.Errorf("a gateway port has a MAC"))
	}
	k := portKey(g)
	found := map[intent.MAC]intent.KernelGateway{}
	if end := s.end(k); end != nil {
		found, _ = gatewaysOn(k, end)
	}
	found[g.Key.MAC] = g
	end, err := d.ensureEnds(ctx, s, k, guardOf(k, found))
	if err != nil {
		return err
	}
	marks := gatewayMarks(end.Attrs().Name, g)
	for _, mark := range marks {
		if !has(end, mark) {
			if err := s.h.LinkAddAltName(end, mark); err != nil {
				return fmt.Errorf("marking %s: %w", end.Attrs().Name, err)
			}
		}
	}
	if err := d.fill(s, f, end, g); err != nil {
		return err
	}
	if err := d.retarget(s, f, end, g); err != nil {
		return err
	}
	if err := d.clear(s, f, k, end, g.Key.MAC, marks); err != nil {
		return err
	}
	return d.evict(ctx, s, f, g)
}

// fill makes the neighbours and addresses of a gateway.
func (d Gateways) fill(s *snapshot, f *fib, end netlink.Link, g intent.KernelGateway) error {
	vrf, ok := s.vrf(g.VNI)
	if !ok {
		return fmt.Errorf("vrf-%d: %w", g.VNI, reconcile.ErrNotReady)
	}
	for _, v6 := range []bool{false, true} {
		hop, err := f.gatewayHop(end.Attrs().Index, g, v6)
		if err != nil {
			return err
		}
		if err := f.setNeighbour(s.h, neighbour{end.Attrs().Index, hop}, g.Key.MAC); err != nil {
			return err
		}
	}
	// A device that loses its last address loses its routes and neighbours with it.
	if err := bareAddress(s.h, end, anchor, unix.RT_SCOPE_HOST, vrf.Table); err != nil {
		return err
	}
	for _, a := range gatewayAddresses(g, end, vrf) {
		if err := bareAddress(s.h, a.on, a.addr, unix.RT_SCOPE_UNIVERSE, vrf.Table); err != nil {
			return err
		}
	}
	return nil
}
