package pinned

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The second line: the last filter of a device's clsact qdisc drops whatever
// comes to it. A device that lost its program drops everything then, and hands
// nothing to the host. It is a program of two instructions, and not matchall
// with a drop action: those would need two more parts of the kernel, where
// NET_CLS_BPF is needed anyway.
//
// It costs a forwarded packet nothing. The kernel asks clsact only about what
// the programs of tcx left undecided (TC_ACT_UNSPEC), and Sluice's end with a
// redirect or a drop. Without tcx the program is the first filter of the same
// qdisc, and no other is asked after one that decides.
const (
	// RefuseName is the filter's name.
	RefuseName     = "sluice_refuse"
	refuseHandle   = 1
	refusePriority = 0xffff // the last
)

var refusal = asm.Instructions{asm.Mov.Imm(asm.R0, int32(netlink.TC_ACT_SHOT)), asm.Return()}

// Refuse makes the second line of a device, or leaves the one that is there. The
// device keeps it until it goes.
func Refuse(ifindex int) error {
	if err := ensureClsact(ifindex); err != nil {
		return err
	}
	if there, err := Refuses(ifindex); err != nil || there {
		return err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: RefuseName, Type: ebpf.SchedCLS, License: "GPL", Instructions: refusal})
	if err != nil {
		return fmt.Errorf("load program %s: %w", RefuseName, err)
	}
	defer prog.Close() // the filter holds it
	filter := &netlink.BpfFilter{FilterAttrs: filterAttrs(ifindex, netlink.HANDLE_MIN_INGRESS, refuseHandle, refusePriority), Fd: prog.FD(), Name: RefuseName, DirectAction: true}
	if err := netlink.FilterReplace(filter); err != nil {
		return fmt.Errorf("filter %s: %w", RefuseName, err)
	}
	return nil
}

// Refuses tells whether a device has its second line. A foreign filter in its
// place is an error; one before it is not: what that lets pass comes to it only
// when the program is lost.
func Refuses(ifindex int) (bool, error) {
	all, err := filters(ifindex, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return false, err
	}
	for _, f := range all {
		if f.Attrs().Priority != refusePriority {
			continue
		}
		b, ok := f.(*netlink.BpfFilter)
		if !ok || b.Name != RefuseName {
			return false, fmt.Errorf("filter of type %s has priority %d, where Sluice's last one has to be; take it off (tc filter del): %w",
				f.Type(), refusePriority, reconcile.ErrForeign)
		}
		// As all of bpf/, which is built for little-endian machines alone.
		same, err := refusal.HasTag(b.Tag, binary.LittleEndian)
		if err != nil {
			return false, fmt.Errorf("filter %s: %w", RefuseName, err)
		}
		if same && b.DirectAction && b.Handle == refuseHandle {
			return true, nil
		}
	}
	return false, nil
}
