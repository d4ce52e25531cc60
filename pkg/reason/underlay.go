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
	return []Entry{
		{UnderlayNotUnicast, nil, rejected, "The prefix is a loopback, multicast, link-local or unspecified one.", "Correct it where it is announced."},
		{UnderlayFiltered, nil, rejected, "`underlay.install.accept` has no entry for it.", "Nothing, if the node does not need it; else add an entry."},
		{UnderlayConnected, nil, rejected, "It is an address of the node, or within a network that the node is connected to: the kernel knows that way by itself.", nothing},
		{UnderlayOwnSession, nil, rejected, "It covers the address of the neighbour that it was learned from, which is on no link of the node: the session would run through the route.", "Announce the neighbour's address on the links, or learn the route from the routers on them."},
		{UnderlayLinkDown, nil, rejected, "The links of all its next hops are without a carrier.", "See the links; it is installed when one comes back."},
		{UnderlayUnresolved, nil, rejected, "None of its next hops is on a link of the node. Next hops are not looked up in other routes.", "Its sender has to announce itself as next hop on the link (`next-hop-self`); remove the family from route reflectors' sessions."},
	}
}
