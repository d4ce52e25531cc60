package kernel

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// FabricState is what Ensure would find.
type FabricState struct {
	// IfIndex is 0 where the device is to be made, or made anew.
	IfIndex int
	// Missing: there is none, nor a part of one.
	Missing bool
	// Up: it is there, can be kept, and is up.
	Up bool
	// Yields: VXLAN devices of VRFs that are Sluice's have the UDP port.
	Yields bool
	// Differs is what is not as Ensure leaves it, for people; empty: nothing.
	Differs []string
}

// Check tells what Ensure would do, and does nothing. Its errors are those of
// Ensure that can be foreseen: reconcile.ErrForeign and *PortHeldError.
func (f *Fabric) Check() (FabricState, error) {
	var s FabricState
	err := f.config.Namespace.Netlink(func(h *netlink.Handle) error {
		l, err := find(h, FabricName)
		switch {
		case err != nil:
			return err
		case l == nil:
			s.Missing, s.Differs = true, []string{"is missing"}
		case !has(l, fabricMark) && !unfinished(l, "vxlan", fabricMAC):
			return reconcile.ErrForeign
		case !has(l, fabricMark):
			s.Differs = []string{"is what a crash left"}
			return nil // it may have the port itself
		case !f.usable(l):
			s.Differs = []string{"has another UDP port or mode"}
		default:
			s = FabricState{IfIndex: l.Attrs().Index, Up: up(l), Differs: f.corrections(h, l)}
		}
		all, err := takeSnapshot(h)
		if err != nil || s.Up {
			return err
		}
		s.Yields = len(all.carriers(f.config.Port)) > 0
		if s.IfIndex != 0 {
			return nil
		}
		return portHolder(h, f.config.Port)
	})
	if err != nil {
		return FabricState{}, fmt.Errorf("device %s: %w", FabricName, err)
	}
	return s, nil
}

// corrections are what finish would change.
func (f *Fabric) corrections(h *netlink.Handle, l netlink.Link) []string {
	var out []string
	if knobs, err := fabricKnobs(h, l); err != nil {
		out = append(out, "has sysctls that cannot be read: "+err.Error())
	} else {
		out = append(out, unsettled(l, knobs)...)
	}
	if l.Attrs().MTU != f.config.MTU {
		out = append(out, fmt.Sprintf("has MTU %d", l.Attrs().MTU))
	}
	if mac := fabricAddress(f.config.RouterMAC); string(l.Attrs().HardwareAddr) != string(mac[:]) {
		out = append(out, fmt.Sprintf("has the address %s", l.Attrs().HardwareAddr))
	}
	if !up(l) {
		out = append(out, "is down")
	}
	return out
}
