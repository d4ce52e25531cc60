// Package wire owns the TCP connections with BGP neighbours. It reads each message
// before the BGP server does, and writes each one that the server sends.
//
// It owns the listening sockets, the connections with their options (TCP-MD5, TTL
// security, source address), the choice between two connections with one neighbour, and a
// loopback connection per neighbour over which the BGP server speaks. The server knows a
// neighbour by the loopback address of that connection, its handle.
//
// # Promises
//
//   - What reaches the server is well-formed and nothing that the server refuses by itself, and
//     holds nothing that Sluice does not read: EVPN routes of Type 5, IPv4 and IPv6 unicast
//     routes, and the attributes that the choice of paths and the import need. An NLRI of
//     another EVPN type is left out (RFC 7606 section 5.4), the others of its UPDATE are not.
//   - An announcement replaces the neighbour's earlier one of the same route, whatever becomes of
//     it (RFC 4271 section 9). One that is refused reaches the server as a route with a Note.
//   - A next hop is read in all forms that its family has, and NEXT_HOP for the NLRI field alone.
//   - A well-formed UPDATE stays one, and none becomes End-of-RIB.
//   - A message that ends the session by RFC 4271 or RFC 7606 is answered here with its
//     NOTIFICATION. Routes that cannot be read are left out and told (Ignored); what can be read
//     of such an UPDATE is refused, or withdrawn.
//   - Each neighbour is told of this node's restart (RFC 4724, the R bit), until it has all
//     routes of this node once; and that it forwards on over that, and over the loss of a
//     session (the F bits).
//   - While this node has routes still to announce (Neighbor.Unfinished), the End-of-RIB that
//     the server sends as a session begins does not reach the neighbour. The server's next
//     one does, after Finish.
//   - A neighbour with hold time 0 gets no keepalives and may be silent (RFC 4271 section 4.2).
//   - Another node with this node's router ID or VTEP is told of (Doubled), also where the
//     server takes its routes for this node's own and drops them.
//   - Of two connections with one neighbour the one stays that RFC 4271 section 6.8 names.
//   - Add, Hold and Remove return at once. Close ends all connections without a NOTIFICATION.
//
// The rewriting of messages (Agreement) is made of functions from bytes to bytes.
//
// docs/decisions/0020-wire.md gives the reasons and the cost.
package wire
