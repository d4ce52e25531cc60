package underlay

import "net/netip"

// Match is an entry of a prefix list, as routers have them: prefixes within Prefix
// whose length is from GE to LE. With neither only Prefix itself, with GE alone up
// to single addresses, with LE alone from the length of Prefix.
type Match struct {
	Prefix netip.Prefix
	GE, LE uint8
}

// Lengths are the least and the largest length.
func (m Match) Lengths() (from, to int) {
	from, to = m.Prefix.Bits(), m.Prefix.Bits()
	if m.GE > 0 {
		from, to = int(m.GE), m.Prefix.Addr().BitLen()
	}
	if m.LE > 0 {
		to = int(m.LE)
	}
	return from, to
}

// Matches tells whether a prefix is one of the entry's.
func (m Match) Matches(p netip.Prefix) bool {
	from, to := m.Lengths()
	return p.Addr().BitLen() == m.Prefix.Addr().BitLen() && m.Prefix.Contains(p.Addr()) && p.Bits() >= from && p.Bits() <= to
}

// DefaultAccept is the list of a node of which none is given: single addresses,
// which is what tunnel endpoints and route reflectors are, and the default route.
func DefaultAccept() []Match {
	v4, v6 := netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	return []Match{{Prefix: v4}, {Prefix: v6}, {Prefix: v4, GE: 32}, {Prefix: v6, GE: 128}}
}
