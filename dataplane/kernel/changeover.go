package kernel

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The fabric has two forms: sluice-vxlan for all VRFs, and vxlan-<vni> for each where
// the whole node is on the kernel path. Both need the UDP port, and the kernel opens
// it for the one or the other: when a device comes up. So those of the next form are
// made down, beside those that carry, with all that leads through them; the change
// over is to set the ones down and the others up.

// isTunnel tells whether a device is Sluice's, of either form.
func isTunnel(l netlink.Link) bool { return has(l, fabricMark) || isVRFTunnel(l) }

func isVRFTunnel(l netlink.Link) bool {
	if _, ok := l.(*netlink.Vxlan); !ok {
		return false
	}
	for _, name := range l.Attrs().AltNames {
		if strings.HasPrefix(name, markVXLAN) {
			return true
		}
	}
	return false
}

// unfinishedTunnel tells whether a crash left the device before it had its mark.
func unfinishedTunnel(l netlink.Link) bool {
	if unfinished(l, "vxlan", fabricMAC) {
		return true
	}
	word, ok := strings.CutPrefix(l.Attrs().Name, "vxlan-")
	vni, known := vniOf(word)
	return ok && known && unfinished(l, "vxlan", vxlanOf(vni).mac)
}

const markVXLAN = "sluice:vrf-vxlan:"

// carriers are the VXLAN devices of VRFs that have the UDP port.
func (s *snapshot) carriers(port uint16) []netlink.Link {
	var out []netlink.Link
	for _, l := range s.byIndex {
		if isVRFTunnel(l) && up(l) && l.(*netlink.Vxlan).Port == int(port) {
			out = append(out, l)
		}
	}
	return out
}

// fabricCarries tells whether sluice-vxlan has the UDP port.
func (s *snapshot) fabricCarries() bool {
	l := s.byMark[fabricMark]
	return l != nil && up(l)
}

// changeOver sets devices down and others up. If one of those does not come up, all is
// as it was.
func changeOver(h *netlink.Handle, from, to []netlink.Link, port uint16) error {
	var errs []error
	for _, l := range from {
		if err := h.LinkSetDown(l); err != nil {
			errs = append(errs, fmt.Errorf("setting %s down: %w", l.Attrs().Name, err))
		}
	}
	for _, l := range to {
		// The socket is opened when the device comes up.
		if err := h.LinkSetUp(l); err != nil {
			if held := portHolder(h, port); held != nil {
				err = held
			}
			errs = append(errs, fmt.Errorf("setting %s up: %w", l.Attrs().Name, err))
			break
		}
	}
	if len(errs) == 0 {
		return nil
	}
	for _, l := range to {
		errs = append(errs, h.LinkSetDown(l))
	}
	for _, l := range from {
		errs = append(errs, h.LinkSetUp(l))
	}
	return errors.Join(errs...)
}

// ChangeOver gives the UDP port to the VXLAN devices of VRFs, all at once: the whole
// node is on the kernel path from then on. sluice-vxlan is down then. After an error it
// has the port as before.
func (p *Path) ChangeOver() error {
	return p.config.Namespace.Netlink(func(h *netlink.Handle) error {
		s, err := takeSnapshot(h)
		if err != nil {
			return err
		}
		ready := map[intent.VNI]netlink.Link{}
		var from, to []netlink.Link
		for mark, l := range s.byMark {
			if vni, _, ok := vrfOfMark(mark); ok && mark == vxlanOf(vni).mark && isVRFTunnel(l) && l.(*netlink.Vxlan).Port == int(p.config.Port) {
				ready[vni], to = l, append(to, l)
			}
		}
		if s.fabricCarries() {
			from = append(from, s.byMark[fabricMark])
		}
		if err := p.keepOut(); err != nil {
			return err
		}
		if err := changeOver(h, from, to, p.config.Port); err != nil {
			return err
		}
		for vni, l := range ready {
			p.setInward(vni, l.Attrs().Index)
		}
		return nil
	})
}

// keepOut has what comes from outer sources that are no VTEPs of the fabric kept away
// from VXLAN devices of VRFs, which themselves take it from anybody.
func (p *Path) keepOut() error {
	if p.config.KeepOut == nil {
		return nil
	}
	if err := p.config.KeepOut(); err != nil {
		return fmt.Errorf("attaching vtep_guard: %w", err)
	}
	return nil
}
