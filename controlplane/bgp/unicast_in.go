package bgp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	api "github.com/osrg/gobgp/v3/api"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/loop"
)

// unicastIn is what the neighbours sent as plain unicast, and what of it is best.
// GoBGP.in.mu guards it.
type unicastIn struct {
	// paths are those held, used or not; the next hop of one is hop.VTEP.
	paths    map[pathKey]*path
	byPrefix map[netip.Prefix]set[*path]
	best     map[netip.Prefix]underlay.Learned
	counts   map[netip.Addr]*unicastCounts
	// own are the prefixes that this node announces. Neighbours return them.
	own     set[netip.Prefix]
	inSync  bool
	changed loop.Signal
}

// unicastCounts are one neighbour's paths.
type unicastCounts struct {
	received int
	rejected map[Reason]int
}

func newUnicastIn() unicastIn {
	return unicastIn{
		paths: map[pathKey]*path{}, byPrefix: map[netip.Prefix]set[*path]{}, best: map[netip.Prefix]underlay.Learned{},
		counts: map[netip.Addr]*unicastCounts{}, own: set[netip.Prefix]{}, changed: loop.NewSignal(),
	}
}

// Unicast is what was learned as plain unicast: all paths to use for each prefix,
// in order, and whether each neighbour has sent all that it has, or had its time.
func (s *GoBGP) Unicast() (learned []underlay.Learned, inSync bool) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	learned = slices.Collect(maps.Values(s.unicastIn.best))
	slices.SortFunc(learned, func(a, b underlay.Learned) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return learned, s.unicastIn.inSync
}

// UnicastInSync is the second answer of Unicast, for less.
func (s *GoBGP) UnicastInSync() bool {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return s.unicastIn.inSync
}

// UnicastChanged tells that Unicast may answer differently. Changes that nobody has
// taken are one.
func (s *GoBGP) UnicastChanged() <-chan struct{} { return s.unicastIn.changed }

// decodeUnicast reads a path as the BGP server reports it.
func decodeUnicast(p *api.Path, asn uint32) (out *path, err error) {
	var nlri api.IPAddressPrefix
	if err := p.GetNlri().UnmarshalTo(&nlri); err != nil {
		return nil, fmt.Errorf("read the prefix: %w", err)
	}
	addr, err1 := netip.ParseAddr(nlri.GetPrefix())
	neighbor, err2 := netip.ParseAddr(p.GetNeighborIp())
	if err1 != nil || err2 != nil || int(nlri.GetPrefixLen()) > addr.BitLen() {
		return nil, fmt.Errorf("read the prefix %s/%d from %s", nlri.GetPrefix(), nlri.GetPrefixLen(), p.GetNeighborIp())
	}
	bits := uint8(nlri.GetPrefixLen())
	out = &path{
		key:    pathKey{neighbor: neighbor.Unmap(), addr: addr, bits: bits, pathID: p.GetIdentifier()},
		prefix: netip.PrefixFrom(addr, int(bits)).Masked(), withdrawn: p.GetIsWithdraw(),
	}
	if out.withdrawn {
		return out, nil
	}
	out.attributes(p, asn)
	switch {
	case out.refused != "":
		out.reason = out.refused
	case out.unreadable:
		out.reason = ReasonUnreadable
	case !out.hop.VTEP.IsValid():
		out.reason = ReasonBadNextHop
	}
	return out, nil
}

// unicastLocked takes one path. The caller holds in.mu.
func (s *GoBGP) unicastLocked(p *api.Path) error {
	path, err := decodeUnicast(p, s.cfg.ASN)
	if err != nil {
		return err
	}
	s.holdUnicastLocked(path)
	return nil
}

// holdUnicastLocked puts a path in the place of the neighbour's former one. An own route that was
// returned is not kept.
func (s *GoBGP) holdUnicastLocked(path *path) {
	u := &s.unicastIn
	c := u.counts[path.key.neighbor]
	if c == nil {
		c = &unicastCounts{rejected: map[Reason]int{}}
		u.counts[path.key.neighbor] = c
	}
	if old := u.paths[path.key]; old != nil {
		drop(u.byPrefix, old.prefix, old)
		delete(u.paths, path.key)
		c.received--
		if c.rejected[old.reason]--; c.rejected[old.reason] <= 0 {
			delete(c.rejected, old.reason)
		}
	}
	if _, own := u.own[path.prefix]; !path.withdrawn && !(own && path.refused != "") {
		u.paths[path.key] = path
		add(u.byPrefix, path.prefix, path)
		c.received++
		if path.reason != "" {
			c.rejected[path.reason]++
			s.in.rib.counts(path.key.neighbor).total[path.reason]++
		}
	}
	if c.received == 0 {
		delete(u.counts, path.key.neighbor) // a router that has gone from its link does not come back
	}
	s.chooseLocked(path.prefix)
}

// ownUnicast notes which prefixes this node announces itself, and does not any more. The caller holds
// outMu.
func (s *GoBGP) ownUnicast(add, remove []netip.Prefix) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for _, p := range remove {
		delete(s.unicastIn.own, p)
	}
	for _, p := range add {
		s.unicastIn.own[p] = struct{}{}
		for path := range s.unicastIn.byPrefix[p] {
			if path.refused != "" {
				s.holdUnicastLocked(path)
			}
		}
	}
}

// chooseLocked computes one destination anew: as for EVPN (doc.go, "Choice of
// paths"), but a path that is kept over its neighbour's restart is used only when
// there is no fresh one: the others carry the traffic meanwhile.
func (s *GoBGP) chooseLocked(p netip.Prefix) {
	u := &s.unicastIn
	u.changed.Send()
	best := underlay.Learned{Prefix: p}
	var all []*path
	for c := range u.byPrefix[p] {
		if c.reason == "" {
			all = append(all, c)
		} else {
			best.Refused = max(best.Refused, string(c.reason)) // one of them, whatever the order
		}
	}
	if len(all) == 0 {
		if best.Refused == "" {
			delete(u.best, p)
			return
		}
		u.best[p] = best
		return
	}
	best.Refused = ""
	all = keepMin(all, func(a, b *path) int { return boolean(a.rank.stale) - boolean(b.rank.stale) })
	all = keepMin(all, func(a, b *path) int { return a.rank.compare(b.rank) })
	all = lowestMED(all)
	all = keepMin(all, func(a, b *path) int { return boolean(b.rank.ebgp) - boolean(a.rank.ebgp) })
	for _, c := range all {
		best.Stale = best.Stale || c.rank.stale
		best.Hops = append(best.Hops, underlay.Hop{Addr: c.hop.VTEP, LinkLocal: c.linkLocal, Neighbor: c.key.neighbor})
	}
	u.best[p] = best
}
