// Package underlay decides which routes of the fabric the node itself uses: learned
// unicast routes and the node's links in, rows of the kernel's main table out.
//
// It is pure functions: no I/O, no clock, no log. docs/decisions/0012-underlay.md
// gives the reasons.
//
// # Promises
//
//   - A row leads only to routers that are on a link with a carrier: next hops are
//     not resolved through other routes. One whose link lost its carrier is left
//     out, and comes back with it.
//   - A destination within a network that the node is connected to is never a row,
//     nor an address of its own: what the kernel knows by itself stays as it is.
//   - A route that covers the neighbour that it was learned from is no row, unless
//     that neighbour is on a link: the session would run through itself.
//   - Of a pair of next hops the link-local one is used on a session of its link, and
//     elsewhere where the global one is on no link (RFC 2545 section 3).
//   - Every learned route is in Result.Rows or has one reason in Result.Refused, also one
//     that BGP has refused.
package underlay
