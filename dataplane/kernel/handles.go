package kernel

import (
	"fmt"
	"hash/fnv"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A handle is a link-local address that stands for a MAC on a device: the gateway
// of routes, with a permanent neighbour. It never appears in a packet.

// handle6 is that of IPv6: the MAC itself is in it.
func handle6(mac intent.MAC) netip.Addr {
	a := [16]byte{0xfe, 0x80, 8: 0x73, 9: 0x6c}
	copy(a[10:], mac[:])
	return netip.AddrFrom16(a)
}

// handles4 is where those of IPv4 are from, 14 bits of them. It is apart from
// 169.254.169.254 and from the low addresses that people and routers use.
var handles4 = netip.MustParsePrefix("169.254.192.0/18")

const handleCount = 1 << 14

func isHandle(a netip.Addr) bool {
	return handles4.Contains(a) || a.Is6() && a.As16()[8] == 0x73 && a.As16()[9] == 0x6c && a.IsLinkLocalUnicast()
}

// handle is the address that stands for a MAC on a device: the one that it has, or
// a free one.
func (f *fib) handle(ifindex int, mac intent.MAC, v6 bool) (netip.Addr, error) {
	if v6 {
		return handle6(mac), nil
	}
	sum := fnv.New32a()
	_, _ = sum.Write(mac[:])
	at := sum.Sum32()
	for i := range uint32(handleCount) {
		n := (at + i) % handleCount
		a := netip.AddrFrom4([4]byte{169, 254, byte(192 + n>>8), byte(n)})
		has, taken := f.neighbours[neighbour{ifindex, a}]
		if taken && has == mac || !taken && !f.isLocal(a) {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all of %s are taken: %w", handles4, reconcile.ErrForeign)
}

// isLocal tells whether the address is the node's own: no route may lead through it.
func (f *fib) isLocal(a netip.Addr) bool {
	for _, addrs := range f.addresses {
		for _, own := range addrs {
			if addrOf(own) == a {
				return true
			}
		}
	}
	return false
}

// setNeighbour makes a permanent neighbour unless it is there.
func (f *fib) setNeighbour(h *netlink.Handle, n neighbour, mac intent.MAC) error {
	if f.neighbours[n] == mac {
		return nil
	}
	if err := setNeighbour(h, n, mac); err != nil {
		return err
	}
	f.neighbours[n] = mac
	return nil
}

func (f *fib) removeNeighbour(h *netlink.Handle, n neighbour) error {
	if _, there := f.neighbours[n]; !there {
		return nil
	}
	delete(f.neighbours, n)
	return removeNeighbour(h, n)
}
