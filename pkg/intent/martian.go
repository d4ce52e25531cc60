package intent

import "net/netip"

// martians are the prefixes inside which no destination of a tenant lies (RFC 1812 section
// 5.3.7, RFC 6890; bpf/lib/parse.h has the same). 240.0.0.0/4 is not among them: clouds use it.
var martians = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("::ffff:0:0/96"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// Martian tells whether a prefix lies where no destination of a tenant does. The default
// route, and others that merely contain such a place, are fine.
func Martian(p netip.Prefix) bool {
	for _, m := range martians {
		if m.Bits() <= p.Bits() && m.Contains(p.Addr()) {
			return true
		}
	}
	return false
}
