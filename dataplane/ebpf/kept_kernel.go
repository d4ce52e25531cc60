package ebpf

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/link"
)

// keptKernelPath asks about the VRFs on the kernel path: the device that their packets
// are handed to, those that route them, each with its guard, and whether the kernel
// has their tables still. Single routes are not asked about: nothing here knows them.
// While maps of an older layout forward, the guards are those that have links.
func (d *Dataplane) keptKernelPath() error {
	if d.Staged() {
		devices, err := d.attached(VRFGuard)
		for _, ifindex := range devices {
			err = errors.Join(err, d.keptProgram(VRFGuard, ifindex))
		}
		return err
	}
	guards, handed := map[uint32]bpfGuarded{}, map[uint32]uint32{}
	_, err := pinned.Walk(d.tables[bpfMapGuardedV1], func(ifindex uint32, row bpfGuarded) { guards[ifindex] = row })
	if err != nil {
		return mapError(bpfMapGuardedV1, err)
	}
	_, err = pinned.Walk(d.tables[bpfMapVrfsV2], func(vni uint32, row bpfVrf) {
		if row.Device != 0 {
			handed[vni] = row.Device
		}
	})
	if err != nil || len(guards)+len(handed) == 0 {
		return mapError(bpfMapVrfsV2, err)
	}
	k, err := lookAtKernel()
	if err != nil {
		return err
	}
	return errors.Join(d.keptGuards(k, guards, handed), d.forgetGuards(k, guards))
}

func (d *Dataplane) keptGuards(k kernelState, guards map[uint32]bpfGuarded, handed map[uint32]uint32) error {
	// Of the fabric's side.
	routers := map[uint32]bool{}
	for _, ifindex := range slices.Sorted(maps.Keys(guards)) {
		g := guards[ifindex]
		err := k.routes(int(ifindex))
		if err == nil {
			err = d.keptProgram(VRFGuard, int(ifindex))
		}
		if err != nil {
			return fmt.Errorf("VRF %d on the kernel path: %w", g.Vni, err)
		}
		if g.Flags&uint32(bpfGuardFlagsGUARD_FROM_OVN) == 0 {
			routers[g.Vni] = true
		}
	}
	for _, vni := range slices.Sorted(maps.Keys(handed)) {
		err := k.carries(int(handed[vni]))
		if err == nil && !routers[vni] {
			err = errors.New("no device with a guard routes what comes from the fabric")
		}
		if err != nil {
			return fmt.Errorf("VRF %d on the kernel path: %w", vni, err)
		}
	}
	return nil
}

// forgetGuards removes the rows of devices that have gone: they count once.
func (d *Dataplane) forgetGuards(k kernelState, guards map[uint32]bpfGuarded) error {
	for ifindex := range guards {
		if k.links[int(ifindex)] != nil {
			continue
		}
		if err := d.Unguard(int(ifindex)); err != nil {
			return err
		}
	}
	return nil
}

// kernelState is what the kernel has of VRFs.
type kernelState struct {
	links map[int]netlink.Link
	// tables have the default route of each family that ends a VRF's.
	tables map[uint32]int
}

func lookAtKernel() (k kernelState, err error) {
	k = kernelState{links: map[int]netlink.Link{}, tables: map[uint32]int{}}
	links, err := link.Dump(netlink.LinkList)
	if err != nil {
		return k, fmt.Errorf("list devices: %w", err)
	}
	for _, l := range links {
		k.links[l.Attrs().Index] = l
	}
	filter := &netlink.Route{Type: unix.RTN_UNREACHABLE, Table: unix.RT_TABLE_UNSPEC}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := link.Dump(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, filter, netlink.RT_FILTER_TYPE|netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return k, fmt.Errorf("list routes: %w", err)
		}
		ended := map[uint32]bool{}
		for _, r := range routes {
			if ones := prefixLength(r.Dst); ones == 0 {
				ended[uint32(r.Table)] = true
			}
		}
		for table := range ended {
			k.tables[table]++
		}
	}
	return k, nil
}

func prefixLength(n *net.IPNet) int {
	if n == nil {
		return 0
	}
	ones, _ := n.Mask.Size()
	return ones
}

// carries tells why packets do not pass a device.
func (k kernelState) carries(ifindex int) error {
	l := k.links[ifindex]
	if l == nil {
		return fmt.Errorf("device %d is not there", ifindex)
	}
	if state := l.Attrs().OperState; l.Attrs().Flags&net.FlagUp == 0 || state == netlink.OperDown || state == netlink.OperLowerLayerDown {
		return fmt.Errorf("device %s is down", l.Attrs().Name)
	}
	return nil
}

// routes tells why a device does not route what comes in by the table of a VRF.
func (k kernelState) routes(ifindex int) error {
	if err := k.carries(ifindex); err != nil {
		return err
	}
	a := k.links[ifindex].Attrs()
	vrf, ok := k.links[a.MasterIndex].(*netlink.Vrf)
	if !ok {
		return fmt.Errorf("device %s is in no VRF", a.Name)
	}
	if vrf.Flags&net.FlagUp == 0 {
		return fmt.Errorf("device %s is down", vrf.Name)
	}
	if k.tables[vrf.Table] < 2 {
		return fmt.Errorf("table %d of %s has lost routes", vrf.Table, vrf.Name)
	}
	return nil
}
