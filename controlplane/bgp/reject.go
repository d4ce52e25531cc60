package bgp

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
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

// refusedFor has the reasons of package wire, which sees an announcement first: the BGP server would drop most of them
// without a word.
var refusedFor = map[wire.Refusal]Reason{
	wire.OwnAS: reason.RouteOwnAS, wire.OwnOriginator: reason.RouteOwnOriginator, wire.OwnCluster: reason.RouteOwnCluster,
	wire.Malformed: reason.RouteMalformed, wire.BadNextHop: ReasonBadNextHop,
}

// tunnelVXLAN is the tunnel type of VXLAN (RFC 9012, IANA registry).
const tunnelVXLAN = 8

// check returns the reason to reject a path, or "". A path without an
// encapsulation community counts as VXLAN: RFC 8365 section 5.1.3 leaves the
// default to configuration, and VXLAN is all that Sluice does.
func (p *path) check(own func(netip.Addr) bool) Reason {
	switch {
	case p.refused != "":
		return p.refused
	case p.unreadable:
		return ReasonUnreadable
	case !p.prefix.IsValid():
		return ReasonBadPrefix
	case intent.Martian(p.prefix):
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

func martianHop(a netip.Addr) bool {
	return !a.IsValid() || a.Zone() != "" || intent.Martian(netip.PrefixFrom(a, a.BitLen()))
}
