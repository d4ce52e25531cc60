// Package ra finds the router at the other end of a link by IPv6 router
// advertisements (RFC 4861), which is how the two ends of a BGP session without
// configured addresses come to know each other.
//
// It owns one raw socket for each link that it runs on. It tells the link-local
// address of every router whose advertisement it accepts, and advertises this node
// on the link with a router lifetime of 0: a neighbour learns the address of this
// node, and no host ever takes it for its default router (RFC 4861 section 4.2).
//
// # Promises
//
//   - Only advertisements are believed that come from the link itself: hop limit
//     255 and a link-local source (RFC 4861 section 6.1.2).
//   - A link that is not there, or goes away and comes back, is waited for.
//   - It advertises once a second for a while after a start and whenever it hears a
//     router for the first time, later every ten seconds, and in answer to
//     solicitations.
//
// It takes nothing else from an advertisement: no prefixes, no routes, no MTU. It
// configures nothing; what the kernel does with advertisements is the node's own
// setting (accept_ra).
package ra
