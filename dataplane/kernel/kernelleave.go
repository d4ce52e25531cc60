package kernel

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// clear removes what the other marks of a MAC ask for and no gateway port needs
// any more, and then those marks. keep are the marks that stay.
func (d Gateways) clear(s *snapshot, f *fib, k intent.VRFPortKey, end netlink.Link, mac intent.MAC, keep []string) error {
	end, err := s.again(end.Attrs().Name)
	if err != nil {
		return err
	}
	old := *end.Attrs()
	old.AltNames = slices.DeleteFunc(slices.Clone(old.AltNames), func(name string) bool { return slices.Contains(keep, name) })
	before, _ := gatewaysOn(k, &netlink.Veth{LinkAttrs: old})
	stale, there := before[mac]
	if !there {
		return nil
	}
	needed := *end.Attrs()
	needed.AltNames = slices.DeleteFunc(slices.Clone(needed.AltNames), func(name string) bool {
		var g intent.KernelGateway
		m, ok := readGatewayMark(name, &g)
		return ok && m == mac && !slices.Contains(keep, name)
	})
	if err := d.drop(s, f, k, end, &netlink.Veth{LinkAttrs: needed}, stale); err != nil {
		return err
	}
	for _, name := range old.AltNames {
		var g intent.KernelGateway
		if m, ok := readGatewayMark(name, &g); ok && m == mac {
			if err := s.h.LinkDelAltName(end, name); err != nil {
				return fmt.Errorf("taking the mark %s off %s: %w", name, end.Attrs().Name, err)
			}
		}
	}
	s.drop(end)
	_, err = s.again(end.Attrs().Name)
	return err
}

// drop removes the neighbours and addresses of a stale row that the marks of
// needed, or another pair of the VRF, do not ask for.
func (d Gateways) drop(s *snapshot, f *fib, k intent.VRFPortKey, end, needed netlink.Link, stale intent.KernelGateway) error {
	vrf, ok := s.vrf(k.VNI)
	if !ok {
		return nil
	}
	keepAddr, keepHop := map[neighbour]bool{}, map[netip.Addr]bool{}
	for other, e := range s.allEnds() {
		if other.VNI != k.VNI || e.vrf == nil {
			continue
		}
		marks, on := e.vrf, e.vrf
		if other == k {
			marks, on = needed, end
		}
		live, _ := gatewaysOn(other, marks)
		for _, g := range live {
			for _, a := range gatewayAddresses(g, on, vrf) {
				keepAddr[a.key()] = true
			}
			for _, v6 := range []bool{false, true} {
				if hop, err := f.gatewayHop(on.Attrs().Index, g, v6); err == nil && other == k {
					keepHop[hop] = true
				}
			}
		}
	}
	for _, a := range gatewayAddresses(stale, end, vrf) {
		if !keepAddr[a.key()] {
			if err := removeAddress(s.h, a.on, a.addr); err != nil {
				return err
			}
		}
	}
	for n, mac := range f.neighbours {
		if n.ifindex == end.Attrs().Index && mac == stale.Key.MAC && !keepHop[n.addr] {
			if err := f.removeNeighbour(s.h, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// evict takes a gateway port out of the pairs of other VRFs: it changed its VRF.
func (d Gateways) evict(ctx context.Context, s *snapshot, f *fib, g intent.KernelGateway) error {
	for k, e := range s.allEnds() {
		if k.Bridge == g.Key.Bridge && k.VLAN == g.Key.VLAN && k.VNI != g.VNI && e.vrf != nil && hasGateway(k, e.vrf, g.Key.MAC) {
			if err := d.leave(ctx, s, f, k, e.vrf, g.Key.MAC); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasGateway(k intent.VRFPortKey, end netlink.Link, mac intent.MAC) bool {
	found, _ := gatewaysOn(k, end)
	_, there := found[mac]
	return there
}

// leave takes a gateway port off a pair; the last one takes the pair with it.
func (d Gateways) leave(ctx context.Context, s *snapshot, f *fib, k intent.VRFPortKey, end netlink.Link, mac intent.MAC) error {
	if err := d.clear(s, f, k, end, mac, nil); err != nil {
		return err
	}
	if left, _ := gatewaysOn(k, s.end(k)); len(left) > 0 {
		return nil
	}
	return d.removeEnds(ctx, s, k)
}

// Delete removes gateways, and pairs that have no more of them.
func (d Gateways) Delete(ctx context.Context, keys []intent.GatewayKey) []error {
	errs := make([]error, len(keys))
	err := d.p.look(takeDevices, func(s *snapshot, f *fib) error {
		for i, key := range keys {
			if err := d.delete(ctx, s, f, key); err != nil {
				errs[i] = fmt.Errorf("removing gateway %s: %w", key, err)
			}
		}
		return nil
	})
	return all(errs, err)
}

func (d Gateways) delete(ctx context.Context, s *snapshot, f *fib, key intent.GatewayKey) error {
	pairs := s.allEnds()
	ports, err := d.p.config.Ports.OurVRFPorts()
	if err != nil {
		return err
	}
	for k := range ports {
		if _, there := pairs[k]; !there {
			pairs[k] = ends{}
		}
	}
	for k, e := range pairs {
		if k.Bridge != key.Bridge || k.VLAN != key.VLAN {
			continue
		}
		var found map[intent.MAC]intent.KernelGateway
		if e.vrf != nil {
			found, _ = gatewaysOn(k, e.vrf)
		}
		switch _, there := found[key.MAC]; {
		case there:
			err = d.leave(ctx, s, f, k, e.vrf, key.MAC)
		case len(found) == 0 && key.IsSegment():
			err = d.removeEnds(ctx, s, k)
		}
		if err != nil {
			return fmt.Errorf("pair %s: %w", k, err)
		}
	}
	return nil
}
