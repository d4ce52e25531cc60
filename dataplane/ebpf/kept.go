package ebpf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// ErrNothingKept is returned by Kept for a directory in which no VRF was pinned.
var ErrNothingKept = errors.New("no VRF was pinned")

// Kept tells why what was pinned before Load may not have forwarded until now; nil
// when it has: its VRFs and gateways can be read back whole, the device that is the
// fabric's, each device of a gateway, and each of the underlay, has its program still,
// and the kernel has the devices and tables of VRFs on its path, and their guards. It
// is to be asked before anything is attached: a device that lost its program shows then.
// The guard of a device that has gone is told of once.
func (d *Dataplane) Kept(fabric int) error {
	vrfs, err := PinnedVRFs(d.pins())
	switch {
	case err != nil:
		return err
	case len(vrfs) == 0:
		return ErrNothingKept
	}
	return errors.Join(d.keptFabric(fabric), d.keptGateways(vrfs), d.keptUnderlay(), d.keptKernelPath())
}

// keptFabric has nothing to ask where packets come in by devices of VRFs: fabric is 0.
func (d *Dataplane) keptFabric(fabric int) error {
	if fabric == 0 {
		return nil
	}
	return d.keptProgram(FabricIn, fabric)
}

func (d *Dataplane) keptGateways(vrfs map[intent.VNI]uint16) error {
	devices, err := d.gatewayDevices(vrfs)
	if err != nil {
		return err
	}
	for _, ifindex := range devices {
		if err := d.keptProgram(OverlayIn, ifindex); err != nil {
			return err
		}
	}
	return nil
}

// keptUnderlay asks about devices that are there: one that has gone takes nothing,
// and no packet comes to it.
func (d *Dataplane) keptUnderlay() error {
	if d.Staged() {
		return nil
	}
	d.store.mu.Lock()
	rows, err := d.store.underlay()
	d.store.mu.Unlock()
	if err != nil {
		return err
	}
	for ifindex, name := range rows {
		l, err := netlink.LinkByIndex(int(ifindex))
		if err != nil || l.Attrs().Name != name {
			continue
		}
		if err := d.keptProgram(UnderlayIn, int(ifindex)); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dataplane) keptProgram(p Program, ifindex int) error {
	ok, err := d.Attached(p, ifindex)
	if err == nil && !ok {
		err = fmt.Errorf("device %d has lost program %s", ifindex, p)
	}
	return err
}

// gatewayDevices are those that gateways of the VRFs are behind. While maps of an
// older layout forward, whose rows this build does not read, they are the devices
// that have links.
func (d *Dataplane) gatewayDevices(vrfs map[intent.VNI]uint16) ([]int, error) {
	if d.Staged() {
		return d.attached(OverlayIn)
	}
	set := map[int]struct{}{}
	var unsound error
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	err := d.store.eachGateway(func(_ intent.GatewayKey, row bpfGateway, e bpfEntry, g intent.Gateway) {
		if _, ok := vrfs[intent.VNI(row.Vni)]; !ok || e.Vni != row.Vni {
			unsound = fmt.Errorf("gateway %s belongs to VRF %d, of which there is no row", g.Key, row.Vni)
			return
		}
		set[int(e.Ifindex)] = struct{}{}
	})
	return slices.Sorted(maps.Keys(set)), errors.Join(err, unsound)
}
