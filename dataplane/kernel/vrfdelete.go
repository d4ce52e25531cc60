package kernel

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Delete removes the devices of VRFs, and what is left of Sluice's routes in their
// tables. The VRF goes last: a device that outlived it would be one of the node's
// own routing.
func (d VRFs) Delete(_ context.Context, keys []intent.VNI) []error {
	errs := make([]error, len(keys))
	err := d.p.config.Namespace.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return err
		}
		for i, vni := range keys {
			if err := d.delete(s, vni); err != nil {
				errs[i] = fmt.Errorf("removing the devices of VRF %d: %w", vni, err)
			}
		}
		return nil
	})
	return all(errs, err)
}

func (d VRFs) delete(s *snapshot, vni intent.VNI) error {
	for mark, l := range s.byMark {
		if k, ok := portOfMark(mark, markVRFEnd); ok && k.VNI == vni {
			return fmt.Errorf("%s is there still: %w", l.Attrs().Name, reconcile.ErrNotReady)
		}
	}
	d.p.setInward(vni, 0)
	if err := s.removeNamed(outerOf(vni), innerOf(vni), vxlanOf(vni), bridgeOf(vni), dummyOf(vni)); err != nil {
		return err
	}
	if vrf, ok := s.vrf(vni); ok {
		routes, err := tableRoutes(vrf.Table)
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.protocol == RouteProtocol {
				if err := removeRoute(s.h, r); err != nil {
					return err
				}
			}
		}
	}
	return s.removeNamed(vrfOf(vni))
}
