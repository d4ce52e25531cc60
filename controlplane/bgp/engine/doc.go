// Package engine makes the BGP server of package bgp: GoBGP's, with its log and the connections
// that it takes.
//
// # Promises
//
//   - What the server logs goes to slog, under the neighbours' own addresses (Handles), and not more
//     often than pkg/loglimit allows. Its Panic and Fatal end nothing.
//   - New says whether the server takes connections that it is given. Where it does not, it dials by
//     itself, one to two seconds later.
package engine
