package link

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
)

// Host reads the links and addresses of one network namespace again and again. One goroutine
// uses it.
type Host struct {
	facts *Facts
	links []netlink.Link // as last read; nil: they are to be read
}

// Host has read nothing yet.
func (f *Facts) Host() *Host { return &Host{facts: f} }

// Read lists all links and all addresses, in the kernel's order. It reads the links anew if they
// have changed, as far as the caller knows, or if one of them is not known that has an address.
func (h *Host) Read(changed bool) (links []Link, addresses []Address, err error) {
	if changed {
		h.links = nil
	}
	err = h.facts.ns.Netlink(func(handle *netlink.Handle) (err error) {
		if err := h.list(handle); err != nil {
			return err
		}
		addrs, err := Dump(func() ([]netlink.Addr, error) { return handle.AddrList(nil, netlink.FAMILY_ALL) })
		if err != nil {
			return fmt.Errorf("listing addresses: %w", err)
		}
		known := map[int]bool{}
		for _, l := range h.links {
			known[l.Attrs().Index] = true
		}
		if slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return !known[a.LinkIndex] }) {
			h.links = nil
			err = h.list(handle)
		}
		links, addresses = linksOf(h.links, addrs), addressesOf(h.links, addrs)
		return err
	})
	return links, addresses, err
}

func (h *Host) list(handle *netlink.Handle) (err error) {
	if h.links != nil {
		return nil
	}
	if h.links, err = Dump(handle.LinkList); err != nil {
		h.links = nil
		return fmt.Errorf("listing links: %w", err)
	}
	return nil
}
