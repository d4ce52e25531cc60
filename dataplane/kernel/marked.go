package kernel

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Guarded names the devices whose packets only Sluice's programs keep from the
// host: sluice-vxlan, the end of each veth pair that is not in a bridge, and the
// devices that hand over to the routes of a VRF.
func Guarded(ns netns.Namespace) ([]string, error) {
	var out []string
	err := ns.Netlink(func(h *netlink.Handle) error {
		links, err := link.Dump(h.LinkList)
		if err != nil {
			return fmt.Errorf("listing links: %w", err)
		}
		for _, l := range links {
			for _, name := range l.Attrs().AltNames {
				if name == fabricMark || strings.HasPrefix(name, markHost) || strings.HasPrefix(name, markVRFEnd) || strings.HasPrefix(name, "sluice:vrf-bridge:") {
					out = append(out, l.Attrs().Name)
				}
			}
		}
		return nil
	})
	return out, err
}

// Unfinished names the veth pairs that a crash left between creation and mark.
func Unfinished(ns netns.Namespace) ([]string, error) {
	var out []string
	err := ns.Netlink(func(h *netlink.Handle) error {
		links, err := link.Dump(h.LinkList)
		if err != nil {
			return fmt.Errorf("listing links: %w", err)
		}
		for _, l := range links {
			if unfinishedPair(l) {
				out = append(out, l.Attrs().Name)
			}
		}
		return nil
	})
	return out, err
}

// RemoveUnfinished removes a pair that Unfinished named, if it is still such a one.
func RemoveUnfinished(ns netns.Namespace, name string) error {
	return ns.Netlink(func(h *netlink.Handle) error {
		l, err := find(h, name)
		if err != nil || l == nil || !unfinishedPair(l) {
			return err
		}
		if err := h.LinkDel(l); err != nil {
			return fmt.Errorf("removing the unfinished %s: %w", name, err)
		}
		return nil
	})
}

func unfinishedPair(l netlink.Link) bool {
	n, ok := number(l.Attrs().Name + "-ovs")
	return ok && l.Attrs().Name == hostName(n) && unfinished(l, "veth", hostMAC(n))
}
