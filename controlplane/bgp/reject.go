package bgp

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// Reason is why a received route is not imported.
type Reason string

// The reasons, in the order in which they are checked; pkg/reason says what each
// means.
const (
	ReasonUnreadable   Reason = reason.RouteUnreadable
	ReasonBadPrefix    Reason = reason.RouteBadPrefix
	ReasonMartian      Reason = reason.RouteMartian
	ReasonESI          Reason = reason.RouteESI
	ReasonGateway      Reason = reason.RouteGateway
	ReasonEncap        Reason = reason.RouteEncap
	ReasonNoVNI        Reason = reason.RouteNoVNI
	ReasonOwn          Reason = reason.RouteOwn
	ReasonBadNextHop   Reason = reason.RouteBadNextHop
	ReasonFamily       Reason = reason.RouteFamily
	ReasonNoRouterMAC  Reason = reason.RouteNoRouterMAC
	ReasonBadRouterMAC Reason = reason.RouteBadRouterMAC
)

// tunnelVXLAN is the tunnel type of VXLAN (RFC 9012, IANA registry).
const tunnelVXLAN = 8

// check returns the reason to reject a path, or "". A path without an
// encapsulation community counts as VXLAN: RFC 8365 section 5.1.3 leaves the
// default to configuration, and VXLAN is all that Sluice does.
func (p *path) check(own func(netip.Addr) bool) Reason {
	switch {
	case p.unreadable:
		return ReasonUnreadable
	case !p.prefix.IsValid():
		return ReasonBadPrefix
	case martianPrefix(p.prefix):
		return ReasonMartian
	case p.esi:
		return ReasonESI
	case p.gateway:
		return ReasonGateway
	case p.otherEncap:
		return ReasonEncap
	case p.hop.VNI == 0 || p.hop.VNI > intent.MaxVNI:
		return ReasonNoVNI
	case own(p.hop.VTEP):
		return ReasonOwn
	case martianHop(p.hop.VTEP):
		return ReasonBadNextHop
	case !p.hasMAC:
		return ReasonNoRouterMAC
	case p.hop.RouterMAC.IsZero() || p.hop.RouterMAC[0]&1 != 0:
		return ReasonBadRouterMAC
	}
	return ""
}

// martians are the prefixes inside which no tenant destination lies.
var martians = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("::ffff:0:0/96"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// martianPrefix: the default route and others that merely contain a martian are
// fine.
func martianPrefix(p netip.Prefix) bool {
	for _, m := range martians {
		if m.Bits() <= p.Bits() && m.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

func martianHop(a netip.Addr) bool {
	return !a.IsValid() || a.Zone() != "" || martianPrefix(netip.PrefixFrom(a, a.BitLen()))
}
