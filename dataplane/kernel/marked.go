package kernel

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Guarded names the devices whose packets only Sluice's programs keep from the
// host: sluice-vxlan, and the end of each veth pair that is not in a bridge.
func Guarded(ns netns.Namespace) ([]string, error) {
	var out []string
	err := ns.Netlink(func(h *netlink.Handle) error {
		links, err := link.Dump(h.LinkList)
		if err != nil {
			return fmt.Errorf("listing links: %w", err)
		}
		for _, l := range links {
			for _, name := range l.Attrs().AltNames {
				if name == fabricMark || strings.HasPrefix(name, markHost) {
					out = append(out, l.Attrs().Name)
				}
			}
		}
		return nil
	})
	return out, err
}
