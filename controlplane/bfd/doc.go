// Package bfd watches the paths to BGP neighbours by Bidirectional Forwarding
// Detection: RFC 5880 in asynchronous mode, RFC 5881 over one hop, RFC 5883 over
// several.
//
// It owns the sessions, their UDP sockets, and what is known of each path. It
// knows nothing of BGP: whoever gives it neighbours is told what becomes of the
// paths, by Config.Changed, and decides what that means.
//
// Session is the protocol: packets and times in, packets and states out. It reads
// no clock, no socket and no random numbers, so every rule of it is tested with
// the times written down. Speaker is the thin rest: sockets, timers, counters.
//
// # Promises
//
//   - A path is told lost only when it was up and packets stopped for the detection
//     time, or the neighbour itself says that it has lost it. A neighbour that says
//     AdminDown has switched BFD off: its path is not lost (RFC 5882 section 3.2).
//   - Packets that wait in a socket are read before silence is believed: a process
//     that was held up for a while does not take its own delay for the neighbour's.
//   - A packet is used, or dropped for exactly one reason, which is counted. No
//     packet, whatever is in it, ends the process or another session.
//   - A single-hop session takes packets with a TTL (hop limit) of 255 only (RFC
//     5082): nobody further away than the link can make or end one. A multihop
//     session takes them from the configured TTL on. Either takes them from its
//     neighbour's address only, and for a link-local one from its interface only.
//   - The end of Run's context is silent, or sends AdminDown to every neighbour
//     where TellEnd was called.
//   - What cannot work yet is waited for and told in Status: a port that is taken, an
//     interface that is not there.
//
// # What is left out
//
// Sessions are never put into demand mode by this side; a neighbour that asks for
// it is answered as RFC 5880 section 6.6 says. There is no echo function, which
// needs a kernel that sends the packets back, and no authentication: a packet with
// the A bit is dropped with the reason authentication, and Status names the
// neighbour's type. FRR's bfdd has neither authentication. The C bit is never set,
// since BFD ends with the process, as BGP does; docs/decisions/0011-bfd.md tells
// what follows from that, and why a stop is silent where graceful restart is on.
//
// Authentication aside, the neighbour is trusted to name intervals: the detection
// time is of its making as much as of ours (RFC 5880 section 6.8.4).
package bfd
