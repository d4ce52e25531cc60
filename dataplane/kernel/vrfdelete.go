package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Delete removes the devices of VRFs, and what is left of Sluice's routes in their
// tables. The VRF goes last: a device that outlived it would be one of the node's
// own routing.
func (d VRFs) Delete(ctx context.Context, keys []intent.VNI) []error {
	errs := make([]error, len(keys))
	err := d.p.config.Namespace.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return err
		}
		for i, vni := range keys {
			if err := d.delete(ctx, s, vni); err != nil {
				errs[i] = fmt.Errorf("removing the devices of VRF %d: %w", vni, err)
			}
		}
		return nil
	})
	return all(errs, err)
}

func (d VRFs) delete(ctx context.Context, s *snapshot, vni intent.VNI) error {
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
		if err := d.removeAdoptedIn(ctx, s, vrf); err != nil {
			return err
		}
	}
	if table, ok := s.tableOf(vni); ok {
		if err := s.flush(table); err != nil {
			return err
		}
	}
	return s.removeNamed(vrfOf(vni))
}

// removeAdoptedIn removes the adopted devices in a VRF that is about to go, with their
// ports. They too would be of the node's own routing then, with tenants' packets
// coming in by them.
func (d VRFs) removeAdoptedIn(ctx context.Context, s *snapshot, vrf netlink.Link) error {
	for mark, l := range s.byMark {
		if !strings.HasPrefix(mark, markAdopted) || l.Attrs().MasterIndex != vrf.Attrs().Index {
			continue
		}
		port := l.Attrs().Name
		if peer := s.byIndex[l.Attrs().ParentIndex]; peer != nil && has(peer, adoptedMark(peer.Attrs().Name)) {
			port = peer.Attrs().Name
		}
		if err := d.p.config.Ports.DropPort(ctx, port); err != nil {
			return err
		}
		switch err := s.remove(l); {
		case errors.Is(err, unix.EOPNOTSUPP):
			// An internal port of Open vSwitch, which removes it itself in a moment.
			return fmt.Errorf("%s is there still: %w", port, reconcile.ErrNotReady)
		case err != nil && !gone(err):
			return err
		}
	}
	return nil
}
