package wire

import (
	"net/netip"
	"slices"
)

// nextHop is where routes lead. Beside a global address there may be a link-local one (RFC 2545
// section 3).
type nextHop struct{ addr, linkLocal netip.Addr }

// hop reads a next hop of the family: an IPv4 or IPv6 address, or a pair of IPv6 addresses, each with
// or without the route distinguisher of VPN families (RFC 2545 section 3, RFC 4364 section 4.3.4, RFC
// 8950 section 3). It has no address where the length is of none of them. Of a pair the global address
// counts, wherever it stands, else the link-local one; some neighbours fill up with "::", or send the
// link-local address twice.
func (f Family) hop(b []byte) (h nextHop) {
	size := 16
	switch n := len(b); {
	case (n == 4 || n == 12) && f != ipv6:
		size = n
	case n == 16 || n == 32:
	case n == 24 || n == 48:
		size = 24
	default:
		return h
	}
	var none netip.Addr
	for one := range slices.Chunk(b, size) {
		if size == 12 || size == 24 {
			one = one[8:]
		}
		a, _ := netip.AddrFromSlice(one)
		switch a = a.Unmap(); {
		case a.IsUnspecified():
			none = a
		case a.Is6() && a.IsLinkLocalUnicast():
			if !h.linkLocal.IsValid() {
				h.linkLocal = a
			}
		case !h.addr.IsValid():
			h.addr = a
		}
	}
	switch {
	case !h.addr.IsValid() && h.linkLocal.IsValid():
		h = nextHop{addr: h.linkLocal}
	case !h.addr.IsValid():
		h.addr = none
	case f == evpn:
		h.linkLocal = netip.Addr{} // tunnels end at no such address
	}
	return h
}

// bytes is the address as the server reads it with routes of the family.
func (h nextHop) bytes(f Family) []byte {
	switch {
	case !h.addr.IsValid() && f != ipv6:
		return make([]byte, 4)
	case !h.addr.IsValid():
		return make([]byte, 16)
	case f == ipv6:
		b := h.addr.As16()
		return b[:]
	}
	return h.addr.AsSlice()
}

// routable tells whether NEXT_HOP may be that of IPv4 routes: the server takes no others. An address
// of this node is one of those: the route is resolved to nothing then.
func (a Agreement) routable(hop netip.Addr) bool {
	if !hop.Is4() {
		return false
	}
	first := hop.As4()[0]
	return first != 0 && first < 224 && (first != 127 || a.Loopback)
}
