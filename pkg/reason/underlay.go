package reason

// Reasons not to install a route of the underlay that BGP learned.
const (
	UnderlayNotUnicast = "not-unicast"
	UnderlayFiltered   = "filtered"
	UnderlayConnected  = "connected"
	UnderlayOwnSession = "own-session"
	UnderlayLinkDown   = "link-down"
	UnderlayUnresolved = "unresolved"
)

// Underlay lists the reasons not to install a route of the underlay.
func Underlay() []Entry {
	return append([]Entry{
		{UnderlayNotUnicast, nil, rejected, "The prefix is a loopback, multicast, link-local or unspecified one.", "Correct the route where it is announced."},
		{UnderlayFiltered, nil, rejected, "`underlay.install.accept` has no entry for the prefix.", "Nothing, if the node does not need the route. Otherwise add an entry."},
		{UnderlayConnected, nil, rejected, "The prefix is an address of the node, or within a connected network: the kernel has that route by itself.", nothing},
		{UnderlayOwnSession, nil, rejected, "The prefix covers the address of the neighbour that sent the route, and the address is on no link of the node: the session would run through its own route.", "Announce the neighbour's address on the links, or learn the route from the routers on them."},
		{UnderlayLinkDown, nil, rejected, "The links of all its next hops are without a carrier.", "Check the links. The route is installed when one is up again."},
		{UnderlayUnresolved, nil, rejected, "None of its next hops is on a link of the node. Next hops are not resolved by other routes.", "Make the sender announce itself as next hop on the link (`next-hop-self`). Remove the family from route reflectors' sessions."},
		{RouteBadNextHop, nil, rejected, "BGP has refused the route: there is no next hop, or NEXT_HOP is no address of a router.", "Correct the route where it is announced."},
		{RouteUnreadable, nil, rejected, "BGP has refused the route: it cannot be decoded.", "Correct the route where it is announced."},
	}, announcements()...)
}
