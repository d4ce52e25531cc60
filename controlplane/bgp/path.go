package bgp

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// pathKey identifies a received route: what a withdrawal names.
type pathKey struct {
	neighbor netip.Addr
	rd       rd
	tag      uint32
	// addr and bits are the prefix as received, not canonical.
	addr   netip.Addr
	bits   uint8
	pathID uint32
}

// routeKey identifies a route whichever neighbour sent it (RFC 9136 section 3.1).
type routeKey struct {
	rd   rd
	tag  uint32
	addr netip.Addr
	bits uint8
}

func (k pathKey) route() routeKey { return routeKey{k.rd, k.tag, k.addr, k.bits} }

// rd is a route distinguisher in its 8-byte wire form (RFC 4364 section 4.2).
type rd [8]byte

// of tells whether the node with that router ID made the distinguisher.
func (d rd) of(routerID netip.Addr) bool {
	return routerID.Is4() && d[0] == 0 && d[1] == rdTypeIPv4 && [4]byte(d[2:6]) == routerID.As4()
}

// path is one received Type-5 route in plain values.
type path struct {
	key       pathKey
	withdrawn bool

	// unreadable: the route's identity is known and the rest is not.
	unreadable bool
	// prefix is masked; invalid when the received one was.
	prefix                   netip.Prefix
	esi, gateway, otherEncap bool
	hasMAC                   bool
	hop                      intent.NextHop
	targets                  []intent.RouteTarget
	rank                     rank
	// linkLocal is the next hop's second address, of plain unicast (RFC 2545 section 3).
	linkLocal netip.Addr
	// refused is why package wire has refused the announcement, or "".
	refused Reason

	// reason is why the path is rejected, or "".
	reason Reason
}

// rank is what the choice of paths looks at.
type rank struct {
	localPref  uint32
	pathLen    int
	origin     uint8
	neighborAS uint32 // the first AS of AS_PATH, 0 for one that starts in our AS
	med        uint32
	ebgp       bool
	stale      bool // kept over the neighbour's graceful restart
	longStale  bool // carries LLGR_STALE (RFC 9494 section 4.2)
	shutdown   bool // carries GRACEFUL_SHUTDOWN (RFC 8326 section 3)
	// routerID of the neighbour that sent it, to choose between copies.
	routerID netip.Addr
}

// compare orders by all criteria but MED; smaller is better.
func (a rank) compare(b rank) int {
	return cmp.Or(
		boolean(a.longStale)-boolean(b.longStale),
		boolean(a.shutdown)-boolean(b.shutdown),
		cmp.Compare(b.localPref, a.localPref),
		cmp.Compare(a.pathLen, b.pathLen),
		cmp.Compare(a.origin, b.origin),
	)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// best returns the next hops of the paths to use among valid ones, as doc.go
// says under "Choice of paths". The result does not depend on the order.
func best(paths []*path) intent.NextHopSet { return intent.NewNextHopSet(bestHops(paths)...) }

// bestHops are the next hops of best, in any order, before intent.MaxNextHops limits them.
func bestHops(paths []*path) []intent.NextHop {
	if len(paths) == 0 {
		return nil
	}
	paths = keepMin(paths, func(a, b *path) int { return a.rank.compare(b.rank) })
	paths = lowestMED(paths)
	paths = keepMin(paths, func(a, b *path) int { return boolean(b.rank.ebgp) - boolean(a.rank.ebgp) })
	hops := make([]intent.NextHop, 0, len(paths))
	for _, p := range onePerRoute(paths) {
		hops = append(hops, p.hop)
	}
	return hops
}

// keepMin keeps every path that no other beats.
func keepMin(paths []*path, compare func(a, b *path) int) []*path {
	least := slices.MinFunc(paths, compare)
	var kept []*path
	for _, p := range paths {
		if compare(p, least) == 0 {
			kept = append(kept, p)
		}
	}
	return kept
}

// lowestMED compares MED only within a neighbouring AS (RFC 4271 section 9.1.2.2 c).
func lowestMED(paths []*path) []*path {
	least := map[uint32]uint32{}
	for _, p := range paths {
		if m, ok := least[p.rank.neighborAS]; !ok || p.rank.med < m {
			least[p.rank.neighborAS] = p.rank.med
		}
	}
	return slices.DeleteFunc(paths, func(p *path) bool { return p.rank.med > least[p.rank.neighborAS] })
}

// onePerRoute keeps one of the copies of a route that came through several
// neighbours: they may differ while a change is on its way.
func onePerRoute(paths []*path) []*path {
	type route struct {
		rd     rd
		tag    uint32
		vtep   netip.Addr
		prefix netip.Prefix
	}
	chosen := map[route]*path{}
	for _, p := range paths {
		r := route{p.key.rd, p.key.tag, p.hop.VTEP, p.prefix}
		if old := chosen[r]; old == nil || copyOrder(p, old) < 0 {
			chosen[r] = p
		}
	}
	kept := make([]*path, 0, len(chosen))
	for _, p := range chosen {
		kept = append(kept, p)
	}
	return kept
}

func copyOrder(a, b *path) int {
	return cmp.Or(
		boolean(a.rank.stale)-boolean(b.rank.stale),
		a.rank.routerID.Compare(b.rank.routerID),
		a.key.neighbor.Compare(b.key.neighbor),
		cmp.Compare(a.key.pathID, b.key.pathID),
	)
}
