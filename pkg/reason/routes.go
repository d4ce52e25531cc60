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

// Reasons not to use an announcement of a neighbour at all, of EVPN or of plain unicast. The neighbour's
// earlier announcement of the route is replaced by it (RFC 4271 section 9).
const (
	RouteOwnAS         = "own-as"
	RouteOwnOriginator = "own-originator-id"
	RouteOwnCluster    = "own-cluster-id"
	RouteMalformed     = "malformed-attributes"
)

const actOnUnreachable = "Run `ip route get VTEP` on this node to find why the underlay does not carry the VTEP's address. The routes return by themselves."

// Routes lists the reasons not to import a route.
func Routes() []Entry {
	const sender = "Correct the route where it is announced."
	const overlay = "Change the sender's Type-5 mode: it uses an overlay index, and Sluice takes interface-less routes only."
	const mac = "Make the sender add a router MAC extended community (symmetric IRB, RFC 9135)."
	return append(announcements(), []Entry{
		{RouteUnreadable, nil, rejected, "The route cannot be decoded, or is of an unused kind.", sender},
		{RouteBadPrefix, nil, rejected, "The prefix length is out of range.", sender},
		{RouteMartian, nil, rejected, "The prefix is a loopback, multicast, link-local or unspecified one.", sender},
		{RouteESI, nil, rejected, "The route names an Ethernet segment as overlay index (RFC 9136 section 4.3).", overlay},
		{RouteGateway, nil, rejected, "The route names a gateway address as overlay index (RFC 9136 sections 4.1 and 4.2).", overlay},
		{RouteEncap, nil, rejected, "The encapsulation is not VXLAN.", "Make the sender use VXLAN (encapsulation 8)."},
		{RouteNoVNI, nil, rejected, "The label is no VNI.", "Make the sender put the VNI of the VRF into the label: check whether it has an L3VNI configured."},
		{RouteOwn, nil, rejected, "The route is this node's own, returned by a neighbour.", nothing},
		{RouteBadNextHop, nil, rejected, "The next hop is no address of a node.", "Make the sender announce its VTEP as next hop. Make eBGP neighbours between leave the next hop unchanged."},
		{RouteFamily, nil, rejected, "This node has no VTEP of the next hop's address family.", "Give all nodes of the VRF VTEPs of one family."},
		{RouteNoRouterMAC, nil, rejected, "The route has no router MAC.", mac},
		{RouteBadRouterMAC, nil, rejected, "The router MAC is zero or a multicast address.", mac},
		{RouteNotImported, nil, rejected, "No VRF of this node imports the route's targets. Not counted in the metric.", "Nothing, if the route is not meant for this node. Otherwise add one of its route targets to `evpn.vrfs.VNI.import`, or let its node export one that the VRF imports."},
		{RouteFiltered, nil, rejected, "The import filter of the VRF denies the prefix. Counted by VRF.", "Nothing, if intended. Otherwise correct `evpn.vrfs.VNI.importFilter`: the first rule that matches decides; without a match the prefix is denied."},
		{RouteMaxPrefixes, nil, rejected, "The VRF has imported as many prefixes as its `maxPrefixes`. The first ones stay. Counted by VRF.", "Find out who announces so many. Raise `evpn.vrfs.VNI.maxPrefixes` if they are wanted."},
		{RouteUnreachable, nil, rejected, "The node has no route to the VTEP that is the next hop: none at all, or an `unreachable`, `blackhole` or `prohibit` one. Counted when the route to the VTEP is lost, and for each path received meanwhile.", actOnUnreachable},
	}...)
}

// announcements lists the reasons not to use an announcement.
func announcements() []Entry {
	return []Entry{
		{RouteOwnAS, nil, rejected, "The node's own AS is in the AS_PATH (RFC 4271 section 9.1.2), as when all nodes have one AS behind eBGP routers.", "Give the nodes different AS numbers, or let the routers replace the nodes' AS in the path (FRR: `neighbor … as-override`). Nothing, if the route is this node's own, returned by a neighbour."},
		{RouteOwnOriginator, nil, rejected, "The ORIGINATOR_ID is the node's own router ID (RFC 4456 section 8): a reflector has returned one of its routes, or another node has the router ID.", "If `sluicectl status` has `same-router-id`, set `bgp.routerID` on one of the nodes. Otherwise nothing."},
		{RouteOwnCluster, nil, rejected, "The node's own router ID is in the CLUSTER_LIST (RFC 4456 section 8): a route reflector has it as its cluster ID.", "Give the reflector another cluster ID (FRR: `bgp cluster-id`), or set `bgp.routerID` on the node."},
		{RouteMalformed, nil, rejected, "A path attribute is missing or malformed, so the route counts as withdrawn (RFC 7606).", "Find out what the neighbour sends: capture its UPDATE messages, for example with `tcpdump`, and report them to its vendor."},
	}
}

// Refusing lists the reasons of neighbours whose announcements the node refuses and needs. An own route
// that comes back is usual, and another node with the router ID has an object of its own.
func Refusing() (out []Entry) {
	for _, e := range announcements() {
		if e.Word != RouteOwnOriginator {
			out = append(out, Entry{e.Word, []string{"neighbor"}, warning, "Announcements of the neighbour are refused. " + e.Means, e.Act})
		}
	}
	return out
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
