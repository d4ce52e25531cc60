package ebpf

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// VRFGuard is the program of the devices that hand over to the routes of a VRF on
// the kernel path. It forwards nothing itself: Programs does not have it.
const VRFGuard Program = 2

// Guard is a device with VRFGuard.
type Guard struct {
	IfIndex int
	VNI     intent.VNI
	// FromOVN: the device is the VRF's end of a pair to a provider bridge.
	FromOVN bool
	// ICMPSource6 is the source of packet-too-big towards OVN. Invalid: none is sent.
	ICMPSource6 netip.Addr
}

func (g Guard) row() bpfGuarded {
	r := bpfGuarded{Vni: uint32(g.VNI)}
	if g.FromOVN {
		r.Flags = uint32(bpfGuardFlagsGUARD_FROM_OVN)
	}
	if g.ICMPSource6.Is6() {
		r.Icmp6 = g.ICMPSource6.As16()
	}
	return r
}

// Guard puts VRFGuard on a device, with its row first: without one it drops all.
// Doing it again is no change.
func (d *Dataplane) Guard(g Guard) error {
	m := d.tables[bpfMapGuardedV1]
	key := uint32(g.IfIndex)
	err := m.Put(key, g.row())
	if err := mapError(bpfMapGuardedV1, err); errors.Is(err, ErrFull) {
		if err := d.sweepGuards(); err != nil {
			return err
		}
		if err := mapError(bpfMapGuardedV1, m.Put(key, g.row())); err != nil {
			return fmt.Errorf("guard of device %d: %w", g.IfIndex, err)
		}
	} else if err != nil {
		return fmt.Errorf("guard of device %d: %w", g.IfIndex, err)
	}
	return d.Attach(VRFGuard, g.IfIndex)
}

// sweepGuards removes the rows of devices that have gone. Their pins go with the next
// list of them: see forgetGone.
func (d *Dataplane) sweepGuards() error {
	m := d.tables[bpfMapGuardedV1]
	var stale []uint32
	_, err := pinned.Walk(m, func(index uint32, _ bpfGuarded) {
		if _, err := netlink.LinkByIndex(int(index)); errors.As(err, &netlink.LinkNotFoundError{}) {
			stale = append(stale, index)
		}
	})
	if err != nil {
		return mapError(bpfMapGuardedV1, err)
	}
	for _, index := range stale {
		if err := m.Delete(index); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return mapError(bpfMapGuardedV1, err)
		}
	}
	return nil
}

// Guarding tells whether a device is as Guard leaves it.
func (d *Dataplane) Guarding(g Guard) (bool, error) {
	var row bpfGuarded
	err := d.tables[bpfMapGuardedV1].Lookup(uint32(g.IfIndex), &row)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("guard of device %d: %w", g.IfIndex, mapError(bpfMapGuardedV1, err))
	}
	if row != g.row() {
		return false, nil
	}
	return d.Attached(VRFGuard, g.IfIndex)
}

// Unguard forgets a device that is about to be removed: what comes in until then is
// dropped. A row that is there still is of a device that has to be there: see Kept.
func (d *Dataplane) Unguard(ifindex int) error {
	err := d.tables[bpfMapGuardedV1].Delete(uint32(ifindex))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("guard of device %d: %w", ifindex, mapError(bpfMapGuardedV1, err))
	}
	return d.Detach(VRFGuard, ifindex)
}
