package evpn

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// icmpSources are the sources of ICMP errors towards a gateway port that has
// asked this node for no next hop: OVN keeps what another gateway chassis was
// answered (SB MAC_Binding), and a next hop with another MAC than ours is never
// asked for here. First comes the neighbour learned under the next-hop MAC, then
// the router's default route (NB Logical_Router_Static_Route), then the
// configured address.
func (t *translation) icmpSources(p ovn.GatewayPort, networks []netip.Prefix) (v4, v6 netip.Addr) {
	hops := append(t.rows.Neighbours(p.RouterPort.LogicalPort), t.defaultHops()...)
	source := func(is4 bool, configured netip.Addr) netip.Addr {
		for _, a := range hops {
			// A link-local source would not get past the router.
			if a.Is4() == is4 && !a.IsLinkLocalUnicast() && onLink(a, networks) && !isOwn(a, networks) {
				return a
			}
		}
		return configured
	}
	return source(true, t.cfg.ICMPSource4), source(false, t.cfg.ICMPSource6)
}

// defaultHops lists the next hops of the router's default routes, as far as they
// are known, in the order of the rows' identifiers.
func (t *translation) defaultHops() []netip.Addr {
	routes, _ := t.rows.StaticRoutesOf(t.out.Router)
	var out []netip.Addr
	for _, r := range routes {
		if dst, err := netip.ParsePrefix(r.IPPrefix); err != nil || dst.Bits() != 0 {
			continue
		}
		if hop, err := netip.ParseAddr(r.Nexthop); err == nil {
			out = append(out, hop)
		}
	}
	return out
}
