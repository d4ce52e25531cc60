// Package bgp speaks BGP for a node: it announces tenant prefixes as EVPN
// Type-5 routes (RFC 9136, interface-less, symmetric IRB over VXLAN) and turns
// the routes of other nodes into intent.Route rows, VRF by VRF.
//
// It owns the BGP sessions, the set of announced routes, the copy of what the
// neighbours sent, and the list of tunnel endpoints behind it. GoBGP does the
// protocol, over connections that package wire owns; it is imported here and nowhere
// else, and none of its types leave the package. Whether a prefix may be announced
// yet is not decided here, but by the gates of pkg/tables (gates.go).
//
// # Promises
//
//   - Set takes the whole wanted set and sends the difference. Update costs its
//     own size. Both return after the BGP server has taken every change;
//     withdrawals go before additions, except that a route whose distinguisher
//     changes is announced anew before the old one is withdrawn.
//   - One neighbour's routes never travel on to another: a node is no transit.
//   - A received route is imported or rejected for exactly one reason, which is
//     counted. A rejected route stops no other. It has replaced the neighbour's earlier
//     one all the same, and is listed until it is replaced or withdrawn.
//   - Watch delivers every change of the import tables in order. Changes that a
//     slow reader has not fetched are merged, so that what waits is bounded by
//     the size of the tables.
//   - Imports are complete (InSync) once all policies are there (PoliciesComplete)
//     and each neighbour has sent End-of-RIB (RFC 4724), or has had one restart time
//     for it since its session could start. The routes of a neighbour that restarts
//     gracefully are kept meanwhile.
//   - Sessions start at once, also those of a speaker that restarts, and routes go out as
//     they are given. The End-of-RIB of one that restarts follows after Ready, to neighbours
//     without EVPN after UnicastReady: it does not come before the routes. Neighbours with
//     plain unicast get it after DeferralTime at the latest: one that restarts too may wait
//     for it with its own routes, which may be the way to what the others wait for.
//   - The end by Stop(false) is told to the neighbours, and not to Watch or Unicast:
//     what was learned stays as it is.
//   - A change of a VRF's policy looks only at the routes with its route targets.
//   - What cannot start yet is waited for, told in Status, and stops nothing else:
//     a port that is taken, a link-local neighbour whose interface is not there, a
//     route or a policy that the server did not take.
//
// # Choice of paths
//
// Among the valid paths of a VRF and prefix whose VTEP the node has a route to
// (SetUnreachable), in the order of RFC 4271 section 9.1.2.2: not long-lived stale (RFC 9494), not of a node that is being drained
// (the graceful-shutdown community, RFC 8326, which counts as the lowest LOCAL_PREF
// from whichever neighbour it comes), highest LOCAL_PREF, shortest
// AS_PATH, lowest ORIGIN, lowest MED among paths of the same neighbouring AS,
// eBGP before iBGP. All that remain are used together (ECMP), also when their
// neighbouring ASes differ; of more than intent.MaxNextHops those with the lowest VTEP
// addresses. Of several copies of a route (one distinguisher, one
// next hop, learned through several reflectors) one is used, a fresh one before
// a stale one.
//
// # Lost peers
//
// A route reflector that does no graceful restart for EVPN withdraws all routes
// of a node when its session with that node ends, though the node goes on
// forwarding. A row whose last path is withdrawn is therefore handled by its
// VTEP, the next hop:
//
//   - As long as the VTEP has other routes, the row is deleted 25 ms after the
//     VTEP's latest withdrawal (250 ms once sixteen have followed each other), and
//     at most 5 s after its own.
//   - When the VTEP's last route is withdrawn, the rows that it lost in the same
//     batch are kept, or come back, as stale for Config.PeerLinger, and the VTEP
//     stays known. The batch is what went in the 2 s up to then, and before that
//     what went with no more than 250 ms between one withdrawal and the next. A
//     VTEP with a single route cannot be told from a lost one: its route is kept
//     too, unless the VRF has a default route.
//   - A stale row ends at once when the same prefix arrives in its VRF or is
//     announced by this node; when a route of the VRF that covers it leads to
//     another VTEP or is announced by this node, where the default route counts only
//     if no other route was withdrawn in the batch; or when its VRF no longer imports it. It ends 5 s after the VTEP has its latest
//     new route, if it has any.
//   - A row with a live path never waits, and never uses a stale one.
//   - A stale row whose VTEP the node has no route to is out of the table meanwhile.
//   - A path that is replaced, by an update or by one that is rejected, has been
//     told to be gone, and so has one of a node that is being drained: it leaves no
//     stale row. Nor does one that was kept over a graceful restart of the neighbour,
//     when the restart time is over, or the long-lived one: it has had its time.
//
// The same holds when this node's own session ends without graceful restart, or
// by the neighbour's prefix limit: what no other neighbour sends lingers.
//
// docs/decisions/0005-peer-linger.md gives the reasons.
//
// # BFD
//
// PathChanged is told what BFD (controlplane/bfd) says of the path to a neighbour. A
// path that is lost ends an established session at once, and not gracefully: what
// the neighbour sent goes, apart from the rows that linger as above. A session that is
// not there is left alone, so a graceful restart under way is not aborted. A
// neighbour that switches BFD off loses nothing. docs/decisions/0011-bfd.md gives the
// reasons.
//
// # Links
//
// LinksChanged is told the node's links. A session with a link-local address, or with an
// external neighbour one hop away, ends at once when its link is down, gone or made anew, as
// by BFD, and no connection is made until the link is back. The link of the latter is known
// by this end's address, from its first session on.
//
// # Limits
//
// GoBGP parses messages in goroutines of its own, where nothing can recover a panic.
// Package wire reads each message before, and hands on nothing that GoBGP's parser
// panics at. A panic in our own reading of a route is caught and counted as that
// route's rejection.
//
// GoBGP queues what neighbours send without bound. What a neighbour announces and
// withdraws faster than it is read takes memory meanwhile: some 250 MB for ten
// thousand prefixes that flap without a pause.
//
// Graceful restart needs neighbours that keep EVPN routes. GoBGP does; FRR 8.4
// keeps unicast and MPLS VPN routes only and withdraws EVPN routes at once when
// a session ends: see "Lost peers".
//
// Sessions and routes are kept by the neighbour's address with its interface. Two neighbours
// with one link-local address need one password: the kernel keeps the keys of TCP-MD5 by
// address alone. GoBGP's main loop has no end: a speaker that has run leaves a goroutine behind.
//
// Two nodes with one router ID share their route distinguishers. Where routes of
// the other one arrive all the same, Status names it; an iBGP route reflector
// passes them on to neither, as their ORIGINATOR_ID is the neighbour's own (RFC
// 4456 section 8).
package bgp
