package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// ends are the two ends of a VRF's pair to a provider bridge; one may be missing.
type ends struct{ vrf, bridge netlink.Link }

// allEnds finds ours by their marks.
func (s *snapshot) allEnds() map[intent.VRFPortKey]ends {
	out := map[intent.VRFPortKey]ends{}
	for mark, l := range s.byMark {
		if k, ok := portOfMark(mark, markVRFEnd); ok {
			e := out[k]
			e.vrf = l
			out[k] = e
		} else if k, ok := portOfMark(mark, markBridgeEnd); ok {
			e := out[k]
			e.bridge = l
			out[k] = e
		}
	}
	return out
}

// end is the VRF's end of a pair.
func (s *snapshot) end(k intent.VRFPortKey) netlink.Link {
	n, _ := endsOf(k, 0)
	return s.byMark[n.mark]
}

// endKnobs filter the reverse path strictly: what comes from OVN has to come from
// where the VRF's route to its source leads.
var endKnobs = routing

// ensureEnds makes the pair; the order is: marks, guard, VRF, port and default
// flow, up.
func (d Gateways) ensureEnds(ctx context.Context, s *snapshot, k intent.VRFPortKey, g GuardedDevice) (netlink.Link, error) {
	vrf, ok := s.vrf(k.VNI)
	if !ok {
		return nil, reconcile.Unchanged(fmt.Errorf("vrf-%d: %w", k.VNI, reconcile.ErrNotReady))
	}
	datapath, err := d.p.config.Ports.Datapath(k.Bridge)
	if err != nil {
		return nil, reconcile.Unchanged(err)
	}
	e := s.allEnds()[k]
	if e.vrf == nil || e.bridge == nil {
		if e, err = d.createEnds(ctx, s, k); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(failClosed(s.h, e.bridge), setMTU(s.h, e.bridge, d.p.config.MTU), setMTU(s.h, e.vrf, d.p.config.MTU)); err != nil {
		return nil, err
	}
	if datapath == "netdev" {
		if err := offloadsOff(e.vrf.Attrs().Name); err != nil {
			return nil, err
		}
	}
	if err := d.p.enslave(ctx, s, e.vrf, vrf, d.p.constants().NextHopMAC, endKnobs, g); err != nil {
		return nil, err
	}
	// A frame that left before the default flow would be switched like any other.
	if err := d.p.config.Ports.EnsureVRFPort(ctx, k, e.bridge.Attrs().Name); err != nil {
		return nil, err
	}
	for _, l := range []netlink.Link{e.bridge, e.vrf} {
		if err := s.h.LinkSetUp(l); err != nil {
			return nil, fmt.Errorf("setting %s up: %w", l.Attrs().Name, err)
		}
	}
	return s.again(e.vrf.Attrs().Name)
}

// createEnds makes the pair with the lowest free number. A port whose device has
// gone goes first: ovs-vswitchd would never open the new one of that name.
func (d Gateways) createEnds(ctx context.Context, s *snapshot, k intent.VRFPortKey) (ends, error) {
	ports, err := d.p.config.Ports.OurVRFPorts()
	if err != nil {
		return ends{}, err
	}
	if _, there := ports[k]; there {
		if err := d.p.config.Ports.RemoveVRFPort(ctx, k); err != nil {
			return ends{}, err
		}
	}
	if len(endMark(k)) > maxMark {
		return ends{}, errors.New("no bridge has a name of this length")
	}
	for n := range maxEnds {
		vrf, bridge := endsOf(k, n)
		if s.taken(vrf) || s.taken(bridge) {
			continue
		}
		if _, taken := d.p.config.Ports.HasPort(bridge.name); taken {
			continue
		}
		lv, lb, err := s.pairOf(vrf, bridge, d.p.config.MTU)
		return ends{lv, lb}, err
	}
	return ends{}, fmt.Errorf("all names from %s to %s are taken: %w", endName(k.VNI, 0), endName(k.VNI, maxEnds-1), reconcile.ErrForeign)
}

// maxMark is ALTIFNAMSIZ without the final zero.
const maxMark = 127

func endMark(k intent.VRFPortKey) string {
	_, bridge := endsOf(k, 0)
	return bridge.mark
}

// taken tells whether another device has the name.
func (s *snapshot) taken(n named) bool {
	l := s.byName[n.name]
	return l != nil && !has(l, n.mark) && !unfinished(l, n.kind, n.mac)
}

// removeEnds takes the port out of the bridge before the pair goes.
func (d Gateways) removeEnds(ctx context.Context, s *snapshot, k intent.VRFPortKey) error {
	if err := d.p.config.Ports.RemoveVRFPort(ctx, k); err != nil {
		return err
	}
	vrf, bridge := endsOf(k, 0)
	if err := d.p.unguard(s.byMark[vrf.mark]); err != nil {
		return err
	}
	for _, l := range []netlink.Link{s.byMark[vrf.mark], s.byMark[bridge.mark]} {
		if l == nil {
			continue
		}
		if still, err := find(s.h, l.Attrs().Name); err != nil || still == nil {
			if err != nil {
				return err
			}
			s.drop(l)
			continue
		}
		if err := s.remove(l); err != nil {
			return err
		}
	}
	return nil
}
