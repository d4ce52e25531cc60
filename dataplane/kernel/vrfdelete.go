package kernel

import (
	"context"
	"fmt"
	"strings"

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
	if err := d.p.unguard(s.byMark[bridgeOf(vni).mark]); err != nil {
		return err
	}
	if err := s.removeNamed(outerOf(vni), innerOf(vni), vxlanOf(vni), bridgeOf(vni), dummyOf(vni)); err != nil {
		return err
	}
	if vrf, ok := s.vrf(vni); ok {
		if err := s.removeAdoptedIn(vrf); err != nil {
			return err
		}
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

// removeAdoptedIn removes the adopted devices in a VRF that is about to go. They too
// would be of the node's own routing then, with tenants' packets coming in by them.
func (s *snapshot) removeAdoptedIn(vrf netlink.Link) error {
	for mark, l := range s.byMark {
		if strings.HasPrefix(mark, markAdopted) && l.Attrs().MasterIndex == vrf.Attrs().Index {
			if err := s.remove(l); err != nil {
				return err
			}
		}
	}
	return nil
}
