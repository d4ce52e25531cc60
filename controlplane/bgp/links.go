package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/underlay"
)

// sessionLink is the link that a session ends with. The zero value: none, since packets to the
// neighbour may take another path when a link is lost.
type sessionLink struct {
	name string
	// index is 0 while the link is not there, or has no carrier.
	index int
	// several: there is another link in its place when one is lost.
	several bool
}

// down tells why no session can be on the link; empty if one can, or if there is no link.
func (o sessionLink) down() string {
	if o.name == "" || o.index != 0 {
		return ""
	}
	return fmt.Sprintf("the link %s is down", o.name)
}

// restsOn is the link that a session with the neighbour ends with, as of FRR's fast external
// failover: that of a link-local address, and of an external neighbour one hop away the link
// with the longest network that its address is in. The latter counts only if local, this end's
// address in the latest session, is in that network, too: a route may lead past it. Of several
// links with that network none counts while one is left.
func (n Neighbor) restsOn(asn uint32, links []underlay.Link, local netip.Addr) sessionLink {
	if zone := n.Address.Zone(); zone != "" {
		i := slices.IndexFunc(links, func(l underlay.Link) bool { return l.Name == zone && l.Carrier })
		if i < 0 {
			return sessionLink{name: zone}
		}
		return sessionLink{name: zone, index: links[i].Index}
	}
	external := n.External || n.ASN != asn
	if !external || n.MultihopTTL > 1 || n.TTLSecurity > 1 || !n.Address.IsValid() {
		return sessionLink{}
	}
	var on []underlay.Link
	bits, here := -1, false
	for _, l := range links {
		for _, p := range l.Prefixes {
			if l.Loopback || p.IsSingleIP() || !p.Contains(n.Address) || p.Bits() < bits {
				continue
			}
			if p.Bits() > bits {
				on, bits, here = nil, p.Bits(), false
			}
			here = here || p.Addr() == local
			if !slices.ContainsFunc(on, func(o underlay.Link) bool { return o.Name == l.Name }) {
				on = append(on, l)
			}
		}
	}
	switch {
	case !here:
		return sessionLink{}
	case !slices.ContainsFunc(on, func(l underlay.Link) bool { return l.Carrier }):
		return sessionLink{name: on[0].Name}
	case len(on) > 1:
		return sessionLink{several: true}
	}
	return sessionLink{name: on[0].Name, index: on[0].Index}
}

// LinksChanged tells the links of the node. Sessions end with theirs, and are begun again when
// it is back. It returns at once.
func (s *GoBGP) LinksChanged(links []underlay.Link) {
	s.in.mu.Lock()
	s.nodeLinks = links
	for _, n := range s.sync {
		s.restLocked(n)
	}
	for name, l := range s.links {
		now := Neighbor{Address: anyLinkLocal(name)}.restsOn(s.cfg.ASN, links, netip.Addr{})
		if now == l.on {
			continue
		}
		// Whoever is on the link when it comes back may be another router.
		l.on, l.heard = now, time.Time{}
		l.changed.Send()
	}
	s.in.mu.Unlock()
	s.paths.wake.Send()
}

// restLocked notes the link that a neighbour's session rests on now. A session that rested on
// another one is to end. Before the first LinksChanged nothing is known.
func (s *GoBGP) restLocked(n *neighborSync) {
	if s.nodeLinks == nil {
		return
	}
	was := n.on
	n.on = n.config.restsOn(s.cfg.ASN, s.nodeLinks, n.local)
	if n.on != was && !n.on.several && n.established && was.index != 0 {
		n.lostLink = was.name
	}
}

// sessionFrom notes this end's address in a neighbour's session, which has begun.
func (s *GoBGP) sessionFrom(neighbor, local netip.Addr) {
	s.in.mu.Lock()
	if n := s.sync[neighbor]; n != nil && n.local != local {
		n.local, n.on = local, sessionLink{} // no session has been on the link of that address
		s.restLocked(n)
	}
	s.in.mu.Unlock()
	s.paths.wake.Send() // the link may be down by now
}

// takeLinksLocked gives the neighbours whose session ends with its link, with the link.
func (s *GoBGP) takeLinksLocked() map[netip.Addr]string {
	lost := map[netip.Addr]string{}
	for a, n := range s.sync {
		if n.lostLink != "" && n.established {
			lost[a] = n.lostLink
		}
		n.lostLink = ""
	}
	return lost
}
