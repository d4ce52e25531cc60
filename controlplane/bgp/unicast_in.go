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
	paths    map[pathKey]*unicastPath
	byPrefix map[netip.Prefix]set[*unicastPath]
	best     map[netip.Prefix]underlay.Learned
	received map[netip.Addr]int
	inSync   bool
	changed  loop.Signal
}

// unicastPath is a received path; the next hop is hop.VTEP.
type unicastPath struct {
	path
	linkLocal netip.Addr
}

func newUnicastIn() unicastIn {
	return unicastIn{
		paths: map[pathKey]*unicastPath{}, byPrefix: map[netip.Prefix]set[*unicastPath]{}, best: map[netip.Prefix]underlay.Learned{},
		received: map[netip.Addr]int{}, changed: loop.NewSignal(),
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

// decodeUnicast reads a path as the BGP server reports it. One that cannot be used
// counts as withdrawn (RFC 7606): its neighbour may have had another before.
func decodeUnicast(p *api.Path, asn uint32) (out *unicastPath, err error) {
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
	out = &unicastPath{path: path{
		key:    pathKey{neighbor: neighbor.Unmap(), addr: addr, bits: bits, pathID: p.GetIdentifier()},
		prefix: netip.PrefixFrom(addr, int(bits)).Masked(), withdrawn: p.GetIsWithdraw(),
	}}
	if out.withdrawn {
		return out, nil
	}
	out.rank = rank{localPref: defaultLocalPref, ebgp: p.GetSourceAsn() != asn, stale: p.GetStale()}
	out.rank.routerID, _ = netip.ParseAddr(p.GetSourceId())
	if err := out.attributes(p, asn); err != nil || !out.hop.VTEP.IsValid() {
		out.withdrawn = true
	}
	return out, nil
}

func (u *unicastPath) attributes(p *api.Path, asn uint32) error {
	for _, a := range p.GetPattrs() {
		if err := u.attribute(a); err != nil {
			return err
		}
		m, err := a.UnmarshalNew()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *api.MpReachNLRIAttribute:
			if hops := m.GetNextHops(); len(hops) > 1 {
				u.linkLocal, _ = netip.ParseAddr(hops[1])
			}
		case *api.AsPathAttribute:
			// RFC 4271 section 9.1.2: a path through our own AS is a loop.
			for _, s := range m.GetSegments() {
				if slices.Contains(s.GetNumbers(), asn) {
					return fmt.Errorf("AS %d is in the path", asn)
				}
			}
		}
	}
	return nil
}

// unicastLocked takes one path. The caller holds in.mu.
func (s *GoBGP) unicastLocked(p *api.Path) error {
	path, err := decodeUnicast(p, s.cfg.ASN)
	if err != nil {
		return err
	}
	u := &s.unicastIn
	if old := u.paths[path.key]; old != nil {
		drop(u.byPrefix, old.prefix, old)
		delete(u.paths, path.key)
		if u.received[path.key.neighbor]--; u.received[path.key.neighbor] == 0 {
			delete(u.received, path.key.neighbor) // a router that has gone from its link does not come back
		}
	}
	if !path.withdrawn {
		u.paths[path.key] = path
		add(u.byPrefix, path.prefix, path)
		u.received[path.key.neighbor]++
	}
	s.chooseLocked(path.prefix)
	return nil
}

// chooseLocked computes one destination anew: as for EVPN (doc.go, "Choice of
// paths"), but a path that is kept over its neighbour's restart is used only when
// there is no fresh one: the others carry the traffic meanwhile.
func (s *GoBGP) chooseLocked(p netip.Prefix) {
	u := &s.unicastIn
	var all []*path
	links := map[*path]netip.Addr{}
	for c := range u.byPrefix[p] {
		all = append(all, &c.path)
		links[&c.path] = c.linkLocal
	}
	u.changed.Send()
	if len(all) == 0 {
		delete(u.best, p)
		return
	}
	all = keepMin(all, func(a, b *path) int { return boolean(a.rank.stale) - boolean(b.rank.stale) })
	all = keepMin(all, func(a, b *path) int { return a.rank.compare(b.rank) })
	all = lowestMED(all)
	all = keepMin(all, func(a, b *path) int { return boolean(b.rank.ebgp) - boolean(a.rank.ebgp) })
	best := underlay.Learned{Prefix: p}
	for _, c := range all {
		best.Stale = best.Stale || c.rank.stale
		best.Hops = append(best.Hops, underlay.Hop{Addr: c.hop.VTEP, LinkLocal: links[c], Neighbor: c.key.neighbor})
	}
	u.best[p] = best
}
