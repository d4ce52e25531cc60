package reason

// Reasons not to import a route that BGP received.
const (
	RouteUnreadable   = "unreadable"
	RouteBadPrefix    = "bad-prefix"
	RouteMartian      = "martian-prefix"
	RouteESI          = "esi"
	RouteGateway      = "gateway"
	RouteEncap        = "encapsulation"
	RouteNoVNI        = "vni-zero"
	RouteOwn          = "own-vtep"
	RouteBadNextHop   = "martian-next-hop"
	RouteFamily       = "next-hop-family"
	RouteNoRouterMAC  = "no-router-mac"
	RouteBadRouterMAC = "bad-router-mac"
	RouteNotImported  = "not-imported"
	RouteFiltered     = "filtered"
	RouteMaxPrefixes  = "max-prefixes"
	RouteUnreachable  = "next-hop-unreachable"
)

const actOnUnreachable = "Find out with `ip route get VTEP` on this node why the underlay does not carry the VTEP's address. The routes come back by themselves."

// Routes lists the reasons not to import a route.
func Routes() []Entry {
	const sender = "Correct it where it is announced."
	const overlay = "Its sender uses an overlay index; Sluice takes interface-less routes only: change the sender's Type-5 mode."
	const mac = "Its sender has to add a router MAC extended community (symmetric IRB, RFC 9135)."
	return []Entry{
		{RouteUnreadable, nil, rejected, "It cannot be decoded, or is of a kind that is not used.", sender},
		{RouteBadPrefix, nil, rejected, "The prefix length is out of range.", sender},
		{RouteMartian, nil, rejected, "The prefix is a loopback, multicast, link-local or unspecified one.", sender},
		{RouteESI, nil, rejected, "It names an Ethernet segment as overlay index (RFC 9136 section 4.3).", overlay},
		{RouteGateway, nil, rejected, "It names a gateway address as overlay index (RFC 9136 sections 4.1 and 4.2).", overlay},
		{RouteEncap, nil, rejected, "Its encapsulation is not VXLAN.", "Its sender has to use VXLAN (encapsulation 8)."},
		{RouteNoVNI, nil, rejected, "Its label is no VNI.", "Its sender has to put the VNI of the VRF into the label: is an L3VNI configured there?"},
		{RouteOwn, nil, rejected, "It is this node's own route, which came back.", nothing},
		{RouteBadNextHop, nil, rejected, "Its next hop is no address of a node.", "Its sender has to announce its VTEP as next hop; an eBGP neighbour between has to leave the next hop unchanged."},
		{RouteFamily, nil, rejected, "This node has no VTEP of the next hop's address family.", "All nodes of a VRF need VTEPs of one family."},
		{RouteNoRouterMAC, nil, rejected, "It has no router MAC.", mac},
		{RouteBadRouterMAC, nil, rejected, "Its router MAC is zero or a multicast address.", mac},
		{RouteNotImported, nil, rejected, "No VRF of this node imports its route targets. Not counted in the metric.", "Nothing, if it is not meant for this node; else add one of its route targets to `evpn.vrfs.VNI.import`, or let its node export one that the VRF imports."},
		{RouteFiltered, nil, rejected, "The import filter of the VRF denies the prefix. Counted by VRF.", "Nothing, if it is meant so; else correct `evpn.vrfs.VNI.importFilter`: the first rule that matches decides, and what none matches is denied."},
		{RouteMaxPrefixes, nil, rejected, "The VRF has as many imported prefixes as its `maxPrefixes`; those that came first stay. Counted by VRF.", "Find out who announces so many; raise `evpn.vrfs.VNI.maxPrefixes` if they are wanted."},
		{RouteUnreachable, nil, rejected, "The node has no route to the VTEP that is its next hop: none at all, or an `unreachable`, `blackhole` or `prohibit` one. Counted when the route to the VTEP is lost, and for each path received while it is.", actOnUnreachable},
	}
}

// ActOnRoute says what to do about a route that is not imported for a reason.
func ActOnRoute(word string) string {
	for _, e := range Routes() {
		if e.Word == word {
			return e.Act
		}
	}
	return ""
}
