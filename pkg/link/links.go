package link

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Link is a link with what says where routers on it are.
type Link struct {
	Name string
	// Index is the kernel's number: a link that is made again has another one.
	Index int
	// Carrier: packets can leave by it. It is set up, and the cable is in.
	Carrier bool
	// Loopback: it leads to no one.
	Loopback bool
	MTU      int
	// Prefixes are its addresses, each with the length of its network.
	Prefixes []netip.Prefix
}

// MTU is that of one link.
func (f *Facts) MTU(name string) (int, error) {
	mtu := 0
	err := f.ns.Netlink(func(h *netlink.Handle) error {
		l, err := h.LinkByName(name)
		if err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		mtu = l.Attrs().MTU
		return nil
	})
	return mtu, err
}

// Links lists all links with their addresses, in the kernel's order.
func (f *Facts) Links() ([]Link, error) {
	links, _, err := f.Host().Read(true)
	return links, err
}

func linksOf(links []netlink.Link, addrs []netlink.Addr) []Link {
	at := make(map[int]int, len(links))
	out := make([]Link, 0, len(links))
	for _, l := range links {
		a := l.Attrs()
		at[a.Index] = len(out)
		out = append(out, Link{
			Name: a.Name, Index: a.Index, MTU: a.MTU, Loopback: a.Flags&net.FlagLoopback != 0,
			Carrier: a.Flags&net.FlagUp != 0 && a.RawFlags&unix.IFF_LOWER_UP != 0,
		})
	}
	for _, a := range addrs {
		i, known := at[a.LinkIndex]
		if p, ok := prefix(a.IPNet); ok && known {
			out[i].Prefixes = append(out[i].Prefixes, p)
		}
	}
	return out
}
